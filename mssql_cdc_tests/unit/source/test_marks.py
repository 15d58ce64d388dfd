"""When scan sessions prove that capture has passed a mark (correctness, "Terms": scanned)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.source.sqlserver.log_end import Scan, proven
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import lsn

MARK = LogMark(lsn(100), 7, 3)


def scan(number: int, *, end: int | None = None, commit: int | None = None, empty: int = 0, done: bool = True) -> Scan:
    return Scan(number, done, empty, lsn(end) if end else None, lsn(commit) if commit else None)


def test_a_session_that_ended_below_the_mark_proves_nothing():
    """A session ends after maxtrans x maxscans transactions, not at the end of the log (review, bug 1)."""
    assert not proven(MARK, [scan(8, end=40, commit=40), scan(9, end=99, commit=99)])


def test_a_session_that_reached_the_mark_is_proof():
    assert proven(MARK, [scan(8, end=100)])
    assert proven(MARK, [scan(8, end=90, commit=101)])


def test_a_failed_or_running_session_proves_nothing():
    assert not proven(MARK, [scan(8, end=100, done=False), scan(9, empty=5, done=False)])
    row = (8, "Done", 1, 5, "00000000:00000000:0064", None)
    assert not proven(MARK, [Scan.of(row)])


def test_the_second_empty_scan_after_the_mark_is_proof():
    assert not proven(MARK, [scan(7, empty=4)])
    assert proven(MARK, [scan(7, empty=5)])
    assert not proven(MARK, [scan(8, empty=1)])
    assert proven(MARK, [scan(8, empty=2)])


def test_empty_scans_before_the_mark_are_not_proof():
    assert not proven(MARK, [scan(6, empty=50), scan(7, empty=3)])


def test_restarted_session_numbers_come_after_the_mark():
    assert not proven(MARK, [scan(1, end=50)])
    assert proven(MARK, [scan(1, end=50), scan(2, empty=2)])


def test_the_lsn_of_an_empty_scan_is_none():
    """SQL Server shows zeros followed by a NUL character."""
    row = (8, "Done", 0, 1, "00000000:00000000:0000\0", "00000000:00000000:0000\0")
    assert Scan.of(row) == scan(8, empty=1)


@given(st.data())
def test_an_accepted_proof_has_captured_everything_below_the_mark(data: st.DataObject):
    """A random capture job: a backlog of transactions, sessions of a few of them, restarted numbering."""
    log: list[int] = []
    captured, number, sessions, mark, empty = 0, 0, [], None, 0
    below: list[int] = []
    for _ in range(data.draw(st.integers(1, 25))):
        match data.draw(st.sampled_from(["commit", "commit", "scan", "mark", "restart"])):
            case "commit":
                log.append((log[-1] if log else 10) + data.draw(st.integers(1, 3)))
            case "scan":
                left = [at for at in log if at > captured][: data.draw(st.integers(1, 3))]
                if left:
                    captured, number, empty = left[-1], number + 1, 0
                    sessions.append(scan(number, end=captured, commit=captured))
                elif empty:
                    empty += 1
                    sessions[-1] = scan(number, empty=empty)
                else:
                    number, empty = number + 1, 1
                    sessions.append(scan(number, empty=1))
            case "mark" if mark is None:
                newest = sessions[-1] if sessions else scan(0)
                end = (log[-1] if log else 10) + 1
                mark = LogMark(lsn(end), newest.session_id, newest.empty_scans)
                below = [at for at in log if at < end]
            case "restart":
                number, empty, sessions = 0, 0, []
        if mark is not None and proven(mark, sessions):
            assert all(at <= captured for at in below)
