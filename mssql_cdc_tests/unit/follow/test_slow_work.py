"""The end of slow work: it is bounded, whatever the work does."""

from __future__ import annotations

import threading
from unittest.mock import patch

from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.schema import TableId

TABLE = TableId("shop", "dbo", "orders")
LONG = 20.0
"""How long work goes on that nothing ends."""


class Jobs:
    """Spark's jobs, of which a cancel ends those that are active."""

    def __init__(self) -> None:
        self.begun, self._canceled, self.outcomes = threading.Event(), threading.Event(), list[str]()

    def run(self) -> None:
        self._canceled.clear()
        self.begun.set()
        self.outcomes.append("canceled" if self._canceled.wait(LONG) else "done")

    def cancel(self) -> None:
        self._canceled.set()


def test_every_job_of_work_that_takes_longer_than_its_run_is_canceled():
    jobs, slow, ended = Jobs(), SlowWork(), threading.Event()

    def work() -> int:
        for _ in range(3):
            jobs.run()
        ended.set()
        return 0

    slow.begin(TABLE, int, work)
    assert jobs.begun.wait(LONG)
    with patch("mssql_cdc.follow.slow_work.FORCE_SECONDS", LONG):
        slow.close(jobs.cancel, patience=0)
    assert ended.is_set()
    assert jobs.outcomes == ["canceled"] * 3


def test_work_that_nothing_ends_does_not_hold_the_end_of_its_run_up():
    begun, opened, ended, cancels = threading.Event(), threading.Event(), threading.Event(), list[int]()

    def work() -> int:
        begun.set()
        opened.wait(LONG)
        ended.set()
        return 0

    slow = SlowWork()
    slow.begin(TABLE, int, work)
    assert begun.wait(LONG)
    with patch("mssql_cdc.follow.slow_work.FORCE_SECONDS", 0.1):
        slow.close(lambda: cancels.append(1), patience=0)
    assert not ended.is_set()
    assert cancels
    opened.set()
    assert ended.wait(LONG)


def test_work_aside_is_waited_for_like_that_of_tables_and_what_has_not_begun_is_dropped():
    begun, opened, done = threading.Event(), threading.Event(), list[str]()

    def aside() -> None:
        begun.set()
        opened.wait(LONG)
        done.append("aside")

    slow = SlowWork()
    slow.aside(aside)
    slow.begin(TABLE, int, lambda: done.append("table") or 0)
    assert begun.wait(LONG)
    with patch("mssql_cdc.follow.slow_work.FORCE_SECONDS", LONG):
        slow.close(opened.set, patience=0)
    assert done == ["aside"]


def test_a_process_ends_although_work_goes_on():
    slow = SlowWork()
    slow.begin(TABLE, bool, lambda: threading.current_thread().daemon)
    while not slow.ended:
        threading.Event().wait(0.01)
    done, _ = slow.take(bool)
    assert done == {TABLE: True}, "the interpreter waits for the thread, whatever it does"
    slow.close(lambda: None)


def test_pieces_of_work_are_done_one_after_another_in_their_order():
    slow, done = SlowWork(), list[str]()
    opened = threading.Event()
    slow.aside(lambda: done.append("first" if opened.wait(LONG) else "late"))
    for name in ("a", "b", "c"):
        slow.begin(TableId("shop", "dbo", name), int, lambda name=name: done.append(name) or 0)
    opened.set()
    while len(done) < 4:
        threading.Event().wait(0.01)
    slow.close(lambda: None)
    assert done == ["first", "a", "b", "c"]
    assert len(slow.take(int)[0]) == 3
