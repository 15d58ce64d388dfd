"""A part of the stream: from and to a place, some tables, one key. A selected record is the same as in the whole."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records import JsonLinesStream, Selection, write_records
from mssql_cdc_tests.lake_kit import AT, Change, column, lsn
from mssql_cdc_tests.unit.records.kit import Lake, table
from mssql_cdc_tests.unit.records.test_outputs import begun, go_on
from mssql_cdc_tests.unit.records.test_snapshot_records import again


def selected(lake: Lake, **what: Any) -> list[dict[str, Any]]:
    """The selected records."""
    output = io.BytesIO()
    write_records(lake.connector, output=JsonLinesStream(output), selection=Selection(**what))
    return [json.loads(line) for line in output.getvalue().splitlines()]


def commit_of(record: dict[str, Any]) -> str:
    return record["sourceOffset"]["commit_lsn"]


@pytest.mark.parametrize("transactions", ["true", "false"])
def test_selected_tables_and_keys_look_as_in_the_whole_stream(tmp_path: Path, transactions: str):
    lake, schemas = begun(tmp_path, **{"provide.transaction.metadata": transactions})
    go_on(lake, schemas, 2, 5)
    of_a = [record for record in lake.records() if record["topic"] == "server1.testDB1.dbo.a"]
    assert selected(lake, tables=("dbo.a",)) == selected(lake, tables=("testDB1.dbo.a",)) == of_a
    assert selected(lake, tables=("dbo.a",), key='{"id": 31}') == [one for one in of_a if one["key"] == {"id": 31}]
    assert len(selected(lake, key='{"id": 31}')) == 2 * len(selected(lake, tables=("dbo.a",), key='{"id": 31}')) > 0


@pytest.mark.parametrize("names", ["testDB1,other", "other,testDB1"])
@pytest.mark.parametrize(
    ("tables", "topics"),
    [
        (("dbo.a",), ["testDB1.dbo.a"]),
        (("testDB1.dbo.a",), ["testDB1.dbo.a"]),
        (("other.dbo.people",), ["other.dbo.people"]),
        (("dbo.a", "dbo.people"), ["other.dbo.people", "testDB1.dbo.a"]),
    ],
    ids=str,
)
def test_a_table_of_one_of_several_databases_is_selected(
    tmp_path: Path, names: str, tables: tuple[str, ...], topics: list[str]
):
    """Each database refused the names that only others have."""
    lake = Lake(tmp_path)
    a = lake.add(table("a"))
    lake.append(a, Change(1, "c", after={"id": 1}))
    lake.cut(1)
    other = Lake(tmp_path, database="other")
    people = other.add(table("people", database="other"))
    other.append(people, Change(1, "c", after={"id": 7}))
    other.cut(1)
    both = Lake(tmp_path, {"database.names": names})
    found = {record["topic"] for record in selected(both, tables=tables)}
    assert sorted(found) == [f"server1.{topic}" for topic in topics]
    with pytest.raises(
        ConfigurationError, match=r"No such table: dbo\.none; captured are: other\.dbo\.people, testDB1"
    ):
        selected(both, tables=("dbo.none", *tables))


@pytest.mark.feature("BLK-05")
@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("transactions", ["true", "false"])
def test_selected_rows_of_a_blocking_snapshot_show_the_position_of_the_stream(
    tmp_path: Path, transactions: str, name: str
):
    """They showed that of the selected tables."""
    lake = again(tmp_path)
    lake.properties = {"provide.transaction.metadata": transactions}
    whole = [record for record in lake.records() if record["topic"].endswith(f".{name}")]
    assert {one["value"]["source"]["commit_lsn"] for one in whole if one["value"]["op"] == "r"} >= {lsn(9).text}
    assert selected(lake, tables=(f"dbo.{name}",)) == whole


def test_a_key_of_several_columns_may_have_any_order(tmp_path: Path):
    lake = Lake(tmp_path, {"include.schema.changes": False})
    columns = (column("y", "int", nullable=False), column("x", "nvarchar", length=9, nullable=False))
    schema = lake.add(table("a", *columns, keys=("y", "x")))
    lake.append(schema, *(Change(at, "c", after={"y": at, "x": 'é"'}) for at in (1, 2)))
    lake.cut(2)
    (record,) = selected(lake, key='{"x": "é\\"", "y": 2}')
    assert record["key"] == {"y": 2, "x": 'é"'}
    assert selected(lake, key='{"y": 2}') == []


def test_commits_from_and_to_a_place_are_included(tmp_path: Path):
    lake, schemas = begun(tmp_path, **{"provide.transaction.metadata": False, "heartbeat.interval.ms": 0})
    go_on(lake, schemas, 2, 6)
    everything = [record for record in lake.records() if record["sourceOffset"].get("snapshot") is None]
    for first, last in ((2, 6), (3, 5), (4, 4)):
        wanted = {lsn(at).text for at in range(first, last + 1)}
        found = selected(lake, start=lsn(first).text, end=lsn(last).text)
        assert found == [record for record in everything if commit_of(record) in wanted]
    assert selected(lake, start=lsn(7).text) == []
    assert selected(lake, end=lsn(6).text) == lake.records()


def test_times_select_by_commit_time_the_end_is_not_included(tmp_path: Path):
    lake = Lake(tmp_path, {"include.schema.changes": False})
    schema = lake.add(table("a"))
    minutes = [AT + timedelta(minutes=at) for at in range(5)]
    lake.append(schema, *(Change(at + 1, "c", after={"id": at}, committed=minutes[at]) for at in range(5)))
    lake.cut(5)
    zone = "+00:00"
    assert zone in minutes[1].isoformat()
    found = selected(lake, start=minutes[1].isoformat(), end=minutes[3].isoformat())
    assert [record["key"]["id"] for record in found] == [1, 2]
    assert selected(lake, start=(minutes[4] + timedelta(seconds=1)).isoformat()) == []
    assert len(selected(lake, end=(minutes[4] + timedelta(seconds=1)).isoformat())) == 5


def test_rows_of_a_sweep_are_no_commits_that_times_select(tmp_path: Path):
    """They stand where their snapshot began, and have the time of its end: a part ended there, or began too early."""
    lake = Lake(tmp_path, {"include.schema.changes": False})
    a = lake.add(table("a"))
    hours = [AT + timedelta(hours=number) for number in range(6)]
    lake.append(a, *(Change(10 + n, "c", after={"id": n}, committed=at) for n, at in enumerate(hours)))
    lake.cut(15)
    lake.append(a, Change(11, "r", after={"id": 77}, snapshot=2, committed=hours[5]), flag="sweep:2")
    lake.cut(16)
    texts = [at.isoformat() for at in hours]
    parts: list[tuple[dict[str, str], list[int]]] = [
        ({"end": texts[4]}, [0, 1, 2, 3]),
        ({"start": texts[3]}, [3, 4, 5]),
        ({"start": texts[2], "end": texts[4]}, [2, 3]),
    ]
    for part, expected in parts:
        assert [one["key"]["id"] for one in selected(lake, **part)] == expected, part


def test_a_part_that_ends_is_gone_on_with(tmp_path: Path):
    from mssql_cdc_tests.unit.records.test_outputs import run, target, written

    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 6)
    for at in (3, 5):
        run(lake, target("file", tmp_path), end=lsn(at).text)
    run(lake, target("file", tmp_path))
    assert written("file", tmp_path) == lake.records()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"start": "yesterday"}, "no place in the stream"),
        ({"end": "2026-11-22T08:00:00"}, "with its zone"),
        ({"key": "7"}, "not a JSON object"),
        ({"key": "{"}, "not JSON"),
        ({"tables": ("dbo.none",)}, r"No such table: dbo\.none; captured are: testDB1\.dbo\.a, testDB1\.dbo\.b"),
    ],
)
def test_a_selection_that_means_nothing_is_refused(tmp_path: Path, wrong: dict[str, Any], message: str):
    lake, _ = begun(tmp_path)
    with pytest.raises(ConfigurationError, match=message):
        selected(lake, **wrong)


@pytest.mark.parametrize(
    ("kind", "value", "mode", "keys"),
    [
        ({"kind": "float"}, 100.0, "precise", ['{"id": 100}', '{"id": 100.0}', '{"id": 1e2}']),
        ({"kind": "float"}, 1e22, "precise", ['{"id": 1e22}', '{"id": 10000000000000000000000}']),
        ({"kind": "real"}, 0.1, "precise", ['{"id": 0.1}']),
        ({"kind": "decimal", "precision": 9, "scale": 2}, Decimal("1.10"), "precise", ['{"id": 1.10}', '{"id": 1.1}']),
        ({"kind": "decimal", "precision": 9, "scale": 2}, Decimal("1.10"), "double", ['{"id": 1.10}', '{"id": 1.1}']),
        ({"kind": "decimal", "precision": 9, "scale": 2}, Decimal("1.10"), "string", ['{"id": "1.10"}']),
        (
            {"kind": "decimal", "precision": 38, "scale": 10},
            Decimal("1234567890123456789012345678.0123456789"),
            "precise",
            ['{"id": 1234567890123456789012345678.0123456789}'],
        ),
        ({"kind": "bit"}, True, "precise", ['{"id": true}']),
    ],
)
def test_a_key_is_compared_by_value(tmp_path: Path, kind: dict[str, Any], value: Any, mode: str, keys: list[str]):
    lake = Lake(
        tmp_path,
        {
            "include.schema.changes": False,
            "decimal.handling.mode": mode,
            "key.converter.schemas.enable": "false",
            "key.converter.decimal.format": "NUMERIC",
        },
    )
    schema = lake.add(table("a", column("id", nullable=False, **kind), column("n", "int")))
    lake.append(schema, Change(1, "c", after={"id": value, "n": 1}))
    lake.cut(1)
    output = io.BytesIO()
    write_records(lake.connector, output=JsonLinesStream(output))
    shown = output.getvalue().decode().partition('"key":')[2].partition(',"value"')[0]
    for key in [*keys, shown]:
        assert len(selected(lake, key=key)) == 1, key
    assert not selected(lake, key='{"id": 1}'), "true is not 1"
