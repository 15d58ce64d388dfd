"""When scan sessions prove that capture has passed a mark (correctness, "Terms": scanned)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.source.sqlserver.log_end import Scan, SeenLog, proven
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import lsn

MARK = LogMark(lsn(100), 7, 3)


def scan(number: int, *, commit: int | None = None, empty: int = 0, done: bool = True) -> Scan:
    return Scan(number, done, empty, lsn(commit) if commit else None)


def test_a_session_that_ended_below_the_mark_proves_nothing():
    """A session ends after maxtrans x maxscans transactions, not at the end of the log (review, bug 1)."""
    assert not proven(MARK, [scan(8, commit=40), scan(9, commit=99)])


def test_a_session_that_has_processed_a_commit_at_the_mark_is_proof():
    assert proven(MARK, [scan(8, commit=100)])
    assert proven(MARK, [scan(8, commit=101)])


def test_a_failed_or_running_session_proves_nothing():
    assert not proven(MARK, [scan(8, commit=100, done=False), scan(9, empty=5, done=False)])
    row = (8, "Done", 1, 5, "00000000:00000000:0064")
    assert not proven(MARK, [Scan.of(row)])


def test_the_second_empty_scan_after_the_mark_is_proof():
    assert not proven(MARK, [scan(7, empty=4)])
    assert proven(MARK, [scan(7, empty=5)])
    assert not proven(MARK, [scan(8, empty=1)])
    assert proven(MARK, [scan(8, empty=2)])


def test_empty_scans_before_the_mark_are_not_proof():
    assert not proven(MARK, [scan(6, empty=50), scan(7, empty=3)])


def test_restarted_session_numbers_come_after_the_mark():
    assert not proven(MARK, [scan(1, commit=50)])
    assert proven(MARK, [scan(1, commit=50), scan(2, empty=2)])


def test_the_lsn_of_an_empty_scan_is_none():
    """SQL Server shows zeros followed by a NUL character."""
    row = (8, "Done", 0, 1, "00000000:00000000:0000\0")
    assert Scan.of(row) == scan(8, empty=1)


def test_empty_scans_prove_nothing_where_capture_is_held_back():
    """In an availability group a scan finds nothing that a secondary has not hardened."""
    assert not proven(MARK, [scan(7, empty=50), scan(8, empty=50)], held_back=True)
    assert not proven(MARK, [scan(1, empty=50)], held_back=True)
    assert proven(MARK, [scan(8, commit=100)], held_back=True)


class Group:
    """A primary and one secondary: transactions, scans that see what the secondary has hardened, and looks."""

    def __init__(self) -> None:
        self.end, self.hardened, self.captured = 10, 11, 10
        self.sessions: list[Scan] = []

    def commit(self) -> None:
        self.end += 1

    def harden(self) -> None:
        self.hardened = self.end + 1

    def scan(self) -> None:
        number = self.sessions[-1].session_id if self.sessions else 0
        if self.captured < self.hardened - 1:
            self.captured = self.hardened - 1
            self.sessions.append(scan(number + 1, commit=self.captured))
        elif self.sessions and self.sessions[-1].empty_scans:
            self.sessions[-1] = scan(number, empty=self.sessions[-1].empty_scans + 1)
        else:
            self.sessions.append(scan(number + 1, empty=1))


def test_what_all_secondaries_had_hardened_before_two_empty_scans_is_captured():
    group, seen = Group(), SeenLog()
    for _ in range(2):
        seen.look(lsn(group.hardened), group.sessions, "fork")
        group.scan()
    assert seen.look(lsn(group.hardened), group.sessions, "fork") == lsn(11)
    group.commit()
    group.scan()
    assert seen.look(lsn(group.hardened), group.sessions, "fork") == lsn(11)


def test_another_history_and_a_restart_of_the_server_forget_what_was_hardened():
    for more in ([], [scan(1, empty=9)]):
        group, seen = Group(), SeenLog()
        for _ in range(3):
            seen.look(lsn(11), group.sessions, "fork")
            group.scan()
        group.sessions.append(scan(5, empty=9))
        assert seen.look(lsn(11), group.sessions, "fork") == lsn(11)
        sessions = more or group.sessions
        assert seen.look(lsn(11), sessions, "fork" if more else "another") is None


def test_a_secondary_that_has_not_hardened_what_another_had_ends_the_proof():
    """One that joins the group is behind: what the scans meanwhile saw is not known."""
    group, seen = Group(), SeenLog()
    seen.look(lsn(11), group.sessions, "fork")
    group.scan()
    group.scan()
    assert seen.look(lsn(5), group.sessions, "fork") is None
    assert seen.look(None, group.sessions, "fork") is None


@given(st.lists(st.sampled_from(["commit", "harden", "scan", "ask", "look"]), max_size=60))
def test_what_is_passed_for_certain_is_captured(steps: list[str]):
    """Whenever the secondary catches up: between the question what it has hardened and that for the scans, too."""
    group, seen = Group(), SeenLog()
    hardened = group.hardened
    for step in steps:
        if step == "ask":
            hardened = group.hardened
        elif step == "look":
            passed = seen.look(lsn(hardened), group.sessions, "fork")
            assert passed is None or passed <= lsn(group.captured + 1)
        else:
            getattr(group, step)()


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
                    sessions.append(scan(number, commit=captured))
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
