"""Going on behind a source offset: nothing is lost, and only records that share the offset come again."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.errors import ConfigurationError, NotCaughtUpError
from mssql_cdc.lake.steps import SnapshotBegun
from mssql_cdc.records import JsonLinesStream, Selection, write_records
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc_tests.lake_kit import Change, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

Records = list[dict[str, Any]]
METADATA = pytest.mark.parametrize("metadata", [False, True], ids=["plain", "transactions"])


def changed(folder: Path, **properties: object) -> Lake:
    """A lake with deletions, changed keys, rows of an incremental snapshot, and cuts without a change."""
    lake = Lake(folder, {"include.schema.changes": False, **properties})
    schema = lake.add(table("a"))
    image = [{"id": number, "name": "x", "note": "n"} for number in range(10)]
    lake.append(schema, Change(1, "c", after=image[0]))
    lake.cut(1)
    lake.append(
        schema,
        Change(2, "c", after=image[1]),
        Change(2, "c", after=image[2], sequence=2),
        Change(2, "d", image[1], sequence=3),
        Change(3, "u", image[2], image[3], changed=["id"]),
        Change(3, "u", image[3], image[3] | {"name": "y"}, sequence=2),
    )
    lake.cut(3)
    lake.cut(4, minutes=2)
    lake.cut(5, minutes=4)
    lake.append(schema, *(Change(5, "r", after=image[one], snapshot=5) for one in (3, 5, 6)), snapshot="incremental:5")
    lake.cut(5, minutes=5)
    lake.append(schema, Change(6, "u", image[3], image[4], changed=["id"]), Change(7, "d", image[4]))
    lake.cut(7, minutes=6)
    lake.cut(8, minutes=8)
    return lake


def behind(lake: Lake, offset: dict[str, Any]) -> Records:
    """The records for a consumer that has committed an offset."""
    output = io.BytesIO()
    write_records(lake.connector, output=JsonLinesStream(output), offsets={DATABASE: SourceOffset.of(offset)})
    return [json.loads(line) for line in output.getvalue().decode().splitlines()]


def is_heartbeat(record: dict[str, Any]) -> bool:
    return record["topic"].startswith("__debezium-heartbeat")


@pytest.mark.long
@pytest.mark.feature("STR-04")
@METADATA
@pytest.mark.parametrize("interval", [0, 60_000], ids=["no heartbeats", "heartbeats"])
def test_a_consumer_that_continues_after_any_record_loses_nothing(tmp_path: Path, *, metadata: bool, interval: int):
    lake = changed(tmp_path, **{"provide.transaction.metadata": metadata, "heartbeat.interval.ms": interval})
    records = lake.records()
    assert interval == 0 or sum(map(is_heartbeat, records)) > 2
    for place, record in enumerate(records):
        first = next(at for at, one in enumerate(records) if one["sourceOffset"] == record["sourceOffset"])
        expected = [
            one
            for one in records[first + 1 :]
            if one["sourceOffset"] != record["sourceOffset"] or not is_heartbeat(one)
        ]
        assert behind(lake, record["sourceOffset"]) == [*rows_read(records, record["sourceOffset"]), *expected], place


def rows_read(records: Records, offset: dict[str, Any]) -> Records:
    """The rows of an incremental snapshot that come again behind a heartbeat: its offset does not tell of them."""
    if offset["change_lsn"] != "NULL":
        return []
    return [
        one
        for one in records
        if one["sourceOffset"]["commit_lsn"] == offset["commit_lsn"] and one["sourceOffset"]["change_lsn"] is None
    ]


@METADATA
def test_the_deletion_itself_never_comes_again(tmp_path: Path, *, metadata: bool):
    lake = changed(tmp_path, **{"provide.transaction.metadata": metadata})
    last = lake.records()[-1]
    assert last["value"] is None, "the tombstone"
    assert behind(lake, last["sourceOffset"]) == [last]


@METADATA
def test_an_offset_of_before_transaction_metadata_stands_for_its_event(tmp_path: Path, *, metadata: bool):
    """The connector that wrote it had them, or had not; this one has not, or has."""
    offsets = [
        (one["sourceOffset"], one["key"], one["value"])
        for one in changed(tmp_path / "other", **{"provide.transaction.metadata": not metadata}).records()
        if one["value"] and "op" in one["value"]
    ]
    lake = changed(tmp_path / "own", **{"provide.transaction.metadata": metadata})
    records = lake.records()
    events = [place for place, one in enumerate(records) if one["value"] and "op" in one["value"]]
    for place, (offset, key, value) in zip(events, offsets, strict=True):
        if value["op"] == "r" or (value["op"] == "c" and value["source"]["event_serial_no"] == 2):
            continue  # Several records have the offset.
        assert records[place]["key"] == key
        assert behind(lake, offset) == records[place + 1 :]


def late(folder: Path, **properties: object) -> tuple[Lake, Records]:
    """A lake in which b was left out of the cuts from 3 to 6, and what a consumer had before b's changes were read."""
    lake = Lake(folder, {"include.schema.changes": False, **properties})
    a, b = lake.add(table("a")), lake.add(table("b"))
    for at in (1, 2):
        for schema in (a, b):
            lake.append(schema, Change(at, "c", after={"id": at}))
        lake.cut(at)
    lake.append(a, *(Change(at, "c", after={"id": at}, sequence=n) for at in (3, 5, 6) for n in (1, 3)))
    lake.cut(6, only=("a",), minutes=1)
    before = lake.records()
    lake.append(b, *(Change(at, "c", after={"id": at}, sequence=2) for at in (3, 4, 6)))
    lake.append(a, Change(7, "c", after={"id": 7}))
    lake.cut(8, minutes=2)
    return lake, before


def keys_of(records: Records, name: str) -> list[int]:
    """The keys of a table's changes, in order."""
    return [one["key"]["id"] for one in records if one["topic"].endswith(f".dbo.{name}")]


@pytest.mark.parametrize(
    ("interval", "metadata"),
    [
        pytest.param(0, False, id="no heartbeats-plain"),
        pytest.param(0, True, id="no heartbeats-transactions", marks=pytest.mark.long),
        pytest.param(30_000, False, id="heartbeats-plain", marks=pytest.mark.long),
        pytest.param(30_000, True, id="heartbeats-transactions"),
    ],
)
def test_a_consumer_gets_the_changes_of_a_table_that_was_read_late(tmp_path: Path, *, metadata: bool, interval: int):
    lake, before = late(tmp_path, **{"provide.transaction.metadata": metadata, "heartbeat.interval.ms": interval})
    for place, record in enumerate(before):
        rest = before[place + 1 :]
        again = behind(lake, record["sourceOffset"])
        assert keys_of(again, "a") == [*keys_of(rest, "a"), 7], place
        assert keys_of(again, "b") == [*keys_of(rest, "b"), 3, 4, 6], place


def test_a_consumer_that_had_late_changes_gets_none_of_them_again_after_a_later_one(tmp_path: Path):
    lake, _ = late(tmp_path)
    last = lake.records()[-1]
    assert keys_of([last], "a") == [7]
    assert behind(lake, last["sourceOffset"]) == []


def test_a_selection_of_tables_leaves_out_none_of_its_records_after_an_offset(tmp_path: Path):
    lake = Lake(tmp_path, {"include.schema.changes": False})
    a, b = lake.add(table("a")), lake.add(table("b"))
    for at in (1, 2):
        for schema, first in ((a, 1), (b, 4)):
            lake.append(schema, *(Change(at, "c", after={"id": n}, sequence=n) for n in range(first, first + 3)))
        lake.cut(at)
    last = [one for one in lake.records() if one["topic"].endswith(".a")][-1]
    output = io.BytesIO()
    offsets = {DATABASE: SourceOffset.of(last["sourceOffset"])}
    write_records(
        lake.connector, output=JsonLinesStream(output), offsets=offsets, selection=Selection(tables=("dbo.b",))
    )
    assert keys_of([json.loads(line) for line in output.getvalue().decode().splitlines()], "b") == [4, 5, 6]


def restored(folder: Path, *, sequence: int = 2, **properties: object) -> Lake:
    """A lake whose source was read up to 6, restored to 3, and goes on from there: its LSNs come again."""
    lake = Lake(folder, {"include.schema.changes": False, **properties})
    schema = lake.add(table("a"))
    lake.cut(0)
    lake.append(schema, *(Change(at, "c", after={"id": at}) for at in range(1, 7)))
    lake.cut(6)
    lake.cut(3, epoch=1, minutes=1)
    lake.append(schema, *(Change(at, "c", after={"id": 10 + at}, sequence=sequence, epoch=1) for at in (4, 5, 6, 7, 9)))
    lake.cut(9, epoch=1, minutes=2)
    return lake


@METADATA
def test_an_offset_of_before_a_restore_goes_on_in_the_history_that_has_its_event(tmp_path: Path, *, metadata: bool):
    """It was taken for one of the new history: a consumer never got what stood before it there."""
    lake = restored(tmp_path, **{"provide.transaction.metadata": metadata})
    records = lake.records()
    for place, record in enumerate(records):
        again = behind(lake, record["sourceOffset"])
        assert keys_of(again, "a") == keys_of(records[place + 1 :], "a"), place


def test_an_offset_that_both_histories_have_is_refused(tmp_path: Path):
    lake = restored(tmp_path, sequence=1)
    records = lake.records()
    offsets = [one["sourceOffset"] for one in records]
    assert offsets[4] == offsets[7]
    with pytest.raises(ConfigurationError, match=r"before and after a restore.*--from 0+:0+:0003"):
        behind(lake, offsets[4])
    assert keys_of(behind(lake, offsets[2]), "a") == keys_of(records[3:], "a"), "only the former history has it"
    assert keys_of(behind(lake, offsets[9]), "a") == [19], "only the new one has it"
    output = io.BytesIO()
    write_records(lake.connector, output=JsonLinesStream(output), selection=Selection(start=lsn(3).text))
    rest = [json.loads(line) for line in output.getvalue().decode().splitlines()]
    assert keys_of(rest, "a") == [14, 15, 16, 17, 19], "the advice works"


def test_an_offset_without_an_event_that_may_be_of_two_histories_is_refused(tmp_path: Path):
    """As that of a heartbeat: it tells nothing but its position."""
    lake = restored(tmp_path)
    offset = {"commit_lsn": lsn(5).text, "change_lsn": "NULL", "snapshot": None, "snapshot_completed": False}
    with pytest.raises(ConfigurationError, match="before and after a restore"):
        behind(lake, offset)
    later = {**offset, "commit_lsn": lsn(7).text}
    assert keys_of(behind(lake, later), "a") == [19]


def test_a_finished_snapshot_of_before_a_restore_is_not_taken_for_the_one_after_it(tmp_path: Path):
    lake = Lake(tmp_path, {"include.schema.changes": False})
    schema = lake.add(table("a"))
    for epoch, at, minutes in ((0, 7, 0), (1, 9, 1)):
        key = f"{'e1.' if epoch else ''}snapshot-20260102T03040{epoch}"
        lake.append(
            schema, Change(at, "r", after={"id": epoch}, snapshot=epoch + 1, epoch=epoch), snapshot=str(epoch + 1)
        )
        facts = SnapshotBegun(snapshot=key, number=epoch + 1)
        lake.cut(at, kind="snapshot", partition=key, facts=facts, epoch=epoch, minutes=minutes)
        lake.append(schema, Change(12, "c", after={"id": 10 + epoch}, sequence=epoch + 1, epoch=epoch))
        lake.cut(12, epoch=epoch, minutes=minutes)
    records = lake.records()
    assert keys_of(records, "a") == [0, 10, 1, 11]
    for place in range(4):
        assert keys_of(behind(lake, records[place]["sourceOffset"]), "a") == keys_of(records[place + 1 :], "a"), place


def taken_over(folder: Path) -> Lake:
    """A lake that begins at 4 without rows, with events from 5 to 7, a blocking snapshot at 8, and an event at 9."""
    lake = Lake(folder, {"include.schema.changes": False})
    a = lake.add(table("a"))
    taken = SnapshotBegun(snapshot="take-over", data=False)
    lake.cut(4, complete=False, kind="snapshot", partition="take-over", facts=taken)
    lake.append(a, *(Change(at, "c", after={"id": at}) for at in (5, 6, 7)))
    lake.cut(7)
    lake.append(a, Change(8, "r", after={"id": 1}, snapshot=2), snapshot="2")
    begun = SnapshotBegun(snapshot="again", number=2, signal="s1@4:0001")
    lake.cut(8, kind="snapshot", only=["a"], partition="again", facts=begun)
    lake.append(a, Change(9, "c", after={"id": 9}))
    lake.cut(9)
    return lake


@pytest.mark.feature("BLK-05", "STR-04")
@pytest.mark.parametrize("completed", [False, True])
@pytest.mark.parametrize("commit", [4, 5, 6])
def test_a_blocking_snapshot_of_another_connector_is_not_taken_for_a_later_one(
    tmp_path: Path, *, completed: bool, commit: int
):
    """The consumer never got what was captured between its offset and the later snapshot, nor that one."""
    lake = taken_over(tmp_path)
    offset = {"snapshot": "BLOCKING", "snapshot_completed": completed, "commit_lsn": lsn(commit).text}
    assert keys_of(behind(lake, offset), "a") == [*range(commit + 1, 8), 1, 9]


@pytest.mark.feature("STR-04")
def test_an_initial_snapshot_of_another_connector_is_not_taken_for_a_later_one(tmp_path: Path):
    lake = taken_over(tmp_path)
    offset = {"snapshot": "INITIAL", "snapshot_completed": True, "commit_lsn": lsn(5).text}
    assert keys_of(behind(lake, offset), "a") == [6, 7, 1, 9]
    unfinished = {**offset, "snapshot_completed": False}
    assert behind(lake, unfinished) == lake.records(), "what the lake has from its beginning on"


@pytest.mark.feature("INC-11", "STR-04")
@pytest.mark.parametrize("commit", [5, 6, 7])
def test_the_offset_of_a_row_of_an_incremental_snapshot_is_that_of_its_commit(tmp_path: Path, commit: int):
    """It was taken for the initial snapshot's, which begins again, or stands at this commit."""
    lake = taken_over(tmp_path)
    offset = {"snapshot": "INCREMENTAL", "snapshot_completed": False, "commit_lsn": lsn(commit).text}
    records = lake.records()
    assert behind(lake, offset) == records[commit - 5 :], "its transaction is read again"
    assert keys_of(behind(lake, {**offset, "snapshot_completed": True}), "a") == keys_of(records[commit - 4 :], "a")
    with pytest.raises(NotCaughtUpError):
        behind(lake, {**offset, "commit_lsn": lsn(10).text})


def test_the_offset_of_a_row_of_an_incremental_snapshot_before_the_beginning_of_the_lake_is_refused(tmp_path: Path):
    offset = {"snapshot": "INCREMENTAL", "snapshot_completed": False, "commit_lsn": lsn(3).text}
    with pytest.raises(ConfigurationError, match="before the beginning of the lake"):
        behind(taken_over(tmp_path), offset)


@pytest.mark.feature("BLK-05")
def test_the_offset_of_a_blocking_snapshot_stands_for_the_next_one_after_its_event(tmp_path: Path):
    lake = taken_over(tmp_path)
    offset = {"snapshot": "BLOCKING", "snapshot_completed": False, "commit_lsn": lsn(7).text}
    records = lake.records()
    assert behind(lake, offset) == records[3:]
    assert behind(lake, {**offset, "snapshot_completed": True}) == records[4:]


@pytest.mark.feature("FLT-13", "BLK-05")
def test_changes_that_are_no_records_do_not_part_a_blocking_snapshot_from_its_event(tmp_path: Path):
    lake = Lake(tmp_path, {"include.schema.changes": False, "skipped.operations": "d"})
    a = lake.add(table("a"))
    taken = SnapshotBegun(snapshot="take-over", data=False)
    lake.cut(4, complete=False, kind="snapshot", partition="take-over", facts=taken)
    lake.append(a, Change(5, "c", after={"id": 5}), Change(6, "d", {"id": 5}))
    lake.cut(6)
    lake.append(a, Change(8, "r", after={"id": 1}, snapshot=2), snapshot="2")
    lake.cut(8, kind="snapshot", partition="again", facts=SnapshotBegun(snapshot="again", number=2, signal="s1@4:0001"))
    lake.append(a, Change(9, "c", after={"id": 9}))
    lake.cut(9)
    event, read, later = lake.records()
    assert read["sourceOffset"]["commit_lsn"] == event["sourceOffset"]["commit_lsn"]
    assert behind(lake, read["sourceOffset"]) == [later]
