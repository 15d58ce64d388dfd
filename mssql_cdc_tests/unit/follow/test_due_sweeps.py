"""A sweep waits until what was read is in a complete cut that passed it (C19)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mssql_cdc.capture.current_tables import mergeable_batch
from mssql_cdc.follow.sweeps import due_sweeps
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import (
    Entry,
    OffsetRow,
    SnapshotEnded,
    Stamp,
    SweepBound,
    chunks_emitted,
    epoch_begun,
    incremental_ended,
    rows_swept,
    snapshot_ended,
)
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import AT, ORDERS, lsn

STAMP = Stamp(at=AT, run_id="r", epoch=0)


def test_rows_outside_every_cut_are_not_taken_for_deleted(tmp_path: Path):
    layout, name, known = Layout(str(tmp_path), "server1", "shop"), ORDERS.text, Offsets()
    tables = {ORDERS: 1}

    def after(row: OffsetRow) -> Offsets:
        return append_offsets(layout, row, seen=known)

    def entry(batch: int) -> dict[str, Entry]:
        return {name: Entry("streaming", to=lsn(9).text, batch=batch, object_id=1)}

    known = after(OffsetRow("range", AT, entry(3), to=lsn(9).text, complete=True))
    known = after(chunks_emitted(STAMP, entry(5), to=lsn(9).text, complete=False, witness=None))
    known = after(incremental_ended(STAMP, table=name, object_id=1, number=2, batch=5, low=lsn(4).text))
    assert list(due_sweeps(tables, known)) == []

    known = after(OffsetRow("range", AT, entry(6), to=lsn(10).text, complete=True))
    (due,) = due_sweeps(tables, known)
    assert (due.table, due.number, due.low) == (ORDERS, 2, lsn(4))

    known = after(rows_swept(STAMP, table=name, object_id=1, number=2))
    assert list(due_sweeps(tables, known)) == []


def test_a_snapshot_that_ends_later_does_not_lower_the_bound_of_a_pending_sweep():
    """An incremental snapshot began before a blocking one and ended behind it: rows between the two bounds stayed."""
    name, entry, tables = ORDERS.text, Entry("streaming", to=lsn(30).text, batch=5, object_id=1), {ORDERS: 1}
    ended = SnapshotEnded(
        table=name, snapshot="p", number=6, signal=None, mark=LogMark(lsn(20), 1, 1), low=lsn(20).text,
        sweep=SweepBound(low=lsn(20).text, number=6),
    )  # fmt: skip
    known = Offsets().with_row(snapshot_ended(STAMP, entry, ended, witness=None), 1)
    known = known.with_row(incremental_ended(STAMP, table=name, object_id=1, number=5, batch=7, low=lsn(10).text), 2)
    cut = OffsetRow("range", AT, {name: replace(entry, batch=6)}, lsn(30).text, complete=True)
    known = known.with_row(cut, 3)
    assert list(due_sweeps(tables, known)) == [], "the rows of the incremental snapshot are in no cut yet"

    cut = OffsetRow("range", AT, {name: replace(entry, batch=7, to=lsn(31).text)}, lsn(31).text, complete=True)
    known = known.with_row(cut, 4)
    (due,) = due_sweeps(tables, known)
    assert (due.number, due.low) == (6, lsn(20))

    known = known.with_row(rows_swept(STAMP, table=name, object_id=1, number=6), 5)
    assert list(due_sweeps(tables, known)) == []


def test_sweep_of_an_earlier_epoch_is_never_due():
    """Its snapshot was not opened: what it read is in no current table, where all rows would look deleted."""
    name, entry = ORDERS.text, Entry("streaming", to=lsn(9).text, batch=5, object_id=1)
    ended = SnapshotEnded(
        table=name, snapshot="p", number=2, signal=None, mark=LogMark(lsn(50), 1, 1), low=lsn(9).text,
        sweep=SweepBound(low=lsn(9).text, number=2),
    )  # fmt: skip
    tables = {ORDERS: 1}
    known = Offsets().with_row(OffsetRow("range", AT, {name: replace(entry, batch=3)}, lsn(9).text, complete=True), 1)
    known = known.with_row(snapshot_ended(STAMP, entry, ended, witness=None), 2)
    assert (list(due_sweeps(tables, known)), mergeable_batch(ORDERS, known, entry)) == ([], None)

    known = known.with_row(epoch_begun(replace(STAMP, epoch=1), restored="why", by="me"), 3)
    assert (list(due_sweeps(tables, known)), mergeable_batch(ORDERS, known, entry)) == ([], 3)

    others = OffsetRow("range", AT, {"other": replace(entry, epoch=1, object_id=2)}, lsn(20).text, 1, complete=True)
    known = known.with_row(others, 4)
    assert (list(due_sweeps(tables, known)), mergeable_batch(ORDERS, known, entry)) == ([], None)


def test_a_sweep_goes_with_a_table_that_is_renamed_and_never_to_one_that_takes_its_name():
    """Going by name, the sweep was lost, or deleted the living rows of the other table (B15)."""
    name, new = ORDERS.text, replace(ORDERS, name="purchases")
    mine, other = Entry("streaming", to=lsn(9).text, batch=5, object_id=1), Entry("streaming", object_id=2, batch=7)
    ended = SnapshotEnded(
        table=name, snapshot="p", number=2, signal=None, mark=LogMark(lsn(10), 1, 1), low=lsn(9).text,
        sweep=SweepBound(low=lsn(9).text, number=2),
    )  # fmt: skip
    known = Offsets().with_row(snapshot_ended(STAMP, mine, ended, witness=None), 1)
    exchanged = {ORDERS: 2, new: 1}
    known = known.with_row(OffsetRow("range", AT, {name: replace(other, to=lsn(20).text)}, lsn(20).text), 2)
    assert list(due_sweeps(exchanged, known)) == [], "no row names it by its new name yet"
    entries = {name: replace(other, to=lsn(30).text), new.text: replace(mine, to=lsn(30).text, batch=8)}
    known = known.with_row(OffsetRow("range", AT, entries, lsn(30).text, complete=True), 3)
    (due,) = due_sweeps(exchanged, known)
    assert (due.table, due.number) == (new, 2)
    known = known.with_row(rows_swept(STAMP, table=new.text, object_id=1, number=2), 4)
    assert list(due_sweeps(exchanged, known)) == []


def test_a_table_that_exchanged_its_name_is_not_merged_by_the_batches_of_the_other_one():
    """Until a row names it so, the cut has the other table's batch under its name; the folder tells them (B15)."""
    name, new = ORDERS.text, replace(ORDERS, name="purchases")
    mine = Entry("streaming", to=lsn(9).text, batch=5, object_id=1, folder="orders")
    other = Entry("streaming", object_id=2, batch=7, folder="purchases")
    entries = {name: mine, new.text: replace(other, to=lsn(9).text)}
    known = Offsets().with_row(OffsetRow("range", AT, entries, lsn(9).text, complete=True), 1)
    assert mergeable_batch(ORDERS, known, known.entry_of(name, 1)) == 5
    assert mergeable_batch(ORDERS, known, known.entry_of(name, 2)) == 7
    exchanged = {name: replace(other, to=lsn(9).text), new.text: mine}
    known = known.with_row(OffsetRow("range", AT, exchanged, lsn(9).text, complete=True), 2)
    assert mergeable_batch(new, known, known.entry_of(new.text, 1)) == 5
