"""What rows of the signal table ask for."""

from __future__ import annotations

import pytest

from mssql_cdc.schema import TableId
from mssql_cdc.snapshot.signals import (
    ExecuteSnapshot,
    Ignored,
    Log,
    PauseSnapshot,
    Signal,
    StopSnapshot,
    parse,
)

A, B, DOTTED = TableId("db", "dbo", "a"), TableId("db", "dbo", "b"), TableId("db", "dbo", "My.Table")


@pytest.mark.feature("SIG-08", "BLK-01")
def test_blocking_snapshot_names_its_tables_and_statements():
    action = parse(
        Signal(
            "1",
            "execute-snapshot",
            '{"type": "BLOCKING", "data-collections": ["db.dbo.b", "dbo.*"], "additional-conditions": '
            '[{"data-collection": "db.dbo.a", "filter": "SELECT * FROM dbo.a WHERE id < 5"}]}',
        )
    )
    assert isinstance(action, ExecuteSnapshot)
    assert action.kind == "blocking"
    assert action.tables([A, B]) == (B, A)
    assert action.filter_of(A) == "SELECT * FROM dbo.a WHERE id < 5"
    assert action.filter_of(B) is None


@pytest.mark.feature("INC-01", "INC-02", "INC-05")
def test_incremental_is_the_default_and_quoted_names_are_understood():
    data = '{"data-collections": ["db.dbo.\\"My.Table\\""], "surrogate-key": "k"}'
    action = parse(Signal("1", "execute-snapshot", data))
    assert isinstance(action, ExecuteSnapshot)
    assert (action.kind, action.surrogate_key, action.tables([A, DOTTED])) == ("incremental", "k", (DOTTED,))


@pytest.mark.feature("INC-13", "INC-14")
def test_stop_pause_and_resume():
    assert parse(Signal("1", "stop-snapshot", '{"type": "incremental"}')) == StopSnapshot("1")
    assert parse(Signal("2", "pause-snapshot", None)) == PauseSnapshot("2", paused=True)
    assert parse(Signal("3", "resume-snapshot", None)) == PauseSnapshot("3", paused=False)


def test_log_carries_its_message():
    assert parse(Signal("1", "log", '{"message": "at {}"}')) == Log("1", "at {}")


@pytest.mark.feature("SIG-09")
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("execute-snapshot", "{"),
        ("execute-snapshot", "[]"),
        ("execute-snapshot", '{"data-collections": []}'),
        ("execute-snapshot", '{"type": "sideways", "data-collections": ["a"]}'),
        ("dance", None),
        ("snapshot-window-open", '{"openWindowTimestamp": "x"}'),
    ],
)
def test_signals_that_make_no_sense_are_named_and_ignored(kind, data):
    action = parse(Signal("1", kind, data))
    assert isinstance(action, Ignored)
    assert action.reason
