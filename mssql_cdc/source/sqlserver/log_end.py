"""The end of the transaction log, and whether capture has passed it (correctness, "Terms": `logend`, `scanned`).

It requires VIEW SERVER STATE, which also shows the scans; if that is missing, the error names the GRANT.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_cdc.errors import SourceError, SourceRestoredError, SourceUnavailableError
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.health import AZURE_SQL_DATABASE, is_azure_sql_database
from mssql_cdc.source.sqlserver.positions import recovery_fork, standing
from mssql_cdc.source.sqlserver.replica import is_primary
from mssql_cdc.source.values import LogMark

_PLATFORM = """
SELECT CAST(SERVERPROPERTY('EngineEdition') AS int) AS edition,
    CAST(SERVERPROPERTY('ProductMajorVersion') AS int) AS major"""
_LOG_END = """
SELECT log_end_lsn, CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(128)) AS updateability
FROM sys.dm_db_log_stats(DB_ID())"""
_OWN_LOG = """
SELECT last_hardened_lsn, last_redone_lsn, last_commit_lsn FROM {replicas}
WHERE database_id = DB_ID() AND is_local = 1"""
_FINER_RIGHTS = 16
"""The major version (2022) since which VIEW SERVER STATE has parts."""
_SCANS = """
SELECT session_id, scan_phase, error_count, empty_scan_count, end_lsn, last_commit_lsn
FROM sys.dm_cdc_log_scan_sessions WHERE session_id <> 0 ORDER BY session_id"""


@dataclass(frozen=True, slots=True)
class Scan:
    """One scan session; consecutive empty scans share one. LSNs are None where a session has none."""

    session_id: int
    done: bool
    empty_scans: int
    end: Lsn | None
    last_commit: Lsn | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Scan:
        """The session of a row of `_SCANS`."""
        number, phase, errors, empty, end, commit = row
        return cls(int(number), phase == "Done" and not errors, int(empty or 0), _scanned(end), _scanned(commit))


@dataclass(slots=True)
class SeenLog:
    """What a process has seen of the log of one database. `shown`: the login could read where it ends."""

    shown: bool = False


def needed_grant(control: Control) -> str:
    """The right that shows the end of the log and its scans.

    Earlier revisions of the page of `sys.dm_db_log_stats` asked for VIEW DATABASE STATE only; the rights on the server
    contain it. Azure SQL Database has none on the server.
    """
    found = control.row(_PLATFORM, doing="asking for the server's version")
    if found.edition == AZURE_SQL_DATABASE:
        return (
            "in that database: GRANT VIEW DATABASE STATE TO <login's user> (in an elastic pool the login may have to "
            "be a member of the server role ##MS_ServerStateReader##)"
        )
    if (found.major or 0) >= _FINER_RIGHTS:
        return "in master: GRANT VIEW SERVER PERFORMANCE STATE TO <login> (VIEW SERVER STATE contains it)"
    return "in master: GRANT VIEW SERVER STATE TO <login>"


def log_end(control: Control) -> Lsn:
    """The end of the database's log now; on a readable secondary that of its copy of the log.

    The savepoint, where the server has no `sys.dm_db_log_stats`, needs the same right.

    Raises:
        ConfigurationError: the login may not see it; the message names the GRANT.
        SourceUnavailableError: a secondary does not know it now.
    """
    try:
        found = control.row(_LOG_END, doing="reading the end of the log")
    except SourceError:
        found = None  # Before 2016 SP2.
    shown = _scanned(found.log_end_lsn) if found is not None else None
    if shown is not None and found.updateability != "READ_ONLY":
        return shown
    if is_primary(control):
        return _log_end_by_savepoint(control)
    own = _end_of_own_log(control)
    if own is None and shown is not None:
        return shown  # A database that takes no writes, and is no secondary.
    if own is None:
        raise SourceUnavailableError(
            "The readable secondary does not show the end of its log now (it may be joining its availability group): "
            "what it has shown is not bounded. Without driver.applicationIntent=ReadOnly, the primary is read"
        )
    return own


def _end_of_own_log(control: Control) -> Lsn | None:
    """The end of a secondary's copy of the log, which is behind all that it shows; None when it is unknown.

    `sys.dm_db_log_stats` has no LSNs there. `last_hardened_lsn` is the start of the block behind those on disk, and
    only those are redone [doc]. The view may be out of date [doc], so what is redone counts, too.
    """
    azure = is_azure_sql_database(control)
    replicas = "sys.dm_database_replica_states" if azure else "sys.dm_hadr_database_replica_states"
    rows = control.rows(_OWN_LOG.format(replicas=replicas), doing="reading the end of the secondary's log")
    return max((numeric_lsn(int(one)) for row in rows for one in row if one), default=None)


def mark(control: Control) -> LogMark:
    """Return the current end of the log, for a later call of `newest_passed`.

    Raises:
        ConfigurationError: the login may not see the log's end or its scans; the message names the GRANT.
    """
    end = log_end(control)
    found = scans(control)  # Read afterwards: any scan that is not among them began after this end.
    fork = recovery_fork(control)
    return LogMark(end, found[-1].session_id, found[-1].empty_scans, fork) if found else LogMark(end, fork=fork)


def require_mark(control: Control, known: LogMark) -> None:
    """Raise SourceRestoredError if the log does not lead to a mark any more, whose rows may be in the lake (A7)."""
    fork = recovery_fork(control)
    if known.fork is not None and fork is not None and fork != known.fork:
        raise SourceRestoredError(
            f"The source was restored or failed over after a snapshot read it up to {known.lsn} and before capture "
            f"passed that position: found recovery fork {fork}, expected {known.fork}"
        )


def newest_passed(control: Control, known: Collection[LogMark]) -> Lsn | None:
    """The position of the newest of these marks that capture has passed; None: it has passed none.

    Everything that was committed below it is captured. All marks take as many statements as one.

    A secondary shows no scans: there a captured transaction behind the mark, or a settled row, is the proof.
    """
    if not known:
        return None
    shown = scans(control)
    found = {mark.lsn for mark in known if proven(mark, shown)}
    if max(mark.lsn for mark in known) not in found:
        reached = standing(control)
        ends = [lsn for lsn in (reached.captured, reached.settled) if lsn is not None]
        found |= {mark.lsn for mark in known if any(mark.lsn <= end for end in ends)}
    return max(found, default=None)


def scans(control: Control) -> list[Scan]:
    """The scan sessions that the server remembers, oldest first."""
    return [Scan.of(row) for row in control.rows(_SCANS, doing="reading the log scans")]


def proven(known: LogMark, found: Sequence[Scan]) -> bool:
    """Whether these sessions prove that capture has passed the mark.

    A session ends after `maxtrans` x `maxscans` transactions at any position, so its mere end proves nothing. It is
    proof if it reached the mark itself, or if a scan that began after the mark was read found the log empty. Empty
    scans share a row, and one of them may have been running when the mark was read, so two are needed. Sessions are
    ordered by their numbers, never by their local times, which can jump; numbers below the mark's come after it if the
    mark's own session is gone, because the numbering then restarted.
    """
    restarted = bool(found) and found[-1].session_id < known.session_id
    for scan in found:
        if not scan.done:
            continue
        if any(lsn is not None and lsn >= known.lsn for lsn in (scan.end, scan.last_commit)):
            return True
        before = known.empty_scans if scan.session_id == known.session_id and not restarted else 0
        later = scan.session_id >= known.session_id or restarted
        if later and scan.empty_scans >= before + 2:
            return True
    return False


def _scanned(text: str | None) -> Lsn | None:
    """The LSN of a session's column; an empty scan shows zeros followed by a NUL character."""
    digits = (text or "").rstrip("\x00").strip()
    return (Lsn.parse(digits) or None) if digits else None


def _log_end_by_savepoint(control: Control) -> Lsn:
    """Before 2016 SP2: a savepoint writes to the log, and the transaction shows where."""
    found = control.row(
        "SET NOCOUNT ON; BEGIN TRANSACTION; SAVE TRANSACTION mssql_cdc; "
        "SELECT d.database_transaction_last_lsn FROM sys.dm_tran_database_transactions d "
        "JOIN sys.dm_tran_current_transaction c ON c.transaction_id = d.transaction_id "
        "WHERE d.database_id = DB_ID(); ROLLBACK TRANSACTION",
        doing="reading the end of the log through a savepoint",
    )
    if found is None or found[0] is None:
        raise SourceError("The end of the log cannot be read: the server shows no transaction of this connection")
    return numeric_lsn(int(found[0]))


def numeric_lsn(value: int) -> Lsn:
    """The LSN of `numeric(25, 0)` notation: log file, then 10 digits block, then 5 digits slot."""
    rest, slot = divmod(value, 100_000)
    sequence, block = divmod(rest, 10_000_000_000)
    return Lsn(sequence.to_bytes(4, "big") + block.to_bytes(4, "big") + slot.to_bytes(2, "big"))
