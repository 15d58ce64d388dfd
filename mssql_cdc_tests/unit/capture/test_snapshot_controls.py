"""Which signals concern a snapshot, and what they make of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mssql_cdc.capture.requests import refused_stop
from mssql_cdc.capture.snapshot_controls import Controls, heard_until, stoppable
from mssql_cdc.check.story import log_start
from mssql_cdc.config.signals import PauseSnapshot, ResumeSnapshot, StopSnapshot
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, SnapshotEnded, Stamp, signal_answered, snapshot_begun, snapshot_ended
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import AT, lsn, orders

A, B = TableId("shop", "dbo", "a"), TableId("shop", "dbo", "b")
STAMP = Stamp(at=AT, run_id="run", epoch=0)
PAUSE, RESUME = PauseSnapshot("p"), ResumeSnapshot("r")


def begun(**entries: Entry) -> Offsets:
    tables = {f"shop.dbo.{name}": entry for name, entry in entries.items()}
    row = snapshot_begun(
        STAMP, tables, snapshot="s", number=1, signal=None, mark=LogMark(lsn(9)), signals=4, witness=None
    )
    return Offsets().with_row(row, 1)


@pytest.mark.parametrize(
    ("found", "since", "paused"),
    [
        ([], 0, False),
        ([PAUSE], 0, True),
        ([PAUSE], 1, False),
        ([PAUSE], None, False),
        ([PAUSE, RESUME], 0, False),
        ([PAUSE, RESUME, PAUSE], 0, True),
        ([PAUSE, StopSnapshot("s")], 0, True),
    ],
)
def test_the_last_order_after_the_begin_says_whether_a_snapshot_is_paused(found, since, paused) -> None:
    assert Controls(tuple(enumerate(found, start=1))).paused(since) is paused


def test_a_stop_names_tables_or_means_all_and_the_first_one_counts() -> None:
    some, all_ = StopSnapshot("some", ("dbo.a",)), StopSnapshot("all")
    controls = Controls(((1, some), (2, all_)))
    assert controls.stopped([A, B], 0) == {A: "some", B: "all"}
    assert controls.stopped([A, B], 1) == {A: "all", B: "all"}
    assert controls.stopped([A, B], 2) == controls.stopped([A, B], None) == {}


def test_a_stop_of_a_table_by_its_name_leaves_another_one_alone_that_is_snapshotted() -> None:
    stop = StopSnapshot("one", ("dbo.a$",))
    assert Controls(((1, stop),)).stopped([A, B], 0) == {A: "one"}
    assert Controls(((1, stop),), names=(("shop", "dbo", "a$"),)).stopped([A, B], 0) == {}


def test_the_begin_of_a_snapshot_says_which_signals_concern_it() -> None:
    offsets = begun(a=Entry("snapshot"))
    assert heard_until(offsets, "s") == 4
    assert heard_until(offsets, "another") is None
    assert heard_until(offsets.with_row(signal_answered(STAMP, snapshot="t", signal="x@1:"), 2), "t") is None


def test_a_table_without_a_position_cannot_be_stopped() -> None:
    offsets = begun(a=Entry("snapshot"), b=Entry("snapshot", to=lsn(3).text))
    assert (stoppable(offsets, A), stoppable(offsets, B)) == (False, True)
    assert "shop.dbo.a cannot be stopped" in str(refused_stop(offsets, [A.text]))
    assert refused_stop(offsets, [A.text, B.text]) is None
    assert refused_stop(offsets, []) is None


def test_a_stopped_snapshot_is_no_start_of_a_log_that_adds_up_to_the_table() -> None:
    entry = Entry("streaming", to=lsn(3).text, object_id=1)
    facts = {"table": A.text, "snapshot": "s", "signal": None, "mark": LogMark(lsn(9))}
    whole = SnapshotEnded(number=1, low=lsn(2).text, **facts)
    part = SnapshotEnded(number=2, low=lsn(5).text, stopped="x", **facts)
    offsets = Offsets().with_row(snapshot_ended(STAMP, entry, whole, witness=None), 1)
    versions = [replace(orders(version=1, object_id=1, instance="i"), table_id=A)]
    start = log_start(versions, folder="dbo/a", offsets=offsets)
    stopped = offsets.with_row(snapshot_ended(STAMP, entry, part, witness=None), 2)
    assert log_start(versions, folder="dbo/a", offsets=stopped) == start != ""
