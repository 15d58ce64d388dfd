"""Debezium's naming strategies with `Regex`: several tables share a topic, and a field in keys tells them apart."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.errors import ConfigurationError, SchemaError
from mssql_cdc.records.outputs import JsonLinesStream
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.topics import topics_of
from mssql_cdc.records.write import write_records
from mssql_cdc.schema import TableId
from mssql_cdc_tests.lake_kit import Change
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.records.kit import Lake, table

SCHEMA, DEFAULT = (f"io.debezium.schema.{one}RegexTopicNamingStrategy" for one in ("Schema", "Default"))
NAMED = {
    "topic.naming.strategy": SCHEMA,
    "topic.regex": r"(.*)\.orders_.*",
    "topic.replacement": "$1.orders",
}
FIELD = "__dbz__physicalTableIdentifier"
KEYS = {
    "topic.key.field.name": "part",
    "topic.key.field.regex": r".*\.orders_(?<part>.*)",
    "topic.key.field.replacement": "${part}",
}


def names(table: str, **properties: str) -> tuple[str, tuple[str, str] | None]:
    made = topics_of(connector_with(NAMED | {name.replace("__", "."): value for name, value in properties.items()}))
    one = TableId("testDB", "dbo", table)
    return made.data_change_topic(one), made.key_field(one)


@pytest.mark.feature("TOP-11")
def test_table_that_matches_gets_the_new_topic_and_another_one_keeps_its_own():
    assert names("orders_1") == ("server1.testDB.dbo.orders", (FIELD, "server1.testDB.dbo.orders_1"))
    assert names("customers") == ("server1.testDB.dbo.customers", (FIELD, "server1.testDB.dbo.customers"))
    assert names("orders_1", topic__naming__strategy=DEFAULT) == (
        "server1.testDB.orders", (FIELD, "server1.testDB.orders_1"),
    )  # fmt: skip


@pytest.mark.feature("TOP-11")
def test_topic_is_matched_with_its_characters_replaced_and_the_field_has_the_original():
    found = names("orders_ä b", topic__regex=r"(.*)orders__+b", topic__replacement="$1x")
    assert found == ("server1.testDB.dbo.x", (FIELD, "server1.testDB.dbo.orders_ä b"))


@pytest.mark.feature("TOP-11")
def test_empty_new_topic_leaves_the_original():
    assert names("a", topic__regex="(.*)(x?)", topic__replacement="$2")[0] == "server1.testDB.dbo.a"


@pytest.mark.feature("TOP-11")
def test_field_in_keys_is_what_its_own_expression_makes_of_the_original_topic():
    given = {name.replace(".", "__"): value for name, value in KEYS.items()}
    assert names("orders_7", **given)[1] == ("part", "7")
    assert names("customers", **given)[1] == ("part", "server1.testDB.dbo.customers")
    assert names("orders_7", topic__key__field__regex=" ")[1] == (FIELD, "server1.testDB.dbo.orders_7")
    assert names("orders_7", topic__key__enforce__uniqueness="false")[1] is None


@pytest.mark.feature("TOP-11")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"topic.regex": ""}, "topic.regex: is required"),
        ({"topic.replacement": " "}, "topic.replacement: is required"),
        ({"topic.regex": "("}, "topic.regex: '(' is not a valid regular expression"),
        ({"topic.replacement": "$2"}, "topic.replacement: '$2' names group 2"),
        ({"topic.key.field.regex": "(.*)"}, "topic.key.field.replacement: must be non-empty if topic.key.field.regex"),
        ({"topic.key.field.regex": "[", "topic.key.field.replacement": "x"}, "topic.key.field.regex: '['"),
        ({"topic.key.field.regex": ".", "topic.key.field.replacement": "$1"}, "topic.key.field.replacement: '$1'"),
    ],
)
def test_property_that_is_missing_or_not_valid_is_an_error_with_its_name(given: dict[str, str], problem: str):
    with pytest.raises(ConfigurationError) as found:
        connector_with(NAMED | given)
    assert problem in str(found.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic.regex": "a"}, "topic.regex: only the naming strategies with Regex read it"),
        (NAMED | {"topic.key.field.replacement": "a"}, "replacement: nothing reads it without topic.key.field.regex"),
        (
            NAMED | {"topic.key.enforce.uniqueness": "false", "topic.key.field.name": "a"},
            "topic.key.field.name: nothing reads it with topic.key.enforce.uniqueness=false",
        ),
    ],
)
def test_property_that_nothing_reads_is_told(given: dict[str, str], said: str):
    assert any(said in line for line in connector_with(given).notices)


def lake(folder: Path, **properties: str) -> Lake:
    """Two tables of one topic, one of which has no key; rows with the same key, and an update that changes it."""
    made = Lake(folder, NAMED | KEYS | {name.replace("__", "."): value for name, value in properties.items()})
    first, second, keyless = (made.add(table(name, keys=keys)) for name, keys in (
        ("orders_1", ("id",)), ("orders_2", ("id",)), ("orders_none", ()),
    ))  # fmt: skip
    made.append(first, Change(5, "c", after={"id": 1, "name": "a"}))
    made.append(second, Change(6, "c", after={"id": 1, "name": "b"}))
    made.append(keyless, Change(7, "c", after={"id": 1, "name": "c"}))
    made.cut(7)
    return made


def rows(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in found if one["topic"] == "server1.testDB1.dbo.orders"]


@pytest.mark.feature("TOP-11", "EVT-03")
def test_keys_and_their_schemas_have_the_field_after_the_columns(tmp_path: Path):
    made = lake(tmp_path / "lake")
    found = rows(made.records())
    assert [one["key"] for one in found] == [{"id": 1, "part": "1"}, {"id": 1, "part": "2"}, {"part": "none"}]
    keys = [one["key"] for one in rows(made.records(key__converter__schemas__enable="true"))]
    assert [[one["field"] for one in key["schema"]["fields"]] for key in keys] == [["id", "part"]] * 2 + [["part"]]
    assert keys[0]["schema"]["fields"][1] == {"type": "string", "optional": False, "field": "part"}
    assert {key["schema"]["name"] for key in keys} == {"server1.testDB1.dbo.orders.Key"}


@pytest.mark.feature("TOP-11", "EVT-05")
def test_field_follows_the_columns_of_message_key_columns(tmp_path: Path):
    found = rows(lake(tmp_path / "lake").records(message__key__columns=r"dbo\.orders_.*:name"))
    assert [one["key"] for one in found] == [
        {"name": "a", "part": "1"}, {"name": "b", "part": "2"}, {"name": "c", "part": "none"},
    ]  # fmt: skip


def test_field_with_the_name_of_a_key_column_is_an_error(tmp_path: Path):
    made = lake(tmp_path / "lake", topic__key__field__name="id")
    with pytest.raises(SchemaError, match=r"orders_1: the key has a column 'id'; set topic.key.field.name"):
        made.records()


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ({"tables": ("dbo.orders_2",)}, ["b"]),
        ({"key": '{"id": 1, "part": "1"}'}, ["a"]),
        ({"tables": ("dbo.orders_1",), "key": '{"part": "2", "id": 1}'}, []),
        ({"key": '{"part": "none"}'}, ["c"]),
    ],
)
def test_selected_records_are_those_of_the_table_and_not_of_its_topic(
    tmp_path: Path, what: dict[str, Any], expected: list[str]
):
    assert selected(lake(tmp_path / "lake"), **what) == expected


def test_selected_rows_of_a_snapshot_are_those_of_the_table(tmp_path: Path):
    made = Lake(tmp_path / "lake", NAMED)
    for name in ("orders_1", "orders_2"):
        made.append(made.add(table(name)), Change(2, "r", after={"id": 1, "name": name}))
    made.cut(2, kind="snapshot")
    assert selected(made, tables=("dbo.orders_2",)) == ["orders_2"]


def selected(made: Lake, **what: Any) -> list[str]:
    output = io.BytesIO()
    write_records(made.connector, output=JsonLinesStream(output), selection=Selection(**what))
    found = [json.loads(line) for line in output.getvalue().decode().splitlines()]
    return [one["value"]["after"]["name"] for one in found]
