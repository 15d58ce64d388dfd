"""Snapshots and changed schemas as records: markers, schema changes and their announcement."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.lake.steps import SnapshotBegun
from mssql_cdc_tests.lake_kit import Change, column, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

SNAPSHOT = "snapshot-20260102T030405"


def snapshotted(tmp_path: Path) -> Lake:
    """Tables a (three rows), b (one row), c (none) after an initial snapshot."""
    lake = Lake(tmp_path)
    a, b = lake.add(table("a")), lake.add(table("b"))
    lake.add(table("c"))
    lake.append(a, *(Change(7, "r", after={"id": key}, sequence=key) for key in (1, 2, 3)))
    lake.append(b, Change(7, "r", after={"id": 1}))
    lake.cut(7, kind="snapshot", partition=SNAPSHOT, facts=SnapshotBegun(snapshot=SNAPSHOT, number=1))
    return lake


@pytest.mark.feature("SCH-05", "SCH-09")
def test_a_snapshot_emits_creates_for_every_table_and_then_rows_with_markers(tmp_path: Path):
    creates, reads = [], []
    for record in snapshotted(tmp_path).records():
        (creates if record["topic"] == "server1" else reads).append(record)
    assert [r["value"]["source"]["table"] for r in creates] == ["a", "b", "c"]
    assert all(r["value"]["tableChanges"][0]["type"] == "CREATE" for r in creates)
    assert all(r["value"]["source"]["snapshot"] == "true" and r["value"]["ddl"] is None for r in creates)
    assert creates[0]["key"] == {"databaseName": DATABASE}
    assert creates[0]["partition"] == 0
    markers = [(r["value"]["source"]["table"], r["value"]["source"]["snapshot"]) for r in reads]
    assert markers == [("a", "first"), ("a", "true"), ("a", "last_in_data_collection"), ("b", "last")]
    assert [r["sourceOffset"]["snapshot_completed"] for r in reads] == [False, False, False, True]
    assert {r["value"]["source"]["commit_lsn"] for r in creates + reads} == {lsn(7).text}


@pytest.mark.feature("SCH-07", "EVO-05")
def test_a_new_instance_is_announced_before_the_first_event_after_its_start(tmp_path: Path):
    lake = snapshotted(tmp_path)
    b = lake.add(table("b"))
    lake.append(b, Change(9, "c", after={"id": 2}), Change(12, "c", after={"id": 3}))
    wider = table(
        "a",
        *table("a").columns,
        column("extra", "int"),
        instance="dbo_a_v2",
        capture_object_id=2,
        from_lsn=lsn(10).text,
    )
    assert lake.add(wider).version == 2
    lake.cut(12)
    records = lake.records()[7:]
    assert [r["value"].get("op", "schema") for r in records] == ["c", "schema", "c"]
    change_value = records[1]["value"]
    assert change_value["ddl"] == "N/A"
    assert change_value["tableChanges"][0]["type"] == "ALTER"
    names = [c["name"] for c in change_value["tableChanges"][0]["table"]["columns"]]
    assert names == ["id", "name", "note", "extra"]


@pytest.mark.feature("SCH-10")
def test_a_new_instance_with_the_same_structure_is_not_announced(tmp_path: Path):
    lake = snapshotted(tmp_path)
    same = table("a", instance="dbo_a_v2", capture_object_id=2, from_lsn=lsn(8).text)
    assert lake.add(same).version == 2
    lake.cut(9)
    assert len(lake.records()) == 7


@pytest.mark.feature("SCH-05")
def test_schema_changes_can_be_turned_off(tmp_path: Path):
    records = snapshotted(tmp_path).records(include__schema__changes=False)
    assert {record["topic"] for record in records} == {f"server1.{DATABASE}.dbo.a", f"server1.{DATABASE}.dbo.b"}


def test_an_open_snapshot_holds_back_the_records_that_follow_it(tmp_path: Path):
    lake = snapshotted(tmp_path)
    a, b = lake.add(table("a")), lake.add(table("b"))
    lake.append(a, Change(8, "c", after={"id": 8}))
    lake.cut(8)
    before = lake.records()
    assert before[-1]["key"] == {"id": 8}
    again = {
        "kind": "snapshot",
        "partition": "snapshot-20260103T030405",
        "facts": SnapshotBegun(snapshot="snapshot-20260103T030405", number=2),
    }
    lake.cut(8, complete=False, only=["b"], status="snapshot", **again)
    lake.append(a, Change(9, "c", after={"id": 9}))
    lake.cut(9, only=["a"])
    assert lake.records() == before
    lake.append(b, Change(8, "r", after={"id": 1}, snapshot=2), snapshot="2")
    lake.cut(8, complete=False, only=["b"], **again)
    lake.cut(10)
    after = lake.records()
    assert after[: len(before)] == before
    kinds = [r["value"].get("op", "schema") for r in after[len(before) :]]
    assert kinds == ["schema", "r", "c"]
    assert after[len(before)]["sourceOffset"]["snapshot"] == "BLOCKING"


def test_tables_whose_snapshot_has_no_rows_still_get_a_create_record(tmp_path: Path):
    lake = Lake(tmp_path)
    a = lake.add(table("a"))
    lake.cut(3, complete=False, kind="snapshot", partition=SNAPSHOT, facts=SnapshotBegun(snapshot=SNAPSHOT, data=False))
    lake.append(a, Change(4, "c", after={"id": 1}))
    lake.cut(4)
    create, event = lake.records()
    assert create["value"]["source"]["snapshot"] == "last"
    assert create["value"]["source"]["commit_lsn"] == lsn(3).text
    assert event["value"]["op"] == "c"


@pytest.mark.feature("SCH-05", "SCH-07")
def test_a_table_that_was_never_in_a_snapshot_gets_its_create_record_in_the_stream(tmp_path: Path):
    lake = snapshotted(tmp_path)
    late = lake.add(table("late", from_lsn=lsn(8).text))
    lake.append(late, Change(9, "c", after={"id": 1}))
    lake.cut(9)
    create, event = lake.records()[7:]
    assert create["value"]["tableChanges"][0]["type"] == "CREATE"
    assert create["value"]["ddl"] == "N/A"
    assert event["value"]["op"] == "c"
