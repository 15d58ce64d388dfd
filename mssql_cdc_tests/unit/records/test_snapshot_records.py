"""Snapshots and changed schemas as records: markers, schema changes and their announcement."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from mssql_cdc.lake.steps import SnapshotBegun, SnapshotEnded
from mssql_cdc.lake.structures import record_structures
from mssql_cdc.records import JsonLinesStream, database_records, open_output, write_records
from mssql_cdc.records.database_view import DatabaseView
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.stream import Rendered, stream
from mssql_cdc.schema import TableId, TableSchema, TableStructure
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import AT, Change, column, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table
from mssql_cdc_tests.unit.records.test_resume import behind

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


@pytest.mark.feature("SCH-05", "SCH-09", "SNP-28")
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


@pytest.mark.feature("EVO-07", "SCH-10")
def test_another_nullability_is_shown_with_the_next_instance(tmp_path: Path):
    lake = snapshotted(tmp_path)
    id_, name, note = table("a").columns
    columns = (id_, replace(name, nullable=False), note)
    altered = lake.add(table("a", *columns, from_lsn=lsn(8).text))
    lake.append(altered, Change(9, "c", after={"id": 9, "name": "x"}))
    lake.cut(9)
    assert [r["value"].get("op", "schema") for r in lake.records()[7:]] == ["c"]
    newer = lake.add(table("a", *columns, instance="dbo_a_v2", capture_object_id=2, from_lsn=lsn(10).text))
    lake.append(newer, Change(11, "c", after={"id": 11, "name": "y"}))
    lake.cut(11)
    _, change, _ = lake.records()[7:]
    shown = {column["name"]: column["optional"] for column in change["value"]["tableChanges"][0]["table"]["columns"]}
    assert shown == {"id": False, "name": False, "note": True}


@pytest.mark.feature("SCH-05")
def test_schema_changes_can_be_turned_off(tmp_path: Path):
    records = snapshotted(tmp_path).records(include__schema__changes=False)
    assert {record["topic"] for record in records} == {f"server1.{DATABASE}.dbo.a", f"server1.{DATABASE}.dbo.b"}


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_an_open_snapshot_holds_back_the_records_that_follow_it(tmp_path: Path, runs: int):
    """A run that goes on with it says so in a row of another kind, behind which it did not count as open."""
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
    for _ in range(runs - 1):
        lake.cut(8, complete=False, only=["b"], kind="status", status="snapshot")
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


def written(lake: Lake, output: str, **selection: Any) -> list[dict[str, Any]]:
    """What one more look adds to an output that goes on."""
    with open_output(output, lake.connector) as found:
        count = write_records(lake.connector, output=found, selection=Selection(**selection))
    lines = Path(output).read_text().splitlines()
    return [json.loads(line) for line in lines[len(lines) - count :]]


@pytest.mark.feature("SNP-28", "SNP-34")
def test_an_output_gets_all_rows_of_a_snapshot_that_another_run_goes_on_with(tmp_path: Path):
    """It was written with the rows that were there when another table came to a cut, and its rest never came."""
    lake, output = Lake(tmp_path, {"include.schema.changes": False}), str(tmp_path / "records.jsonl")
    a, b = lake.add(table("a")), lake.add(table("b"))
    key = {"kind": "snapshot", "partition": SNAPSHOT, "facts": SnapshotBegun(snapshot=SNAPSHOT, number=1)}
    lake.cut(7, complete=False, status="snapshot", **key)
    lake.append(a, Change(7, "r", after={"id": 1}))
    lake.cut(7, complete=False, only=["a"], **key)
    lake.append(b, Change(7, "r", after={"id": 1}))
    lake.cut(7, complete=False, only=["b"], kind="status", status="snapshot")
    lake.append(a, Change(9, "c", after={"id": 9}))
    lake.cut(9, only=["a"])
    assert written(lake, output) == []
    lake.append(b, Change(8, "r", after={"id": 2}, chunk=1))
    lake.cut(8, complete=False, only=["b"], **key)
    lake.cut(10)
    shown = [(one["value"]["source"]["snapshot"], one["key"]["id"]) for one in written(lake, output)]
    assert shown == [("first", 1), ("first_in_data_collection", 1), ("last", 2), ("false", 9)]


@pytest.mark.feature("SNP-28", "SNP-34")
@pytest.mark.parametrize("left", [[1, 3], []])
@pytest.mark.parametrize("chunk", [0, 2], ids=["read later", "read by another run at the same commit"])
def test_rows_of_chunks_that_were_read_again_are_no_records(tmp_path: Path, chunk: int, left: list[int]):
    """Behind a pause that outlasted the retention, keys came twice, and a row that was gone by then never went."""
    lake = Lake(tmp_path)
    b = lake.add(table("b"))
    key: dict[str, Any] = {"kind": "snapshot", "partition": SNAPSHOT, "complete": False}
    lake.cut(5, status="snapshot", **key, facts=SnapshotBegun(snapshot=SNAPSHOT, number=1))
    low = 5 if chunk else 8
    lake.append(b, *(Change(5, "r", after={"id": one}, sequence=one) for one in (1, 2)))
    if left:
        lake.append(b, *(Change(low, "r", after={"id": one}, sequence=one, chunk=chunk) for one in left))
    facts = {"table": b.table_id.text, "snapshot": SNAPSHOT, "number": 1, "signal": None, "low": lsn(low).text}
    lake.cut(low, **key, facts=SnapshotEnded(**facts, mark=LogMark(lsn(9)), chunk=chunk))
    lake.append(b, Change(10, "c", after={"id": 4}))
    lake.cut(10)
    create, *rest = lake.records()
    assert create["value"]["source"]["snapshot"] == ("true" if left else "last")
    markers = ["first", "last", "false"] if left else ["false"]
    assert [one["key"]["id"] for one in rest] == [*left, 4]
    assert [one["value"]["source"]["snapshot"] for one in rest] == markers


@pytest.mark.feature("SNP-28", "FLT-04", "SCH-05")
@pytest.mark.parametrize("is_first", [True, False])
def test_a_table_that_was_excluded_during_a_snapshot_begins_another_one_when_it_is_let_in_again(
    tmp_path: Path, *, is_first: bool
):
    """Its snapshot stayed open for ever. An output that goes on has the same records as one that begins later."""
    lake, output = Lake(tmp_path), str(tmp_path / "records.jsonl")
    a, number = lake.add(table("a")), 1 if is_first else 2
    b = lake.add(table("b")) if is_first else a
    first = {"kind": "snapshot", "partition": SNAPSHOT, "facts": SnapshotBegun(snapshot=SNAPSHOT, number=1)}
    begun = SnapshotBegun(snapshot="more", number=2)
    key = first if is_first else {"kind": "snapshot", "partition": "more", "facts": begun}
    lake.cut(7, complete=False, status="snapshot", **first)
    lake.append(a, Change(7, "r", after={"id": 1}))
    lake.cut(7, complete=False, only=["a"], **first)
    if not is_first:
        lake.cut(7)
        b = lake.add(table("b", from_lsn=lsn(8).text))
        lake.cut(8, complete=False, only=["b"], status="snapshot", **key)
    own = {"only": ["b"], "complete": False}
    lake.append(b, Change(8, "r", after={"id": 1}, snapshot=number), snapshot=f"{number}")
    del lake.batches[b.table_id.text]
    lake.append(a, Change(9, "c", after={"id": 9}))
    lake.cut(9, only=["a"])
    held = written(lake, output)
    assert kinds_of(held) == ([] if is_first else [None, "r"])
    lake.cut(9, kind="status", status="excluded", **own)
    lake.cut(10, only=["a"])
    gone_on = [*held, *written(lake, output)]
    assert kinds_of(gone_on) == ([None, None, "r", "c"] if is_first else [None, "r", "c"])
    key = {"kind": "snapshot", "partition": "again", "facts": SnapshotBegun(snapshot="again", number=3)}
    lake.cut(10, status="snapshot", **own, **key)
    lake.append(b, *(Change(10, "r", after={"id": one}, snapshot=3, sequence=one) for one in (1, 2)), snapshot="3")
    lake.cut(10, **own, **key)
    lake.cut(11)
    again = written(lake, output)
    assert kinds_of(again) == [None, "r", "r"]
    assert lake.records() == [*gone_on, *again]


@pytest.mark.feature("STR-16", "SCH-05")
def test_a_table_whose_first_snapshot_is_about_to_begin_is_not_announced_in_the_stream(tmp_path: Path):
    """Its structure is kept before the snapshot is: an output that went on then had two CREATE records of it."""
    lake, output = snapshotted(tmp_path), str(tmp_path / "records.jsonl")
    a = lake.add(table("a"))
    lake.append(a, Change(20, "c", after={"id": 9}))
    lake.cut(20)
    b = lake.add(table("late", from_lsn=lsn(8).text))
    gone_on = written(lake, output)
    key = {"kind": "snapshot", "partition": "new", "only": ["late"], "facts": SnapshotBegun(snapshot="new", number=2)}
    lake.cut(20, complete=False, status="snapshot", **key)
    gone_on += written(lake, output)
    lake.append(b, Change(20, "r", after={"id": 1}, snapshot=2), snapshot="2")
    lake.cut(20, complete=False, **key)
    gone_on += written(lake, output)
    lake.cut(21)
    gone_on += written(lake, output)
    assert kinds_of(gone_on)[7:] == ["c", None, "r"]
    assert lake.records() == gone_on


def test_rows_that_were_read_at_the_end_of_an_idle_log_are_records_once_a_cut_has_passed_it(tmp_path: Path):
    """A table without a key is read at the log's end, where no cut is: they waited for the next change of any table."""
    lake = snapshotted(tmp_path)
    b = lake.add(table("b"))
    key, before = "snapshot-20260103T030405", len(lake.records())
    again = {"kind": "snapshot", "partition": key, "complete": False, "only": ["b"]}
    lake.cut(7, status="snapshot", **again, facts=SnapshotBegun(snapshot=key, number=2))
    lake.append(b, Change(9, "r", after={"id": 5}, snapshot=2), snapshot="2")
    facts = {"table": b.table_id.text, "snapshot": key, "number": 2, "signal": None, "low": lsn(9).text}
    lake.cut(7, **again, facts=SnapshotEnded(**facts, mark=LogMark(lsn(9))))
    lake.cut(7, complete=False, only=["a"])
    assert len(lake.records()) == before
    lake.cut(7)
    create, read = lake.records()[before:]
    assert (create["value"]["source"]["table"], read["key"]) == ("b", {"id": 5})
    assert read["value"]["source"]["snapshot"] == "last"


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


def joins(lake: Lake, at: int) -> TableSchema:
    """A table whose stream begins there, without a snapshot of its rows."""
    late = lake.add(table("late", from_lsn=lsn(at).text))
    taken = SnapshotBegun(snapshot="joins", data=False)
    lake.cut(at, complete=False, kind="snapshot", only=["late"], partition="joins", facts=taken)
    return late


def kinds_of(records: list[dict[str, Any]]) -> list[Any]:
    """The operation of each record, N/A for a schema change in the stream, None for one of a snapshot."""
    return [one["value"].get("op", one["value"].get("ddl")) for one in records]


@pytest.mark.feature("STR-16", "SCH-05")
@pytest.mark.parametrize(("is_noted", "has_change"), [(True, True), (True, False), (False, True)])
def test_a_table_that_joined_the_stream_keeps_its_create_record_when_a_later_snapshot_has_it(
    tmp_path: Path, *, is_noted: bool, has_change: bool
):
    """Rendered anew, its changes came first, and an output that went on had another history than one that began."""
    lake = snapshotted(tmp_path)
    late = joins(lake, 8) if is_noted else lake.add(table("late", from_lsn=lsn(8).text))
    if has_change:
        lake.append(late, Change(9, "c", after={"id": 1}))
    lake.cut(9)
    before = lake.records()
    state = list(database_records(lake.connector, DATABASE))[-1].state
    lake.append(late, Change(10, "r", after={"id": 1}, snapshot=2), snapshot="2")
    begun = SnapshotBegun(snapshot="again", number=2, signal="s1@4:0001")
    lake.cut(10, kind="snapshot", only=["late"], partition="again", facts=begun)
    lake.cut(11)
    assert kinds_of(before[7:]) == ["N/A", "c"][: 1 + has_change]
    records = lake.records()
    assert records[: len(before)] == before
    assert kinds_of(records[len(before) :]) == [None, "r"]
    rest = [key for one in database_records(lake.connector, DATABASE, state=state) for key in one.records["key"]]
    assert len(rest) == 2


@pytest.mark.feature("STR-16", "SCH-05")
def test_a_table_is_not_announced_in_the_stream_while_its_first_snapshot_is_open(tmp_path: Path):
    """An output that went on meanwhile got two CREATE records of it, one that began later a single one."""
    lake = snapshotted(tmp_path)
    a, late = lake.add(table("a")), lake.add(table("late", from_lsn=lsn(8).text))
    lake.append(a, Change(9, "c", after={"id": 9}))
    lake.cut(9, only=["a", "b", "c"])
    key = {"kind": "snapshot", "partition": "new", "only": ["late"], "facts": SnapshotBegun(snapshot="new", number=2)}
    lake.cut(9, complete=False, status="snapshot", **key)
    lake.cut(9, only=["a", "b", "c"], minutes=1)
    before = lake.records()
    assert kinds_of(before[7:]) == ["c"]
    lake.append(late, Change(10, "r", after={"id": 1}, snapshot=2), snapshot="2")
    lake.cut(10, complete=False, **key)
    lake.cut(11)
    assert kinds_of(lake.records()[len(before) :]) == [None, "r"]


@pytest.mark.feature("SNP-28", "BLK-05")
@pytest.mark.parametrize("is_open", [True, False])
def test_another_snapshot_without_rows_leaves_the_first_one_of_an_idle_database_initial(
    tmp_path: Path, *, is_open: bool
):
    """It stood before the rows of the first one, at the same commit, and made it a blocking one."""
    lake = snapshotted(tmp_path)
    before = lake.records()
    begun = SnapshotBegun(snapshot="again", number=2, signal="s1@4:0001")
    key = {"kind": "snapshot", "partition": "again", "only": ["c"], "facts": begun, "complete": False}
    lake.cut(7, status="snapshot", **key)
    if not is_open:
        lake.cut(7, **key)
    lake.cut(7, only=["a", "b"] if is_open else [], minutes=1)
    records = lake.records()
    assert records[: len(before)] == before
    assert [one["sourceOffset"].get("snapshot") for one in records[len(before) :]] == ([] if is_open else ["BLOCKING"])


def described(lake: Lake) -> list[str]:
    """The tables of the CREATE records of snapshots, in order."""
    values = [record["value"] for record in lake.records() if record["topic"] == "server1"]
    return [value["source"]["table"] for value in values if value["ddl"] is None]


@pytest.mark.feature("SNP-19", "SCH-11")
def test_the_initial_snapshot_describes_tables_that_are_not_captured_in_the_order_of_java(tmp_path: Path):
    lake = snapshotted(tmp_path)
    other = TableStructure(TableId(DATABASE, "dbo", "a b"), (column("n", "int"),))
    named = [replace(other, table_id=TableId(DATABASE, schema, name)) for schema, name in (("app", "z"), ("dbo", "B"))]
    record_structures(lake.layout, [other, *named], at=AT)
    assert described(lake) == ["z", "B", "a", "a b", "b", "c"]
    blocking = {"kind": "snapshot", "partition": "again", "facts": SnapshotBegun(snapshot="again", number=2)}
    b = lake.add(table("b"))
    lake.append(b, Change(9, "r", after={"id": 1}, snapshot=2), snapshot="2")
    lake.cut(9, only=["b"], **blocking)
    lake.cut(10)
    assert described(lake) == ["z", "B", "a", "a b", "b", "c", "b"]


@pytest.mark.feature("SCH-11")
@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (
            {
                "schema.history.internal.store.only.captured.tables.ddl": True,
                "table.exclude.list": r"app\..*",
            },
            ["a", "b", "c", "other"],
        ),
        (
            {
                "schema.history.internal.store.only.captured.databases.ddl": True,
                "schema.include.list": "dbo",
            },
            ["a", "b", "c", "other"],
        ),
    ],
)
def test_the_structure_of_captured_tables_or_schemas_only_is_a_property(tmp_path: Path, properties, expected):
    lake = snapshotted(tmp_path)
    tables = [TableId(DATABASE, "dbo", "other"), TableId(DATABASE, "app", "other")]
    record_structures(lake.layout, [TableStructure(one, (column("n", "int"),)) for one in tables], at=AT)
    assert described(lake) == ["other", "a", "b", "c", "other"]
    lake.properties = properties
    assert described(lake) == expected


@pytest.mark.parametrize("cut_between", [False, True])
def test_a_table_of_which_a_snapshot_took_only_the_position_is_described_in_it(tmp_path: Path, *, cut_between: bool):
    lake = Lake(tmp_path)
    a, _ = lake.add(table("a")), lake.add(table("b"))
    taken, begun = SnapshotBegun(snapshot=SNAPSHOT, data=False), SnapshotBegun(snapshot=SNAPSHOT, number=1)
    lake.cut(6, complete=False, only=["b"], kind="snapshot", partition=SNAPSHOT, facts=taken)
    if cut_between:
        lake.cut(6, only=["b"])
    lake.append(a, Change(7, "r", after={"id": 1}))
    lake.cut(7, complete=False, only=["a"], kind="snapshot", partition=SNAPSHOT, facts=begun)
    lake.cut(8)
    creates = [record for record in lake.records() if record["topic"] == "server1"]
    shown = [(record["value"]["source"]["table"], record["sourceOffset"]["snapshot"]) for record in creates]
    # What a cut has shown is a snapshot of its own: a run may have written its records.
    alone = [("b", "INITIAL"), ("a", "BLOCKING")]
    assert shown == (alone if cut_between else [("a", "INITIAL"), ("b", "INITIAL")])


START = "start-6f0e2a52-9f0b-4a38-9c59-0f4f0e7f9d11@4:"
"""The snapshot that a start with `snapshot.mode=always` asks for."""


def again(tmp_path: Path, signal: str | None = "s1@4:0001") -> Lake:
    """A lake with events of a and b, then another snapshot of both that reads later, then another event."""
    lake = snapshotted(tmp_path)
    a, b = lake.add(table("a")), lake.add(table("b"))
    lake.append(a, Change(8, "c", after={"id": 8}))
    lake.append(b, Change(9, "c", after={"id": 9}))
    lake.cut(9)
    lake.append(a, *(Change(10, "r", after={"id": key}, sequence=key, snapshot=2) for key in (1, 8)), snapshot="2")
    lake.append(b, Change(10, "r", after={"id": 9}, snapshot=2), snapshot="2")
    begun = SnapshotBegun(snapshot="again", number=2, signal=signal)
    lake.cut(10, kind="snapshot", only=["a", "b"], partition="again", facts=begun)
    lake.append(a, Change(11, "c", after={"id": 11}))
    lake.cut(11)
    return lake


@pytest.mark.feature("BLK-05")
@pytest.mark.parametrize("signal", ["s1@4:0001", START])
def test_a_snapshot_stays_where_it_is_when_files_of_its_change_logs_are_merged(tmp_path: Path, signal: str):
    """OPTIMIZE puts rows of several snapshots, and changes, into one row group: the second one came first."""
    lake = again(tmp_path, signal)
    records, states = lake.records(), [one.state for one in database_records(lake.connector, DATABASE)]
    rest = [rendered_behind(lake, state) for state in states]
    for name in ("a", "b"):
        log = DeltaTable(lake.layout.home(table(name).table_id).changes)
        log.optimize.compact()
        assert len(log.file_uris()) == 1
    assert lake.records() == records
    assert [rendered_behind(lake, state) for state in states] == rest


def rendered_behind(lake: Lake, state: StreamState) -> list[str]:
    """The values of the records behind a state."""
    found = database_records(lake.connector, DATABASE, state=state)
    return [text for one in found for text in one.records.column("value").to_pylist()]


def idle_again(tmp_path: Path, signal: str, *, at: int = 7) -> Lake:
    """A lake with two snapshots of a and b without an event in between, then an event."""
    lake = snapshotted(tmp_path)
    a, b = lake.add(table("a")), lake.add(table("b"))
    lake.append(a, *(Change(at, "r", after={"id": key}, sequence=key, snapshot=2) for key in (1, 8)), snapshot="2")
    lake.append(b, Change(at, "r", after={"id": 9}, snapshot=2), snapshot="2")
    begun = SnapshotBegun(snapshot="again", number=2, signal=signal)
    lake.cut(at, kind="snapshot", only=["a", "b"], partition="again", facts=begun)
    lake.append(a, Change(11, "c", after={"id": 11}))
    lake.cut(11)
    return lake


@pytest.mark.feature("BLK-05", "BLK-07")
def test_a_blocking_snapshot_describes_its_tables_and_keeps_the_position_of_the_stream(tmp_path: Path):
    records = again(tmp_path).records()
    block = [one for one in records if one["sourceOffset"].get("snapshot") == "BLOCKING"]
    assert [one["value"].get("op", "schema") for one in block] == ["schema", "schema", "r", "r", "r"]
    markers = [one["value"]["source"]["snapshot"] for one in block]
    assert markers == ["true", "true", "first", "last_in_data_collection", "last"]
    event = records[records.index(block[0]) - 1]
    names = ("commit_lsn", "change_lsn", "event_serial_no")
    assert event["sourceOffset"] == {name: event["value"]["source"][name] for name in names}
    for one in block:
        assert {name: one["value"]["source"][name] for name in names} == event["sourceOffset"]
        assert one["sourceOffset"]["commit_lsn"] == event["sourceOffset"]["commit_lsn"]
    assert [one["sourceOffset"]["snapshot_completed"] for one in block] == [False] * 4 + [True]


@pytest.mark.feature("SNP-01", "SCH-05")
def test_a_snapshot_at_a_start_is_an_initial_one_with_a_position_of_its_own(tmp_path: Path):
    lake = again(tmp_path, START)
    structure = TableStructure(TableId(DATABASE, "dbo", "other"), (column("id", "int"),))
    record_structures(lake.layout, [structure], at=AT)
    records = lake.records()
    block = [one for one in records if one["sourceOffset"].get("commit_lsn") == lsn(10).text and "op" not in one]
    block = [one for one in block if "snapshot" in one["sourceOffset"]]
    ops = [one["value"].get("op", one["value"]["source"]["table"]) for one in block]
    assert ops == ["a", "b", "other", "r", "r", "r"]
    assert block[-1]["sourceOffset"] == {
        "snapshot": "INITIAL", "snapshot_completed": True, "commit_lsn": lsn(10).text,
    }  # fmt: skip
    assert {one["sourceOffset"].get("snapshot") for one in records} == {"INITIAL", None}


@pytest.mark.feature("SNP-07")
def test_a_snapshot_that_repairs_a_table_without_being_asked_is_an_initial_one(tmp_path: Path):
    lake = snapshotted(tmp_path)
    a = lake.add(table("a"))
    lake.cut(9)
    lake.cut(9, complete=False, kind="status", status="lost", only=["a"])
    lake.append(a, Change(10, "r", after={"id": 1}, snapshot=2), snapshot="2")
    begun = SnapshotBegun(snapshot="again", number=2)
    lake.cut(9, complete=False, kind="snapshot", status="snapshot", only=["a"], partition="again", facts=begun)
    lake.cut(10, complete=False, kind="snapshot", only=["a"], partition="again", facts=begun)
    lake.cut(11)
    *_, last = lake.records()
    assert last["sourceOffset"] == {"snapshot": "INITIAL", "snapshot_completed": True, "commit_lsn": lsn(10).text}


@pytest.mark.feature("BLK-05")
@pytest.mark.parametrize("signal", ["s1@4:0001", START])
def test_a_stream_that_ends_within_a_snapshot_has_the_offset_of_its_kind(tmp_path: Path, signal: str):
    lake = again(tmp_path, signal)
    extensions = Extensions.of(lake.connector)
    view = DatabaseView.load(
        lake.connector, DATABASE, warehouse=None, state=None, selection=Selection(), extensions=extensions
    )
    assert view is not None
    kind = "INITIAL" if signal == START else "BLOCKING"
    found = [
        one.state.source_offset()
        for one in stream(view, Envelopes(lake.connector, DATABASE, extensions), StreamState())
        if one.state.within is not None and one.state.within.number == "2"
    ]
    shown = lsn(10).text if signal == START else lsn(9).text
    assert found
    assert all(one == {"snapshot": kind, "snapshot_completed": False, "commit_lsn": shown} for one in found)


@pytest.mark.long
@pytest.mark.feature("BLK-05")
@pytest.mark.parametrize("signal", ["s1@4:0001", START])
@pytest.mark.parametrize("interval", [0, 3_600_000])
def test_a_consumer_that_continues_after_any_record_around_another_snapshot_misses_nothing(
    tmp_path: Path, interval: int, signal: str
):
    lake = again(tmp_path, signal)
    lake.properties = {"heartbeat.interval.ms": interval}
    for record, found, rest in resumed(lake):
        assert found[len(found) - len(rest) :] == rest, record["sourceOffset"]
        if record["sourceOffset"].get("snapshot_completed"):
            assert found == rest, record["sourceOffset"]


@pytest.mark.feature("BLK-05", "STR-04")
@pytest.mark.parametrize("signal", ["s1@4:0001", START])
def test_a_consumer_of_an_idle_database_gets_the_snapshot_that_stands_at_its_offset(tmp_path: Path, signal: str):
    """The heartbeat behind the first snapshot has the commit of the second one, which counted as sent."""
    lake = idle_again(tmp_path, signal)
    lake.properties = {"heartbeat.interval.ms": 3_600_000}
    beats = 0
    for record, found, rest in resumed(lake):
        assert found[len(found) - len(rest) :] == rest, record["sourceOffset"]
        if "heartbeat" in record["topic"]:
            beats += 1
            second = [one["key"] for one in found if one["value"].get("op") == "r"]
            assert second == [{"id": 1}, {"id": 8}, {"id": 9}], "the first snapshot does not come again"
    assert beats == 2


@pytest.mark.feature("BLK-05")
def test_a_consumer_gets_the_snapshot_that_was_taken_at_the_idle_offset_of_a_take_over(tmp_path: Path):
    lake = Lake(tmp_path, {"include.schema.changes": False})
    a = lake.add(table("a"))
    taken = SnapshotBegun(snapshot="take-over", data=False)
    lake.cut(5, complete=False, kind="snapshot", partition="take-over", facts=taken)
    lake.append(a, Change(5, "r", after={"id": 1}, snapshot=2), snapshot="2")
    begun = SnapshotBegun(snapshot="again", number=2, signal="s1@4:0001")
    lake.cut(5, kind="snapshot", partition="again", facts=begun)
    lake.append(a, Change(9, "c", after={"id": 9}))
    lake.cut(9)
    offsets: list[dict[str, Any]] = [
        {"commit_lsn": lsn(5).text, "change_lsn": "NULL", "event_serial_no": 0},
        {"commit_lsn": lsn(5).text, "snapshot": "BLOCKING", "snapshot_completed": True},
        {"commit_lsn": lsn(5).text, "snapshot": "INITIAL", "snapshot_completed": True},
    ]
    for offset in offsets:
        assert [one["key"] for one in behind(lake, offset)] == [{"id": 1}, {"id": 9}], offset


@pytest.mark.feature("SNP-34")
def test_a_consumer_does_not_get_a_snapshot_again_that_ended_before_the_cut_of_its_heartbeat(tmp_path: Path):
    lake = idle_again(tmp_path, START, at=9)
    lake.properties = {"heartbeat.interval.ms": 3_600_000}
    *_, beat, _ = lake.records()
    assert beat["sourceOffset"] == {"commit_lsn": lsn(9).text, "change_lsn": "NULL", "event_serial_no": 1}
    assert [one["key"] for one in behind(lake, beat["sourceOffset"])] == [{"id": 11}]


def resumed(lake: Lake) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]]:
    """Each record, what a consumer at its offset gets, and what stands behind it; without heartbeats."""
    records = lake.records()
    for place, record in enumerate(records):
        # A heartbeat behind the snapshot's last record has no data.
        found = without_heartbeats(behind(lake, record["sourceOffset"]))
        yield record, found, without_heartbeats(records[place + 1 :])


def without_heartbeats(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in records if "heartbeat" not in one["topic"]]


def written_in(lake: Lake, order: str, state: StreamState | None = None) -> list[Rendered]:
    """What is rendered behind a state if the configuration gives this order of tables."""
    lake.properties = {"include.schema.changes": False, "table.include.list": order}
    return list(database_records(lake.connector, DATABASE, state=state))


def rows_of(rendered: list[Rendered]) -> list[tuple[str, str, str]]:
    """The table, the key and the marker of each record."""
    records = [one for batch in rendered for one in batch.records.select(["topic", "key", "value"]).to_pylist()]
    return [
        (one["topic"].rsplit(".", 1)[1], one["key"], json.loads(one["value"])["source"]["snapshot"]) for one in records
    ]


def without_done(state: StreamState) -> StreamState:
    """The state as it was kept before it said which tables are done."""
    values = json.loads(state.to_json())
    del values["within"]["done"]
    return StreamState.from_json(json.dumps(values))


@pytest.mark.feature("SNP-28")
@pytest.mark.parametrize("now", ["dbo.b,dbo.a,dbo.c", "dbo.c,dbo.b,dbo.a", "dbo.a,dbo.b,dbo.c"])
@pytest.mark.parametrize("before", ["dbo.a,dbo.b,dbo.c", "dbo.b,dbo.a,dbo.c"])
def test_an_output_that_stopped_in_a_snapshot_gets_each_row_once_whatever_the_order(
    tmp_path: Path, before: str, now: str
):
    lake = snapshotted(tmp_path)
    lake.append(lake.add(table("c")), Change(7, "r", after={"id": 1}))
    lake.cut(7)
    whole = written_in(lake, before)
    places = [place for place, one in enumerate(whole) if one.state.within is not None]
    assert len(places) == 4
    for place in places:
        state = StreamState.from_json(whole[place].state.to_json())
        found = [*rows_of(whole[: place + 1]), *rows_of(written_in(lake, now, state))]
        assert sorted(one[:2] for one in found) == sorted(one[:2] for one in rows_of(whole)), place
        assert [marker for *_, marker in found].count("first") == 1
        # Whether the last record was the last one of all, it said when it was written.
        assert [marker for *_, marker in found][-1] == "last"


@pytest.mark.parametrize("keeps_done", [True, False])
def test_an_output_goes_on_in_a_snapshot_whose_tables_the_state_did_not_name(tmp_path: Path, *, keeps_done: bool):
    lake, order = snapshotted(tmp_path), "dbo.a,dbo.b,dbo.c"
    whole = written_in(lake, order)
    within = [one.state for one in whole if one.state.within is not None and one.state.within.table is not None]
    assert rows_of(written_in(lake, order, without_done(within[0]))) == [("b", '{"id":1}', "last")]
    lake.append(lake.add(table("c")), Change(7, "r", after={"id": 1}))
    lake.cut(7)
    shutil.rmtree(lake.layout.home(table("b").table_id).changes)
    rest = rows_of(written_in(lake, order, within[1] if keeps_done else without_done(within[1])))
    again = [] if keeps_done else rows_of(whole)[:3]
    expected = [*(one[:2] for one in again), ("c", '{"id":1}')]
    assert [one[:2] for one in rest] == expected, "without the table, nothing tells what is done"


@pytest.mark.feature("SNP-28", "SNP-34")
def test_a_consumer_that_continues_after_a_snapshot_misses_nothing_of_a_table_that_was_read_early(tmp_path: Path):
    lake = Lake(tmp_path, {"heartbeat.interval.ms": 3_600_000})
    early, late = lake.add(table("early")), lake.add(table("late"))
    lake.append(early, Change(7, "r", after={"id": 1}))
    begun = SnapshotBegun(snapshot=SNAPSHOT, number=1)
    lake.cut(7, complete=False, kind="snapshot", only=["early"], partition=SNAPSHOT, facts=begun)
    lake.append(late, Change(9, "r", after={"id": 1}))
    lake.append(early, Change(8, "c", after={"id": 8}), Change(9, "c", after={"id": 9}))
    lake.cut(9, kind="snapshot", partition=SNAPSHOT, facts=begun)
    records = lake.records()
    *_, last, beat, _, _ = records
    assert last["sourceOffset"] == {"snapshot": "INITIAL", "snapshot_completed": True, "commit_lsn": lsn(7).text}
    assert beat["sourceOffset"] == {"commit_lsn": lsn(7).text, "change_lsn": "NULL", "event_serial_no": 1}
    for record in (last, beat):
        output = io.BytesIO()
        offset = SourceOffset.of(record["sourceOffset"])
        write_records(lake.connector, output=JsonLinesStream(output), offsets={DATABASE: offset})
        assert [json.loads(line)["key"] for line in output.getvalue().splitlines()] == [{"id": 8}, {"id": 9}]
