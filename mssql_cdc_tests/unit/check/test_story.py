"""Which snapshots a table's change log has: those of its own identity, under whatever name they were taken (B15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mssql_cdc.check.story import WholeReads, log_start, story_of
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, SnapshotEnded, Stamp, snapshot_ended
from mssql_cdc.lsn import cut_text, snapshot_position_text
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import lsn, orders

A, B, C = (TableId("shop", "dbo", name) for name in "abc")
LOWS = {1: 100, 2: 900}
"""The lowest position of each table's only snapshot, by the table's identity; the snapshot has the same number."""


def version(table: TableId, identity: int, number: int = 1) -> TableSchema:
    return replace(orders(version=number, object_id=identity, instance=f"i{identity}"), table_id=table)


def ended(table: TableId, identity: int | None, low: int, number: int, *, folder: str, epoch: int = 0):
    facts = SnapshotEnded(
        table=table.text,
        snapshot=f"snapshot-{number}",
        number=number,
        signal=None,
        mark=LogMark(lsn(low + 5)),
        low=lsn(low).text,
    )
    entry = Entry("streaming", to=lsn(low).text, epoch=epoch, object_id=identity, folder=folder, schema=1, batch=1)
    return snapshot_ended(
        Stamp(at=datetime(2026, 11, 22, tzinfo=UTC), run_id="run", epoch=epoch), entry, facts, witness=None
    )


READ = (ended(A, 1, LOWS[1], 1, folder="fa"), ended(B, 2, LOWS[2], 2, folder="fb"))
WHOLE: WholeReads = frozenset({(1, A.text), (2, B.text)})
FOLDERS = {1: "fa", 2: "fb"}
AT_FIRST = SchemaHistory({A.text: (version(A, 1),), B.text: (version(B, 2),)})
STATES: Mapping[str, tuple[Mapping[TableId, int], SchemaHistory]] = {
    "as it was": ({A: 1, B: 2}, AT_FIRST),
    "renamed": ({C: 1, B: 2}, AT_FIRST),
    "exchanged": ({A: 2, B: 1}, AT_FIRST),
    "renamed, and read since": (
        {C: 1, B: 2},
        SchemaHistory({C.text: (version(A, 1), version(C, 1, 2)), B.text: (version(B, 2),)}),
    ),
    "exchanged, and read since": (
        {A: 2, B: 1},
        SchemaHistory({A.text: (version(B, 2), version(A, 2, 2)), B.text: (version(A, 1), version(B, 1, 2))}),
    ),
}


def offsets_of(*rows) -> Offsets:
    offsets = Offsets()
    for number, row in enumerate(rows, 1):
        offsets = offsets.with_row(row, number)
    return offsets


@pytest.mark.parametrize("state", STATES)
def test_the_story_of_a_table_begins_at_its_own_snapshot_whatever_its_name_is(state: str):
    """It was found by the recorded name: a renamed table had none, and one of an exchange had the other one's."""
    present, known = STATES[state]
    offsets = offsets_of(*READ)
    history = known.identified(present, offsets.met(present))
    for table, identity in present.items():
        folder = FOLDERS[identity]
        versions = history.versions[table.text]
        story = story_of(versions, folder=folder, offsets=offsets, whole_reads=WHOLE, hidden=(), source=())
        low = LOWS[identity]
        assert story.low == snapshot_position_text(0, lsn(low), number=identity)
        assert story.judged == cut_text(0, lsn(low + 5))
        assert story.whole
        assert {one.object_id for one in story.versions} == {identity}
        assert story.versions == history.versions[table.text]
        assert log_start(story.versions, folder=folder, offsets=offsets) == story.low


def test_a_name_that_another_table_has_taken_since_leads_to_the_tables_own_snapshot():
    """`a` became `c` and has not changed since; `b` became `a` and has."""
    taken = ended(A, 2, 950, 3, folder="fb")
    own, other = (version(A, 1),), (version(B, 2), version(A, 2, 2))
    offsets = offsets_of(*READ, taken)
    assert log_start(own, folder="fa", offsets=offsets) == snapshot_position_text(0, lsn(100), number=1)
    assert log_start(other, folder="fb", offsets=offsets) == snapshot_position_text(0, lsn(950), number=3)


def test_a_snapshot_of_another_table_with_the_same_identity_is_not_its_own():
    """Behind a restore, the source gives the identity of a table that the backup lacks to a new one."""
    again = ended(C, 1, 50, 7, folder="fc", epoch=1)
    offsets = offsets_of(*READ, again)
    assert log_start((version(A, 1),), folder="fa", offsets=offsets) == snapshot_position_text(0, lsn(100), number=1)
    assert log_start((version(C, 1),), folder="fc", offsets=offsets) == snapshot_position_text(1, lsn(50), number=7)


def test_a_snapshot_that_was_recorded_without_an_identity_is_found_by_each_name_of_the_table():
    offsets = offsets_of(ended(A, None, 100, 1, folder="fa"))
    versions = (version(A, 1), version(C, 1, 2))
    assert log_start(versions, folder="fa", offsets=offsets) == snapshot_position_text(0, lsn(100), number=1)
    assert log_start((version(B, 2),), folder="fb", offsets=offsets) == ""
