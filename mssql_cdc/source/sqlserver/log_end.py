"""The end of the transaction log, and whether capture has passed it (correctness, "Words": `logend`, `scanned`).

Needs VIEW DATABASE STATE; where that is missing, the answer says so and the caller waits for dummy rows instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mssql_cdc.errors import MssqlCdcError, SourceError
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver.connect import Control

GRANT = "GRANT VIEW DATABASE STATE TO the login's user"
_NEWEST_SCAN = """
SELECT TOP (1) session_id, empty_scan_count FROM sys.dm_cdc_log_scan_sessions
WHERE session_id <> 0 ORDER BY session_id DESC"""
_LATER_SCANS = """
SELECT COUNT(*) FROM sys.dm_cdc_log_scan_sessions
WHERE session_id <> 0 AND error_count = 0 AND scan_phase = 'Done'
  AND (start_time > CAST(? AS datetime) OR (session_id > ? AND empty_scan_count >= 2)
       OR (session_id = ? AND empty_scan_count >= ?))"""


@dataclass(frozen=True, slots=True)
class LogMark:
    """An end of the log, with what shows later that a scan began after it was read.

    Consecutive empty scans share one row and count; one may have been under way when the mark was taken, so that
    only the second one after it is proof. `session_id` None: the scans could not be seen.
    """

    lsn: Lsn
    read_at: datetime
    session_id: int | None = None
    empty_scans: int = 0


def log_end(control: Control) -> Lsn:
    """The end of the database's log now.

    Raises:
        ConfigurationError: the login may not see it; the message names the GRANT.
    """
    try:
        found = control.value(
            "SELECT log_end_lsn FROM sys.dm_db_log_stats(DB_ID())", doing="reading the end of the log"
        )
    except SourceError:
        return _log_end_by_savepoint(control)
    if not found:
        return _log_end_by_savepoint(control)
    return Lsn.parse(str(found).rstrip("\x00"))


def mark(control: Control) -> LogMark:
    """The end of the log now, to be asked for with `passed` later."""
    scan = None
    try:
        scan = control.row(_NEWEST_SCAN, doing="reading the log scans")
    except MssqlCdcError:
        seen = False
    else:
        seen = True
    end = log_end(control)
    now = control.value("SELECT CAST(SYSDATETIME() AS datetime2(3))", doing="reading the server's clock")
    if not seen:
        return LogMark(end, now)
    return LogMark(end, now, *((scan[0], scan[1] or 0) if scan else (0, 0)))


def passed(control: Control, known: LogMark) -> bool:
    """Whether an error-free scan that began after the mark has ended: capture has then passed its LSN."""
    if known.session_id is None:
        return False
    later = control.value(
        _LATER_SCANS,
        known.read_at.isoformat(sep="T", timespec="milliseconds"),
        known.session_id,
        known.session_id,
        known.empty_scans + 2,
        doing="looking for a scan behind the end of the log",
    )
    return bool(later)


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
        raise SourceError(f"The end of the log cannot be read; {GRANT}")
    return numeric_lsn(int(found[0]))


def numeric_lsn(value: int) -> Lsn:
    """The LSN of `numeric(25, 0)` notation: log file, then 10 digits block, then 5 digits slot."""
    rest, slot = divmod(value, 100_000)
    sequence, block = divmod(rest, 10_000_000_000)
    return Lsn(sequence.to_bytes(4, "big") + block.to_bytes(4, "big") + slot.to_bytes(2, "big"))
