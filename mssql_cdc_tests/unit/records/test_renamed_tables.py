"""Between a rename at the source and the next row of `_offsets`, a table is known by its identity (B15)."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.lake.history import load_history, record_versions
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets
from mssql_cdc.lake.steps import Entry, OffsetRow, SnapshotBegun, SnapshotEnded, Status
from mssql_cdc.records import JsonLinesStream, open_output, write_records
from mssql_cdc.records.left_behind import left_behind
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.write import Resumed, records_behind
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import AT, Change, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

FOLDERS = {1: "dbo/a", 2: "dbo/b", 3: "dbo/a!3"}


def cut(
    lake: Lake,
    to: int,
    names: dict[str, int],
    *,
    batches: dict[int, int] | None = None,
    minutes: int = 0,
    status: Status = "streaming",
    **more: Any,
) -> None:
    """A complete cut at which each table, by its name now, has its object id; those of `batches` have newer ones."""
    entries = {
        table(name).table_id.text: Entry(
            status, to=lsn(to).text, batch=(batches or {}).get(one, 1), object_id=one, folder=FOLDERS[one]
        )
        for name, one in names.items()
    }
    row = OffsetRow(**{"kind": "range", "complete": True, **more}, at=AT + timedelta(minutes=minutes), tables=entries)
    row = replace(row, to=lsn(to).text)
    append_offsets(lake.layout, row, seen=load_offsets(lake.layout))


def known(lake: Lake, names: dict[str, int]) -> None:
    """The history knows the tables by these names."""
    found = [replace(table(name), object_id=one) for name, one in names.items()]
    present = {table(name).table_id: one for name, one in names.items()}
    history = load_history(lake.layout).identified(present, frozenset({1, 2}))
    record_versions(lake.layout, found, known=history, at=AT)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, {"include.schema.changes": False})
    for number, name in enumerate(("a", "b"), 1):
        schema = lake.add(table(name, object_id=number))
        lake.append(schema, Change(number, "c", after={"id": 10 * number}))
    cut(lake, 2, {"a": 1, "b": 2})
    return lake


RENAMES = pytest.mark.parametrize(
    "names",
    [{"c": 1, "b": 2}, {"b": 1, "a": 2}, {"c": 1, "b": 2, "a": 3}],
    ids=["another name", "exchanged names", "a name that another table took"],
)


@RENAMES
def test_records_are_the_same_after_a_rename_that_no_row_of_offsets_names(lake: Lake, names: dict[str, int]):
    before = lake.records()
    assert [one["key"]["id"] for one in before] == [10, 20]
    known(lake, names)
    assert lake.records() == before
    cut(lake, 3, {name: one for name, one in names.items() if one != 3})
    assert lake.records() == before


@RENAMES
def test_an_output_gets_no_record_twice_after_a_rename(lake: Lake, names: dict[str, int], tmp_path: Path):
    """Of a table that was not found, nothing counted as written: all of it came again, as late changes."""

    def written() -> int:
        with open_output(str(tmp_path / "records.jsonl"), lake.connector) as output:
            return write_records(lake.connector, output=output)

    assert written() == 2
    known(lake, names)
    assert written() == 0
    cut(lake, 3, {name: one for name, one in names.items() if one != 3})
    assert written() == 0


def test_records_of_a_lost_table_are_rendered_though_another_table_has_its_name(lake: Lake):
    """Those that were not rendered before were left out for as long as the other one had it."""
    known(lake, {"a": 2})
    cut(lake, 3, {"a": 2})
    assert [(one["topic"], one["key"]["id"]) for one in lake.records()] == [
        ("server1.testDB1.dbo.a", 10),
        ("server1.testDB1.dbo.b", 20),
    ]
    for name, ids in {"dbo.a": [20], "dbo.a (object id 1)": [10]}.items():
        selected = io.BytesIO()
        write_records(lake.connector, output=JsonLinesStream(selected), selection=Selection(tables=(name,)))
        assert [json.loads(line)["key"]["id"] for line in selected.getvalue().splitlines()] == ids


def test_a_consumer_is_told_of_a_lost_table_whose_name_another_one_has(lake: Lake, tmp_path: Path):
    known(lake, {"a": 2})
    cut(lake, 3, {"a": 2})
    change = Change(4, "c", after={"id": 30})
    lake.append(replace(table("b", object_id=2), version=1), change)
    cut(lake, 4, {"a": 2}, batches={2: 2})
    with open_output(str(tmp_path / "records.jsonl"), lake.connector) as output:
        write_records(lake.connector, output=output)
        output.keep()
    with open_output(str(tmp_path / "records.jsonl"), lake.connector) as output:
        kept = output.kept
    assert kept is not None
    state = kept.databases[DATABASE]
    told = left_behind(lake.connector, DATABASE, state)
    assert told is not None
    assert "testDB1.dbo.a (object id 1) (streaming) was read up to" in str(told)


def test_a_record_has_the_capture_time_of_its_own_table(lake: Lake):
    """Batches count per table; that of the one which has the name now was taken."""
    lake.append(replace(table("b", object_id=2), version=1), Change(4, "c", after={"id": 30}))
    known(lake, {"b": 1, "a": 2})
    cut(lake, 4, {"b": 1, "a": 2}, batches={2: 2}, minutes=10)
    times = {one["key"]["id"]: one["value"]["ts_ms"] for one in lake.records()}
    assert times[10] == times[20]
    assert times[30] - times[20] == 600_000


def snapshot(lake: Lake, *, status: Status) -> None:
    """Both tables have rows of one snapshot."""
    for number, name in enumerate(("a", "b"), 1):
        row = Change(4, "r", after={"id": 10 * number + 5})
        lake.append(replace(table(name, object_id=number), version=1), row, flag="1")
    facts = SnapshotBegun(snapshot="first", number=1)
    more = {"kind": "snapshot", "partition": "first", "facts": facts, "status": status}
    cut(lake, 4, {"a": 1, "b": 2}, batches={1: 2, 2: 2}, complete=status == "streaming", **more)


@RENAMES
def test_a_stream_goes_on_inside_a_snapshot_after_a_rename(lake: Lake, names: dict[str, int]):
    """It was not found under the name that it had: the output could not go on."""
    snapshot(lake, status="streaming")
    whole = list(records_behind(lake.connector, DATABASE, Resumed(None)))
    known(lake, names)
    cut(lake, 5, {name: one for name, one in names.items() if one != 3}, batches={1: 2, 2: 2})
    every = [one for rendered in whole for one in rendered.records.column("key").to_pylist()]
    for place, rendered in enumerate(whole):
        rest = records_behind(lake.connector, DATABASE, Resumed(rendered.state))
        written = [one for before in whole[: place + 1] for one in before.records.column("key").to_pylist()]
        assert written + [one for own in rest for one in own.records.column("key").to_pylist()] == every


def test_a_snapshot_of_a_table_that_is_renamed_during_it_ends_under_its_new_name(lake: Lake):
    """It stayed open under the former name, and no record behind it came any more."""
    snapshot(lake, status="snapshot")
    assert len(lake.records()) == 2
    known(lake, {"c": 1, "b": 2})
    for name, one in {"c": 1, "b": 2}.items():
        mark = LogMark(lsn(4))
        facts = SnapshotEnded(
            table=table(name).table_id.text, snapshot="first", number=1, signal=None, mark=mark, low=lsn(4).text
        )
        cut(lake, 4, {name: one}, batches={1: 2, 2: 2}, kind="snapshot", partition="first", facts=facts, complete=False)
    cut(lake, 5, {"c": 1, "b": 2}, batches={1: 2, 2: 2})
    assert len(lake.records()) == 4


def test_a_snapshot_of_a_table_whose_name_another_one_has_taken_holds_nothing_back(lake: Lake):
    """It was dropped during its first snapshot, and nothing goes by its name that could end it."""
    snapshot(lake, status="snapshot")
    more = {"kind": "snapshot", "partition": "first", "facts": SnapshotBegun(snapshot="first", number=1)}
    cut(lake, 4, {"a": 1}, batches={1: 2}, complete=False, **more)
    known(lake, {"b": 1})
    assert len(lake.records()) == 2
    cut(lake, 5, {"b": 1}, batches={1: 2})
    assert sorted(one["key"]["id"] for one in lake.records()) == [10, 15, 20, 25]
