"""What the state of incremental snapshots keeps of tables that were left unread."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mssql_cdc.capture.incremental.state import State, Unread, Wanted, state_of_text, state_text
from mssql_cdc.schema import TableId

AT = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = Wanted(table=TableId("shop", "dbo", "orders"), signal="s", object_id=7)


def left(state: State, status: str, wanted: Wanted = ORDERS) -> State:
    """The state behind one more snapshot of the table."""
    return state.asked([wanted]).next_table(status, AT)


def pause(state: State) -> timedelta | None:
    unread = state.unread_of(7, 0)
    return unread.again - AT if unread is not None else None


def test_the_pause_of_an_unread_table_doubles_up_to_a_day():
    state, found = State(), []
    for _ in range(20):
        state = left(state, "SQL_EXCEPTION")
        found.append(pause(state))
    assert found[:3] == [timedelta(minutes=10), timedelta(minutes=20), timedelta(minutes=40)]
    assert set(found[8:]) == {timedelta(days=1)}
    assert len(state.unread) == 1
    assert state_of_text(state_text(state)) == state


@pytest.mark.parametrize("status", ["SUCCEEDED", "EMPTY"])
def test_an_unread_table_that_is_read_is_forgotten(status: str):
    failed = left(State(), "SKIPPED")
    assert left(failed, status).unread == ()
    other = Wanted(table=TableId("shop", "dbo", "people"), signal="s", object_id=8)
    assert left(failed, status, other).unread == failed.unread


def test_an_unread_table_that_is_stopped_is_forgotten():
    waiting = left(State(), "SKIPPED").asked([ORDERS])
    assert waiting.stopped([ORDERS.table]).unread == ()
    assert waiting.stopped([]).unread == waiting.unread


@pytest.mark.parametrize("more", [{"condition": "id = 1"}, {"surrogate": "no_such_column"}, {"object_id": None}])
def test_a_snapshot_of_some_rows_or_in_another_order_leaves_no_unread_table(more: dict[str, str | None]):
    wanted = Wanted(**{"table": ORDERS.table, "signal": "s", "object_id": 7, **more})  # pyright: ignore[reportArgumentType]
    assert left(State(), "SQL_EXCEPTION", wanted).unread == ()


def test_a_table_of_another_epoch_is_no_unread_table_of_this_one():
    state = left(State(), "SKIPPED")
    assert state.unread == (Unread(object_id=7, epoch=0, times=1, again=AT + timedelta(minutes=10)),)
    assert state.unread_of(7, 1) is None
