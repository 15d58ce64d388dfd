"""The end of the transaction log, and whether capture has passed it (correctness, "Terms": `logend`, `scanned`).

Reading it requires VIEW SERVER STATE, which also shows the scans; if that is missing, the error names the GRANT.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mssql_cdc.errors import SourceError, SourceRestoredError, SourceUnavailableError
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver import positions, replica_states
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.health import AZURE_SQL_DATABASE, edition
from mssql_cdc.source.sqlserver.positions import recovery_fork
from mssql_cdc.source.sqlserver.replica import is_primary
from mssql_cdc.source.sqlserver.replica_states import numeric_lsn, own_log_end
from mssql_cdc.source.values import LogMark, Standing

_PLATFORM = """
SELECT CAST(SERVERPROPERTY('EngineEdition') AS int) AS edition,
    CAST(SERVERPROPERTY('ProductMajorVersion') AS int) AS major"""
_LOG_END = """
SELECT log_end_lsn, CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(128)) AS updateability
FROM sys.dm_db_log_stats(DB_ID())"""
_MOST_HARDENED = 8
"""How many positions are remembered at a time, until two scans have ended."""
_FINER_RIGHTS = 16
"""The major version (2022) since which VIEW SERVER STATE is divided into finer permissions."""
_SCANS = """
SELECT session_id, scan_phase, error_count, empty_scan_count, last_commit_lsn
FROM sys.dm_cdc_log_scan_sessions WHERE session_id <> 0 ORDER BY session_id"""


@dataclass(frozen=True, slots=True)
class Scan:
    """One scan session; consecutive empty scans share one. `last_commit` is None where a session has none.

    It is the last commit that the session has processed [doc]. About `end_lsn`, the documentation says only that the
    session ended there: it may lie after commits that the session has left to the next one, so it proves nothing here.
    """

    session_id: int
    done: bool
    empty_scans: int
    last_commit: Lsn | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Scan:
        """The session in a row of `_SCANS`."""
        number, phase, errors, empty, commit = row
        return cls(int(number), phase == "Done" and not errors, int(empty or 0), _scanned(commit))


@dataclass(slots=True)
class SeenLog:
    """What a process has seen of the log of one database.

    Where capture is held back (`replica_states`), two empty scans prove nothing about a mark: they may have begun
    before a secondary had hardened it. They do prove something about what all secondaries had hardened when this was
    queried, before the scans.

    Attributes:
        shown: The login could read where the log ends.
        held_back: Capture may be held back, and that mattered for the last answer.
        edition: The server's edition, which does not change.
    """

    shown: bool = False
    held_back: bool = False
    edition: int | None = None
    _newest: int = 0
    _fork: str | None = None
    _hardened: list[LogMark] = field(default_factory=list[LogMark])
    _passed: Lsn | None = None

    def look(self, hardened: Lsn | None, shown: Sequence[Scan], fork: str | None) -> Lsn | None:
        """The position below which everything is certain to be captured; None when there is none.

        Args:
            hardened: All below this was on the disks of all secondaries before the scans were read; None: unknown.
            shown: The scan sessions.
            fork: The recovery fork, if it is shown.
        """
        newest = shown[-1] if shown else Scan(0, done=True, empty_scans=0, last_commit=None)
        if fork != self._fork or newest.session_id < self._newest:
            self._hardened, self._passed = [], None  # Another history, or another server after a failover.
        self._fork, self._newest = fork, newest.session_id
        # Past what a newly joined secondary has hardened, it is not known what the scans since have seen.
        known = [one for one in self._hardened if hardened is not None and one.lsn <= hardened]
        while known and proven(known[0], shown):
            self._passed = known.pop(0).lsn
        if hardened is not None and hardened != self._passed and (not known or hardened > known[-1].lsn):
            # The oldest ones stay: calls may keep finding later positions before two scans have ended.
            known = [*known[:_MOST_HARDENED], LogMark(hardened, newest.session_id, newest.empty_scans)]
        self._hardened = known
        return self._passed


def needed_grant(control: Control) -> str:
    """The permission that shows the end of the log and its scans.

    Earlier revisions of the page of `sys.dm_db_log_stats` required only VIEW DATABASE STATE, which the server
    permissions imply. Azure SQL Database has no server permissions.
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
    """The current end of the database's log; on a readable secondary, the end of its copy of the log.

    The savepoint, which replaces `sys.dm_db_log_stats` where the server has none, needs the same permission.

    Raises:
        ConfigurationError: the login may not see it; the message names the GRANT.
        SourceUnavailableError: a secondary does not currently know it.
    """
    try:
        found = control.row(_LOG_END, doing="reading the end of the log")
    except SourceError:
        found = None  # Before 2016 SP2.
    shown = _scanned(found.log_end_lsn) if found is not None else None
    if found is not None and shown is not None and found.updateability != "READ_ONLY":
        return shown
    if is_primary(control):
        return _log_end_by_savepoint(control)
    own = own_log_end(control, edition(control))
    if own is None and shown is not None:
        return shown  # A read-only database that is not a secondary.
    if own is None:
        raise SourceUnavailableError(
            "The readable secondary does not show the end of its log now (it may be joining its availability group): "
            "what it has shown is not bounded. Without driver.applicationIntent=ReadOnly, the primary is read"
        )
    return own


def mark(control: Control) -> LogMark:
    """Return the current end of the log, for a later call of `newest_passed`.

    Raises:
        ConfigurationError: the login may not see the log's end or its scans; the message names the GRANT.
    """
    end = log_end(control)
    found = scans(control)  # Read afterwards: any scan that is not among them began after this end was read.
    fork = recovery_fork(control)
    return LogMark(end, found[-1].session_id, found[-1].empty_scans, fork) if found else LogMark(end, fork=fork)


def require_mark(control: Control, known: LogMark) -> None:
    """Raise SourceRestoredError if the log no longer leads to a mark, whose rows may be in the lake (A7)."""
    fork = recovery_fork(control)
    if known.fork is not None and fork is not None and fork != known.fork:
        raise SourceRestoredError(
            f"The source was restored or failed over after a snapshot read it up to {known.lsn} and before capture "
            f"passed that position: found recovery fork {fork}, expected {known.fork}"
        )


def newest_passed(control: Control, known: Collection[LogMark], seen: SeenLog) -> Lsn | None:
    """The position of the newest of these marks that capture has passed; None: it has passed none.

    Everything that was committed below it is captured. Several marks take no more statements than one.

    Where capture may be held back, and therefore on every secondary (which shows no scans), the proof is a captured
    transaction at or after the mark, or what all secondaries had hardened.

    Args:
        control: A connection to the database.
        known: The marks.
        seen: What the process has seen of the log.
    """
    seen.held_back = False
    if not known:
        return None
    newest, shown = max(mark.lsn for mark in known), scans(control)
    found = {mark.lsn for mark in known if proven(mark, shown, held_back=True)}
    if newest not in found:
        reached = positions.standing(control)
        found |= {mark.lsn for mark in known if reached.captured is not None and mark.lsn <= reached.captured}
        if newest not in found and is_held_back(control, seen):
            passed = _hardened_and_passed(control, seen)
            found |= {mark.lsn for mark in known if passed is not None and mark.lsn < passed}
        elif newest not in found:
            found |= {mark.lsn for mark in known if proven(mark, shown)}
            found |= {mark.lsn for mark in known if reached.settled is not None and mark.lsn <= reached.settled}
    return max(found, default=None)


def standing(control: Control, seen: SeenLog) -> Standing:
    """The progress of capture; everything below its settled row is captured.

    A row written while the log is idle holds the log's end at the scan that found nothing. Where capture may be held
    back, commits that it has not read may lie below, whatever follows the row: there, only rows that all secondaries
    had hardened, or a captured transaction, count.

    Args:
        control: A connection to the database.
        seen: What the process has seen of the log.
    """
    found = positions.standing(control)
    settled, captured = found.settled, found.captured
    if settled is None or (captured is not None and settled <= captured) or not is_held_back(control, seen):
        return found
    passed = _hardened_and_passed(control, seen)
    if passed is None or passed <= settled:
        settled = positions.newest_row_below(control, passed) if passed is not None else None
    captured = positions.captured(control)  # Read after the proof: what it covers was captured by then.
    return replace(found, settled=max((one for one in (settled, captured) if one), default=None), captured=captured)


def is_held_back(control: Control, seen: SeenLog) -> bool:
    """Whether capture may wait for more than the log (`replica_states`); query it after reading what was scanned."""
    seen.held_back = replica_states.is_held_back(control, _edition(control, seen))
    return seen.held_back


def _edition(control: Control, seen: SeenLog) -> int:
    if seen.edition is None:
        seen.edition = edition(control)
    return seen.edition


def _hardened_and_passed(control: Control, seen: SeenLog) -> Lsn | None:
    """The position below which everything was hardened by every secondary and has been captured since."""
    # Read before the scans: those that begin later are not held back below this.
    hardened = replica_states.least_hardened(control, _edition(control, seen))
    return seen.look(hardened, scans(control), recovery_fork(control))


def scans(control: Control) -> list[Scan]:
    """The scan sessions that the server remembers, oldest first."""
    return [Scan.of(row) for row in control.rows(_SCANS, doing="reading the log scans")]


def proven(known: LogMark, found: Sequence[Scan], *, held_back: bool = False) -> bool:
    """Whether these sessions prove that capture has passed the mark.

    A session ends after `maxtrans` x `maxscans` transactions at any position, so its mere end proves nothing. It is
    proof if it has processed a commit at or after the mark, or if a scan that began after the mark was read found the
    log empty. Empty scans share a row, and one of them may have been running when the mark was read, so two are needed.
    Sessions are ordered by their numbers, never by their local times, which can jump; numbers below the mark's come
    after it if the mark's own session is gone, because the numbering then restarted.

    Args:
        known: The mark.
        found: The sessions.
        held_back: Capture may wait for more than the log itself (`replica_states`): empty scans prove nothing.
    """
    restarted = bool(found) and found[-1].session_id < known.session_id
    for scan in found:
        if not scan.done:
            continue
        if scan.last_commit is not None and scan.last_commit >= known.lsn:
            return True
        if held_back:
            continue
        before = known.empty_scans if scan.session_id == known.session_id and not restarted else 0
        later = scan.session_id >= known.session_id or restarted
        if later and scan.empty_scans >= before + 2:
            return True
    return False


def _scanned(text: str | None) -> Lsn | None:
    """The LSN in a session's column; an empty scan shows zeros followed by a NUL character."""
    digits = (text or "").rstrip("\x00").strip()
    return (Lsn.parse(digits) or None) if digits else None


def _log_end_by_savepoint(control: Control) -> Lsn:
    """The end of the log before 2016 SP2: a savepoint writes to the log, and the transaction shows where."""
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
