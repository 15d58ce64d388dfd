"""Structures over time in records: each row under its own version, Debezium's history records, late metadata."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mssql_cdc.errors import SchemaError
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.records import database_records
from mssql_cdc.records.history import schema_history
from mssql_cdc.schema import change_log_schema
from mssql_cdc_tests.lake_kit import Change, column, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

BEFORE = (column("id", "int", nullable=False, position=1), column("name", "nvarchar", length=50, position=2))
AFTER = (*BEFORE, column("amount", "int", position=3))


@pytest.fixture
def altered(tmp_path: Path) -> Lake:
    """A table that got a column: a row before and a row behind."""
    lake = Lake(tmp_path)
    first = lake.add(table("orders", *BEFORE, from_lsn=lsn(1).text))
    lake.append(first, Change(5, "c", after={"id": 1, "name": "a"}))
    second = lake.add(table("orders", *AFTER, from_lsn=lsn(6).text))
    assert (first.version, second.version) == (1, 2)
    name = second.table_id.text
    lake.states[name] = evolve(lake.states[name], change_log_schema(second), pytest.fail)
    lake.append(second, Change(7, "c", after={"id": 2, "name": "b", "amount": 3}))
    lake.cut(7)
    return lake


@pytest.mark.feature("SCH-03")
def test_history_is_applied_up_to_each_row_whenever_records_are_rendered(altered: Lake) -> None:
    found = [one["value"]["after"] for one in altered.records() if one["topic"].endswith("orders")]
    assert found == [{"id": 1, "name": "a"}, {"id": 2, "name": "b", "amount": 3}]
    changes = [one["value"] for one in altered.records() if one["topic"] == "server1"]
    kinds = [(one["tableChanges"][0]["type"], len(one["tableChanges"][0]["table"]["columns"])) for one in changes]
    assert kinds == [("CREATE", 2), ("ALTER", 3)]


@pytest.mark.feature("SCH-02")
def test_history_record_is_that_of_debezium(altered: Lake) -> None:
    create, alter = schema_history(altered.connector)
    assert list(create) == ["source", "position", "ts_ms", "databaseName", "schemaName", "ddl", "tableChanges"]
    assert create["source"] == {"server": "server1", "database": DATABASE}
    assert alter["position"] == {"commit_lsn": lsn(6).text, "change_lsn": lsn(6).text, "event_serial_no": 0}
    (change,) = alter["tableChanges"]
    assert (change["type"], change["id"], change["comment"]) == ("ALTER", f'"{DATABASE}"."dbo"."orders"', None)
    assert change["table"]["primaryKeyColumnNames"] == ["id"]
    assert change["table"]["attributes"] == []
    assert change["table"]["columns"][1] == {
        "name": "name", "jdbcType": -9, "typeName": "nvarchar", "typeExpression": "nvarchar", "charsetName": None,
        "length": 50, "position": 2, "optional": True, "autoIncremented": False, "generated": False, "comment": None,
        "hasDefaultValue": False, "enumValues": [],
    }  # fmt: skip


@pytest.mark.feature("STR-23")
def test_row_whose_structure_is_unknown_stops_the_records(altered: Lake) -> None:
    unknown = replace(table("orders", *AFTER), version=9)
    altered.append(unknown, Change(8, "c", after={"id": 3, "name": "c", "amount": 4}))
    altered.cut(8)
    with pytest.raises(SchemaError, match=r"no version 9 of testDB1\.dbo\.orders"):
        altered.records()


@pytest.mark.feature("TXN-09")
def test_transactions_before_their_metadata_was_enabled_have_none_in_the_same_output(altered: Lake) -> None:
    state = list(database_records(altered.connector, DATABASE))[-1].state
    second = table("orders", *AFTER, from_lsn=lsn(6).text, version=2)
    altered.append(second, Change(8, "c", after={"id": 3, "name": "c", "amount": 4}))
    altered.cut(8)
    later = Lake(altered.folder, {"provide.transaction.metadata": "true"}).connector
    found = [one.records for one in database_records(later, DATABASE, state=state) if one.records.num_rows]
    topics = [topic for one in found for topic in one.column("topic").to_pylist()]
    assert topics == ["server1.transaction", "server1.testDB1.dbo.orders"]
    values = [text for one in found for text in one.column("value").to_pylist()]
    assert f'"status":"BEGIN","id":"{lsn(8).text}"' in values[0]


@pytest.mark.feature("EVT-02")
def test_records_show_the_key_that_debezium_has_whatever_tells_rows_apart(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    orders = lake.add(table("orders", *BEFORE, shown_key=("name",)))
    old, moved = {"id": 1, "name": "a"}, {"id": 2, "name": "a"}
    lake.append(
        orders,
        Change(5, "c", after=old),
        Change(6, "u", before=old, after=moved, changed=["id"]),
        Change(7, "u", before=moved, after={"id": 2, "name": "b"}, changed=["name"]),
    )
    lake.cut(7)
    create, *rows = lake.records()
    assert create["value"]["tableChanges"][0]["table"]["primaryKeyColumnNames"] == ["name"]
    assert [(one["key"], one["value"] and one["value"]["op"]) for one in rows] == [
        ({"name": "a"}, "c"), ({"name": "a"}, "u"), ({"name": "a"}, "d"), ({"name": "a"}, None), ({"name": "b"}, "c"),
    ]  # fmt: skip


@pytest.mark.feature("EVT-02")
def test_key_is_cut_to_the_captured_part_of_the_primary_key(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    parts = lake.add(table("orders", *BEFORE, keys=(), shown_key=("id",)))
    lake.append(
        parts,
        Change(5, "c", after={"id": 1, "name": "a"}),
        Change(6, "u", before={"id": 1, "name": "a"}, after={"id": 2, "name": "a"}, changed=["id"]),
    )
    lake.cut(6)
    create, *rows = lake.records()
    assert create["value"]["tableChanges"][0]["table"]["primaryKeyColumnNames"] == ["id"]
    assert [(one["key"], one["value"] and one["value"]["op"]) for one in rows] == [
        ({"id": 1}, "c"), ({"id": 1}, "d"), ({"id": 1}, None), ({"id": 2}, "c"),
    ]  # fmt: skip
