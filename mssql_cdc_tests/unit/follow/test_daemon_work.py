"""Work in a daemon thread: its result, or its error, reaches the thread that takes it."""

from __future__ import annotations

import threading

import pytest

from mssql_cdc.errors import SourceUnavailableError, TaskError
from mssql_cdc.follow.daemon_work import DaemonWork


def raising(error: BaseException) -> DaemonWork[int]:
    def work() -> int:
        raise error

    found = DaemonWork[int]("snapshot")
    found.begin(work)
    assert found.wait(10)
    return found


def test_work_runs_until_it_has_ended_and_is_free_when_it_is_taken():
    opened = threading.Event()
    work = DaemonWork[int]("snapshot")
    assert (work.is_free, work.runs, work.ended, work.wait(0)) == (True, False, False, True)
    work.begin(lambda: 7 if opened.wait(10) else 0)
    assert (work.is_free, work.runs, work.ended, work.wait(0)) == (False, True, False, False)
    opened.set()
    assert work.wait(10)
    assert (work.is_free, work.runs, work.ended) == (False, False, True)
    assert work.take() == 7
    assert (work.is_free, work.runs, work.ended) == (True, False, False)


def test_an_error_with_a_remedy_is_returned_as_it_is():
    error = SourceUnavailableError("the port is closed")
    assert raising(error).take() is error


def test_an_unexpected_error_says_which_work_failed_and_where_but_not_its_text():
    found = raising(ValueError("odd")).take()
    assert isinstance(found, TaskError)
    assert str(found).startswith("The snapshot failed: ")
    assert "odd" not in str(found), "it may be a value of a row"
    assert "test_daemon_work.py" in str(found)


def test_an_interrupt_ends_the_thread_that_takes_the_result():
    work = raising(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        work.take()
    assert work.is_free
