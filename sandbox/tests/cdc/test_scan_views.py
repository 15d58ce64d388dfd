"""`sys.dm_cdc_log_scan_sessions` and `sys.dm_cdc_errors`: one row per scan, their sum, and what went wrong."""

from __future__ import annotations

import pytest

from tests.cdc.client import LocalWorld, World
from tests.cdc.rules import TRACKED, prepare

NEWEST = (
    "SELECT TOP 1 {} FROM sys.dm_cdc_log_scan_sessions WHERE tran_count > 0 AND session_id > 0 ORDER BY session_id DESC"
)
SUM = "SELECT {} FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0"


@pytest.fixture
def tracked(world: World) -> World:
    """A tracked table; scans are made by hand."""
    prepare(world, TRACKED)
    world.stop_capture()
    world.capture()
    return world


@pytest.fixture
def local_tracked(local_world: LocalWorld, tracked: World) -> World:
    """The same, where faults can be ordered and time stands still."""
    assert tracked is local_world
    return tracked


def text(lsn: bytes) -> str:
    digits = lsn.hex()
    return f"{digits[:8]}:{digits[8:16]}:{digits[16:]}"


def test_a_scan_tells_what_it_has_read(tracked: World) -> None:
    """[doc] transactions, commands, LSNs of the last commit, seconds between commit and capture."""
    tracked.execute("INSERT t VALUES (1, 1, 1), (2, 2, 2)")
    tracked.execute("UPDATE t SET a = 5 WHERE id = 1")
    tracked.wait(2)
    tracked.capture()
    waited = "CASE WHEN latency >= 2 THEN 1 ELSE 0 END"
    assert tracked.rows(
        NEWEST.format(f"tran_count, command_count, schema_change_count, error_count, {waited}, scan_phase")
    ) == [(2, 3, 0, 0, 1, "Done")]
    ((start, tran),) = tracked.rows(
        "SELECT TOP 1 start_lsn, tran_begin_lsn FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC"
    )
    ((last, captured),) = tracked.rows(NEWEST.format("last_commit_lsn, last_commit_cdc_lsn"))
    assert last == captured == text(start)
    assert text(tran) < last


def test_definitions_are_counted_apart(tracked: World) -> None:
    """[doc] schema_change_count."""
    tracked.execute("ALTER TABLE t ADD c int")
    tracked.capture()
    assert tracked.rows(NEWEST.format("tran_count, command_count, schema_change_count")) == [(1, 0, 1)]


def test_session_zero_is_the_sum_of_all_scans_since_the_start(tracked: World) -> None:
    """[doc] also of those that are shown no more: 32 are kept."""
    before = tracked.rows(SUM.format("tran_count, command_count"))[0]
    for number in range(40):
        tracked.execute(f"INSERT t VALUES ({number}, 1, 1)")
        tracked.execute("EXEC sys.sp_cdc_scan @maxscans = 1")
    assert tracked.rows("SELECT COUNT(*) FROM sys.dm_cdc_log_scan_sessions WHERE session_id > 0") == [(32,)]
    assert tracked.rows(SUM.format("tran_count, command_count, scan_phase")) == [
        (before[0] + 40, before[1] + 40, "Aggregate")
    ]


def test_empty_scans_share_the_newest_row(tracked: World) -> None:
    """[doc] its count grows, its LSNs are zero with a NUL behind [dbz]; the next full scan has a row of its own."""
    newest = (
        "SELECT TOP 1 session_id, empty_scan_count, start_lsn FROM sys.dm_cdc_log_scan_sessions "
        "ORDER BY session_id DESC"
    )
    ((session, count, lsn),) = tracked.rows(newest)
    tracked.execute("EXEC sys.sp_cdc_scan @maxscans = 1")
    assert tracked.rows(newest) == [(session, count + 1, "00000000:00000000:0000\0")]
    assert lsn == "00000000:00000000:0000\0"
    tracked.execute("INSERT t VALUES (1, 1, 1)")
    tracked.execute("EXEC sys.sp_cdc_scan @maxscans = 1")
    ((later, none, full),) = tracked.rows(newest)
    assert (later > session, none, full.endswith("\0")) == (True, 0, False)


def test_failed_scans_are_rows_of_both_views(local_tracked: World) -> None:
    """[doc] error_count and failed_sessions_count of the session; number, text and session of the error.

    [sys] who scans by hand gets the error too.
    """
    local_tracked.execute("EXEC sandbox.capture_fail @number = 22859")
    assert local_tracked.error("EXEC sys.sp_cdc_scan @maxscans = 1").number == 22859
    ((session, number, message),) = local_tracked.rows(
        "SELECT session_id, error_number, error_message FROM sys.dm_cdc_errors"
    )
    assert (number, message[:39]) == (22859, "Log Scan process failed in processing l")
    counts = "SELECT error_count, failed_sessions_count FROM sys.dm_cdc_log_scan_sessions WHERE session_id = {}"
    assert local_tracked.rows(counts.format(session)) == [(1, 1)]
    assert local_tracked.rows(counts.format(0)) == [(1, 1)]


def test_a_database_shows_its_own_scans_only(tracked: World) -> None:
    """[doc] both views are of the current database."""
    assert tracked.rows("SELECT * FROM master.sys.dm_cdc_log_scan_sessions") == []


def test_cleanup_takes_all_commits_of_a_time_together(local_tracked: World) -> None:
    """[doc] the low end becomes the smallest LSN that shares the mark's commit time."""
    for number in range(3):
        local_tracked.execute(f"INSERT t VALUES ({number}, 1, 1)")
    local_tracked.capture()
    lsns = [row[0] for row in local_tracked.changes("dbo_t", "__$start_lsn")]
    local_tracked.execute(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_t', 0x{lsns[2].hex()}")
    assert [row[0] for row in local_tracked.changes("dbo_t", "__$start_lsn")] == lsns
