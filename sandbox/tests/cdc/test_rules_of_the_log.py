"""The place of the log's reader, which people move by hand when the log does not shrink; changes get lost by it."""

from __future__ import annotations

import pytest

from tests.cdc.client import World
from tests.cdc.rules import CAPTURE, TRACKED, WAIT, Rule, T, check, prepare

STOPPED = (*TRACKED, "EXEC sys.sp_cdc_stop_job", CAPTURE)
NEW = ("INSERT t VALUES (1, 0, 0)", "INSERT t VALUES (2, 0, 0)")
DONE = "EXEC sp_repldone @xactid = {}, @xact_seqno = {}, @numtrans = 0, @time = 0, @reset = {}"
ALL = DONE.format("NULL", "NULL", 1)
SEEN = "CREATE TABLE #seen (first binary(10), last binary(10))"
UNREAD = "INSERT #seen EXEC sp_repltrans"
FIRST = (
    "DECLARE @first binary(10), @last binary(10); SELECT TOP 1 @first = first, @last = last FROM #seen ORDER BY last; "
)
IDS = "SELECT id FROM cdc.dbo_t_CT ORDER BY id"

RULES = {
    "[doc] not where nothing reads the log": Rule((T,), "EXEC sp_repltrans", 18757),
    "[doc] nor can its place be moved there": Rule((T,), ALL, 18757, "Unable to execute procedure. The database is"),
    "[doc] one reader at a time": Rule((*TRACKED, WAIT), ALL, 18752),
    "[doc] what is committed and not read": Rule(
        (*STOPPED, *NEW, SEEN, UNREAD),
        "SELECT COUNT(*), MIN(CASE WHEN last > first THEN 1 ELSE 0 END) FROM #seen",
        [(2, 1)],
    ),
    "[doc] nothing after a scan": Rule(
        (*STOPPED, *NEW, CAPTURE, SEEN, UNREAD), "SELECT COUNT(*) FROM #seen", [(0,)]
    ),
    "[doc] all marked as done are lost": Rule(
        (*STOPPED, *NEW, ALL, "INSERT t VALUES (3, 0, 0)", CAPTURE), IDS, [(3,)]
    ),
    "[doc] up to one transaction": Rule(
        (*STOPPED, *NEW, SEEN, UNREAD, FIRST + DONE.format("@first", "@last", 0), CAPTURE), IDS, [(2,)]
    ),
    "[doc] back to the first that is not marked": Rule(
        (*STOPPED, *NEW, DONE.format("NULL", "NULL", 0), CAPTURE), IDS, [(1,), (2,)]
    ),
    "[fab] scans for ever and the job exclude each other": Rule(
        (*TRACKED, WAIT),
        "EXEC sys.sp_cdc_scan @continuous = 1, @pollinginterval = 1",
        22903,
        "Another connection with session ID ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_place_in_the_log(world: World, rule: Rule) -> None:
    check(world, rule)


def test_the_other_connection_is_another(world: World) -> None:
    """[est] the job has a session of its own."""
    prepare(world, (*TRACKED, WAIT))
    failure = world.error("EXEC sys.sp_cdc_scan @continuous = 1, @pollinginterval = 1")
    assert f"session ID {world.value('SELECT @@SPID')} " not in failure.text
