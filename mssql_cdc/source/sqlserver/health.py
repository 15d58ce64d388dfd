"""What keeps a connector from its changes although the server answers: hidden tables, capture that has stalled.

Each function runs one or two short statements. Times are compared by the server's own clock, and only ever lead to a
message: positions alone decide what is captured (`positions`, `log_end`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from mssql_cdc.config import Connection
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.replica import is_primary
from mssql_cdc.source.sqlserver.sql import LSN, MAPPING, digits, quote
from mssql_cdc.source.values import CaptureHealth

PATIENCE = timedelta(minutes=2)
"""Capture that has not scanned for this long has stalled: the job polls every 5 s, Azure's every 20 s."""
MAPPING_PATIENCE = timedelta(minutes=15)
"""The mapping table gets an entry every five minutes, even in an idle database."""
_HANGS = timedelta(minutes=15)
"""A scan that shows no progress for this long hangs; how often a large one updates its counters is not documented."""
_AHEAD = timedelta(minutes=1)
"""A local time of the server that is no further ahead than this counts as now: its clock was set, or rounds."""
# The catalog hides the tables' names, and sp_cdc_help_change_data_capture omits the tables; instances are plain rows.
_HIDDEN = """
SELECT c.capture_instance FROM cdc.change_tables c WHERE NOT EXISTS
(SELECT 1 FROM sys.tables t WHERE t.object_id = c.source_object_id) ORDER BY c.capture_instance"""
_UNSTARTED = "SELECT capture_instance FROM cdc.change_tables WHERE start_lsn IS NULL ORDER BY capture_instance"
_CLOCKS = "SYSUTCDATETIME() AS utc, GETDATE() AS local"
# The newest session has the largest id: after a clock was set back, older ones have later times. Id 0 is a sum.
_SCANNED = f"""
SELECT TOP (1) end_time AS at, session_id, start_time, scan_phase, current_lsn, last_commit_lsn, tran_count,
    log_record_count, command_count, {_CLOCKS}
FROM sys.dm_cdc_log_scan_sessions WHERE session_id <> 0 ORDER BY session_id DESC"""
# A scan has a latency only once it has ended.
_ENDED = f"""
SELECT TOP (1) end_time AS at, latency, {_CLOCKS}
FROM sys.dm_cdc_log_scan_sessions WHERE session_id <> 0 AND end_time IS NOT NULL ORDER BY session_id DESC"""
_MAPPED = f"SELECT TOP (1) tran_end_time AS at, {_CLOCKS} FROM {MAPPING} ORDER BY start_lsn DESC"
_ENABLED = f"SELECT MIN(create_date) AS at, {_CLOCKS} FROM cdc.change_tables"
_FIRST_BEHIND = (
    f"SELECT TOP (1) tran_end_time AS at FROM {MAPPING} WHERE start_lsn > {LSN} AND tran_id <> 0x00 ORDER BY start_lsn"
)
_REPLICAS = """
SELECT MAX(secondary_lag_seconds) AS lag
FROM sys.dm_hadr_database_replica_states WHERE database_id = DB_ID() AND is_local = 0"""
_AGENT = (
    "SELECT MAX(CASE WHEN status = 4 THEN 1 ELSE 0 END) FROM sys.dm_server_services "
    "WHERE servicename LIKE N'SQL Server Agent (%'"
)
_EDITION, AZURE_SQL_DATABASE = "SELECT CAST(SERVERPROPERTY('EngineEdition') AS int)", 5


def hidden(control: Control) -> list[str]:
    """The names of the capture instances of tables that the login cannot see."""
    return [row[0] for row in control.rows(_HIDDEN, doing="looking for tables that the login cannot see")]


def unstarted(control: Control) -> list[str]:
    """The names of the capture instances that capture has not started on."""
    return [row[0] for row in control.rows(_UNSTARTED, doing="looking for tables that capture has not begun with")]


def is_azure_sql_database(control: Control) -> bool:
    """Whether the server is Azure SQL Database, which has no Agent and hides whatever concerns the whole server."""
    return edition(control) == AZURE_SQL_DATABASE


def edition(control: Control) -> int:
    """The number of the server's edition."""
    return int(control.value(_EDITION, doing="asking for the server's edition"))


@dataclass(frozen=True, slots=True)
class Clocks:
    """The server's clock, in UTC and in local time."""

    utc: datetime
    local: datetime

    @classmethod
    def of(cls, row: Any) -> Clocks:
        """The clocks in a row with the columns of `_CLOCKS`."""
        return cls(row.utc.replace(tzinfo=UTC), row.local)

    def instant(self, at: datetime, zone: str | None) -> datetime:
        """When something happened, not later than now.

        The server keeps local times. With its zone, this is the latest instant that they may mean; without it, the
        current offset applies, and a time still in the future was an hour earlier, before the clock went back. (After
        the clock goes forward, earlier scans seem an hour older without the zone, until the next scan.)

        Args:
            at: The server's local time.
            zone: The server's IANA time zone, if it is configured.
        """
        if zone is not None:
            passes = [at.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) for fold in (1, 0)]
        else:
            now = self.utc - (self.local - at)
            passes = [now, now - timedelta(hours=1)]
        return next((one for one in passes if one <= self.utc + _AHEAD), self.utc)


def has_table(control: Control, name: str) -> bool:
    """Whether the login can see a table or view of this name, in brackets or not."""
    return control.value("SELECT OBJECT_ID(?)", name, doing=f"looking for {name}") is not None


@dataclass(slots=True)
class SeenScans:
    """What a process has seen of scans that had not ended, by database: the next call shows whether they progress."""

    _seen: dict[str, tuple[tuple[object, ...], datetime]] = field(
        default_factory=dict[str, tuple[tuple[object, ...], datetime]]
    )

    def unchanged(self, catalog: str, shown: tuple[object, ...], now: datetime) -> timedelta:
        """How long the scan of a database has shown no change: zero at the first call.

        Args:
            catalog: The database.
            shown: The scan's number, phase, positions and counters.
            now: The server's time.
        """
        known, since = self._seen.get(catalog, (None, now))
        if known != shown or since > now:
            since = now
        self._seen[catalog] = shown, since
        return now - since


@dataclass(frozen=True, slots=True)
class _LastScan:
    """When capture last scanned: the server's time (None: never, or scanning now), how long ago, how long is too long.

    Without any scan, `ago` counts from when the tables were enabled. For a scan that has not ended, `at` and `ago` show
    when it began, and `unchanged` how long it has shown no progress.
    """

    at: datetime | None
    ago: timedelta
    patience: timedelta
    unchanged: timedelta | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether a scan began recently and has not ended."""
        return self.at is None and not self.ago


def capture_health(
    control: Control, connection: Connection, positions: Collection[Lsn], seen: SeenScans | None = None
) -> CaptureHealth:
    """The state of capture, and since when there have been captured transactions after each of these positions.

    Args:
        control: A connection to the database.
        connection: How to query its Agent.
        positions: The positions up to which tables have been read.
        seen: What the process has seen of scans.
    """
    clocks = Clocks.of(control.row(f"SELECT {_CLOCKS}", doing="reading the server's clock"))
    now, last, zone = clocks.utc, _last_scan(control, connection, seen), connection.server_timezone
    ended = _of_state(control, _ENDED, doing="asking how far capture is behind")
    behind = timedelta(seconds=(ended.latency or 0) if ended is not None else 0)
    # What a running scan has not reached may be as old as the end of the previous scan.
    ago = _ago(ended, ended.at, connection) if last.is_at_work and ended is not None else last.ago
    unread: dict[Lsn, datetime] = {}
    for position in set(positions):
        found = control.row(_FIRST_BEHIND, digits(position), doing="looking for changes that were not read")
        if found is not None:
            unread[position] = min(clocks.instant(found.at, zone), now)
    return CaptureHealth(now, now - ago, _problem(control, connection, last), unread, behind)


def stalled(control: Control, connection: Connection, seen: SeenScans | None = None) -> str | None:
    """A message if capture has stalled, or has not started; None if it is working, or if this cannot be determined.

    Args:
        control: A connection to the database.
        connection: How to query its Agent.
        seen: What the process has seen of scans; None: this is the first call.
    """
    return _problem(control, connection, _last_scan(control, connection, seen))


def _problem(control: Control, connection: Connection, last: _LastScan) -> str | None:
    if last.ago <= last.patience:
        return None
    is_azure = is_azure_sql_database(control)
    here = is_primary(control)  # The Agent of a secondary's server has no part in capture.
    runs = agent_runs(control, connection) if here and not is_azure else None
    if runs is not False and not _is_too_long(control, last, is_azure=is_azure):
        return None
    if is_azure:
        return f"{_what(last)}; Azure SQL Database scans by itself: look for errors in sys.dm_cdc_errors"
    if last.unchanged is not None and runs is not False:
        return (
            f"{_what(last)}: look for what blocks it (sys.dm_exec_requests), or restart the capture job "
            "(EXEC sys.sp_cdc_stop_job, EXEC sys.sp_cdc_start_job)"
        )
    if not here:
        return (
            f"{_what(last)}, as this readable secondary shows it; check on the primary that SQL Server Agent is "
            "running, and that the secondary follows it"
        )
    return f"{_what(last)}; {_about_agent(runs)}"


def _is_too_long(control: Control, last: _LastScan, *, is_azure: bool) -> bool:
    """Whether capture should have scanned by now, even if SQL Server Agent is running."""
    if last.unchanged is not None:
        return last.unchanged > _HANGS
    # The scheduler of Azure SQL Database scans every 20 s, whatever the settings of the job say.
    job = None if is_azure else cdc_job(control, "capture")
    return job is None or (job.continuous and timedelta(seconds=3 * job.pollinginterval) <= last.ago)


def _what(last: _LastScan) -> str:
    if last.at is None:
        return "capture has not scanned the log yet"
    if last.unchanged is None:
        return f"capture has not scanned since {_clock(last.at)}"
    still = f"made no progress for {last.unchanged // timedelta(minutes=1)} minutes"
    return (
        f"the scan of the log that began at {_clock(last.at)} has {still if last.unchanged > _HANGS else 'not ended'}"
    )


def agent_runs(control: Control, connection: Connection) -> bool | None:
    """Whether SQL Server Agent is running; None if the login may not know, or there is none (Azure SQL Database)."""
    own = connection.agent_status_query
    query = own.replace("[#db]", "#db").replace("#db", quote(control.catalog)) if own else _AGENT
    try:
        found = control.value(query, doing="asking whether SQL Server Agent runs")
    except MssqlCdcError as error:
        if error.retriable or own:
            raise
        return None
    return None if found is None else int(found) == 1


def _about_agent(runs: bool | None) -> str:  # noqa: FBT001 (an answer of the server)
    match runs:
        case True:
            return "SQL Server Agent is running: check its capture job (EXEC sys.sp_cdc_help_jobs)"
        case False:
            return "SQL Server Agent is not running: start it"
        case None:
            return "check that SQL Server Agent is running"


def replica_lag(control: Control) -> timedelta:
    """The lag behind this primary of the secondary replica furthest behind; zero if it cannot be determined."""
    row = _of_state(control, _REPLICAS, doing="asking how far the secondary replicas are behind")
    return timedelta(seconds=(row.lag or 0) if row is not None else 0)


def _of_state(control: Control, query: str, *, doing: str) -> Any:
    """A row of a view of the server's state; None if there is no row or no such view, or the login may not see it."""
    try:
        return control.row(query, doing=doing)
    except MssqlCdcError as error:
        if error.retriable:
            raise
        return None


def _last_scan(control: Control, connection: Connection, seen: SeenScans | None) -> _LastScan:
    row = _of_state(control, _SCANNED, doing="asking when capture scanned last")
    if row is not None and row.at is None:
        return _unfinished(control, connection, row, seen or SeenScans())
    if row is not None:
        return _LastScan(row.at, _ago(row, row.at, connection), PATIENCE)
    mapped = control.row(_MAPPED, doing="asking when capture wrote last")
    if mapped is not None and mapped.at is not None:
        return _LastScan(mapped.at, _ago(mapped, mapped.at, connection), MAPPING_PATIENCE)
    enabled = control.row(_ENABLED, doing="asking since when tables are captured")
    return _LastScan(None, timedelta(0) if enabled.at is None else _ago(enabled, enabled.at, connection), PATIENCE)


def _unfinished(control: Control, connection: Connection, row: Any, seen: SeenScans) -> _LastScan:
    """A scan that has no end: it is running, or hangs, or its job has died and left it unfinished."""
    counters = row.tran_count, row.log_record_count, row.command_count
    shown = row.session_id, row.scan_phase, row.current_lsn, row.last_commit_lsn, *counters
    unchanged = seen.unchanged(control.catalog, shown, Clocks.of(row).utc)
    ago = _ago(row, row.start_time, connection)
    if ago <= PATIENCE:
        return _LastScan(None, timedelta(0), PATIENCE)
    return _LastScan(row.start_time, ago, PATIENCE, unchanged)


def _ago(row: Any, at: datetime, connection: Connection) -> timedelta:
    clocks = Clocks.of(row)
    return max(clocks.utc - clocks.instant(at, connection.server_timezone), timedelta(0))


def cdc_job(control: Control, kind: Literal["capture", "cleanup"]) -> Any:
    """A job's row in `sp_cdc_help_jobs`; None when the login may not see the jobs (db_owner may), or there is none."""
    try:
        rows = control.rows("EXEC sys.sp_cdc_help_jobs", doing=f"reading the {kind} job")
    except MssqlCdcError as error:
        if error.retriable:
            raise
        return None
    return next((row for row in rows if row.job_type.strip().lower() == kind), None)


def _clock(at: datetime) -> str:
    """The server's time, to the minute."""
    return f"{at:%Y-%m-%d %H:%M}"
