"""What the demo calls shown: neither a signal that was ignored nor an event that is there twice passes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.capture.requests import identity
from mssql_cdc.demo.evidence import findings
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import Entry, SnapshotEnded, Stamp, snapshot_ended
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import Change, append, change_log, lsn, orders

AT = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = orders()


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(str(tmp_path), "shop", "shop")


def found(layout: Layout) -> dict[str, int]:
    return {one.what: one.found for one in findings(layout)}


def signal(layout: Layout, key: str, kind: str, status: str) -> None:
    table = small_table(layout, "signals")
    row: dict[str, Any] = {"id": key, "type": kind, "status": status}
    table.append(table.state(), [row], {})


def test_an_event_that_is_there_twice_is_counted(layout: Layout):
    """Review, 7: events were counted as a set, so doubled ones passed."""
    home = layout.home(TableId("shop", "dbo", "audit_log"))
    event = Change(3, "c", after={"id": 1, "name": "a", "note": None})
    state = append(change_log(home, SCHEMA), SCHEMA, event)
    assert found(layout)["change events that are there twice"] == 0
    append(state, SCHEMA, event)
    assert found(layout)["change events that are there twice"] == 1


def test_a_signal_that_was_ignored_does_not_count(layout: Layout):
    """Review, 7: signals were counted whatever became of them."""
    signal(layout, "1", "log", "ignored")
    signal(layout, "2", "execute-snapshot", "ignored")
    signal(layout, "3", "execute-snapshot", "requested")
    shown = found(layout)
    assert (shown["log signals"], shown["snapshots that a signal asked for"]) == (0, 0)
    signal(layout, "4", "log", "done")
    asked = identity(small_table(layout, "signals").rows()[2])
    ended = SnapshotEnded(table="t", snapshot="s", number=2, signal=asked, mark=LogMark(lsn(9)), low=lsn(8).text)
    row = snapshot_ended(Stamp(at=AT, run_id="run", epoch=0), Entry("streaming", to=lsn(9).text), ended, witness=None)
    append_offsets(layout, row, seen=load_offsets(layout))
    shown = found(layout)
    assert (shown["log signals"], shown["snapshots that a signal asked for"]) == (1, 1)
