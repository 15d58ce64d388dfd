"""The positions of the source: captured, scanned, log end, minima, witness (correctness, "Terms"; A2, A7, A8, A9).

Each function runs one or two short statements on a control connection. `plan/` draws the conclusions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from mssql_cdc.errors import DataLostError, SourceError, SourceRestoredError
from mssql_cdc.lsn import ZERO_LSN, Lsn
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.health import cdc_job, is_azure_sql_database
from mssql_cdc.source.sqlserver.sql import LSN, MAPPING, digits, lsn
from mssql_cdc.source.values import Standing, Witness


def standing(control: Control) -> Standing:
    """Return the progress of capture, with up to four short statements."""
    settled = control.value(
        f"SELECT MAX(start_lsn) FROM {MAPPING} WHERE start_lsn < (SELECT MAX(start_lsn) FROM {MAPPING})",
        doing="reading the newest settled position",
    )
    return Standing(captured(control), _lsn(settled), maximum(control))


def newest_row_below(control: Control, bound: Lsn) -> Lsn | None:
    """The newest row of the mapping, of a transaction or not, below a position; None when there is none."""
    found = control.value(
        f"SELECT MAX(start_lsn) FROM {MAPPING} WHERE start_lsn < {LSN}",
        digits(bound),
        doing="looking for the newest row below a position",
    )
    return _lsn(found)


def captured(control: Control) -> Lsn | None:
    """The newest captured transaction; without any, the smallest start of an instance; None without instances."""
    newest = control.value(
        f"SELECT MAX(start_lsn) FROM {MAPPING} WHERE tran_id <> 0x00", doing="reading the captured position"
    )
    if newest is not None:
        return _lsn(newest)
    start = control.value("SELECT MIN(start_lsn) FROM cdc.change_tables", doing="reading the instances' start")
    return _lsn(start)


def captured_before(control: Control, at: datetime, zone: str | None) -> Lsn | None:
    """The newest captured transaction that was committed before an instant; None when there is none.

    Args:
        control: a connection to the database.
        at: the instant.
        zone: the server's IANA time zone name; None: its current offset from UTC applies.
    """
    if zone is not None:
        local = at.astimezone(ZoneInfo(zone))
    else:
        offset = control.value("SELECT DATEPART(tzoffset, SYSDATETIMEOFFSET())", doing="reading the server's offset")
        local = at.astimezone(timezone(timedelta(minutes=int(offset))))
    found = control.value(
        f"SELECT MAX(start_lsn) FROM {MAPPING} WHERE tran_end_time < CAST(? AS datetime) AND tran_id <> 0x00",
        f"{local:%Y-%m-%dT%H:%M:%S}.{local.microsecond // 1000:03d}",
        doing="looking for the newest transaction before a time",
    )
    return _lsn(found)


def maximum(control: Control) -> Lsn | None:
    """`fn_cdc_get_max_lsn()`: what Debezium calls the position of a snapshot."""
    return _lsn(control.value("SELECT sys.fn_cdc_get_max_lsn()", doing="reading the maximum LSN"))


def minima(control: Control) -> dict[str, Lsn | None]:
    """The smallest LSN that each capture instance still holds; None for NULL and for zero (rule A9)."""
    rows = control.rows(
        "SELECT capture_instance, sys.fn_cdc_get_min_lsn(capture_instance) FROM cdc.change_tables",
        doing="reading the instances' minimum LSN",
    )
    return {row[0]: _lsn(row[1]) or None for row in rows}


def starts(control: Control) -> dict[str, Lsn | None]:
    """The start of each capture instance, which cleanup moves: the instance's minimum, once capture has reached it."""
    rows = control.rows(
        "SELECT capture_instance, start_lsn FROM cdc.change_tables", doing="reading the starts of instances"
    )
    return {row[0]: _lsn(row[1]) or None for row in rows}


def require_minimum(instance: str, minimum: Lsn | None) -> Lsn:
    """Return the minimum LSN of an instance; NULL and zero do not count as one (rule A9).

    Raises:
        SourceError: the instance is gone, or its minimum cannot be seen.
    """
    if not minimum:
        raise SourceError(
            f"The minimum LSN of capture instance {instance!r} cannot be read: it was disabled, capture has not yet "
            "reached its start, or the login lacks SELECT on the captured columns or the gating role"
        )
    return minimum


def require_held(instance: str, minimum: Lsn | None, from_: Lsn) -> None:
    """Check that nothing after `from_` was cleaned up (rule A9).

    Args:
        instance: the capture instance's name.
        minimum: its `fn_cdc_get_min_lsn`.
        from_: changes with a larger commit LSN are needed.

    Raises:
        SourceError: the instance is gone, or its minimum cannot be seen.
        DataLostError: rows after `from_` are gone.
    """
    minimum = require_minimum(instance, minimum)
    if minimum > from_.increment():
        raise DataLostError(
            f"Capture instance {instance!r} has changes only from {minimum.text}; those after {from_.text} were "
            "removed by CDC cleanup. Take a new snapshot of the table; a longer retention "
            "(sys.sp_cdc_change_job 'cleanup', @retention = …) prevents this"
        )


def nth_transaction(control: Control, after: Lsn, count: int, to: Lsn) -> Lsn | None:
    """The `count`-th captured transaction in (after, to], or the last one if there are fewer (STR-02).

    Args:
        control: a connection to the database.
        after: counting begins after this commit.
        count: at least 1.
        to: the last commit that counts.

    Returns:
        Its commit LSN; None when (after, to] holds none.
    """
    found = control.value(
        f"SELECT MAX(start_lsn) FROM (SELECT TOP ({int(count)}) start_lsn FROM {MAPPING} "
        f"WHERE start_lsn > {LSN} AND start_lsn <= {LSN} AND tran_id <> 0x00 ORDER BY start_lsn) AS n",
        digits(after),
        digits(to),
        doing="counting transactions",
    )
    return _lsn(found)


def newest_before(control: Control, positions: Sequence[Lsn]) -> dict[Lsn, Lsn | None]:
    """For each position, the newest captured transaction below it (rule B14: is a switch of instances free?)."""
    if not positions:
        return {}
    selects = [
        f"SELECT {number}, (SELECT MAX(start_lsn) FROM {MAPPING} WHERE start_lsn < {lsn(position)} AND tran_id <> 0x00)"
        for number, position in enumerate(positions)
    ]
    rows = control.rows(" UNION ALL ".join(selects), doing="looking for transactions before an instance's start")
    return {positions[row[0]]: _lsn(row[1]) for row in rows}


def retention(control: Control) -> timedelta | None:
    """The retention of the cleanup job; None if there is none, or it cannot be seen (`health.cdc_job`)."""
    job = cdc_job(control, "cleanup")
    return timedelta(minutes=int(job.retention)) if job is not None and job.retention else None


def server_time(control: Control) -> datetime:
    """The server's clock, UTC."""
    found = control.value("SELECT SYSUTCDATETIME()", doing="reading the server's clock")
    return found.replace(tzinfo=UTC)


# -- The witness of rule A7 --------------------------------------------------------------------------

_WITNESS = (
    "start_lsn, CONVERT(varchar(40), tran_id, 2), CONVERT(varchar(20), tran_begin_lsn, 2), "
    "CONVERT(varchar(23), tran_end_time, 121)"
)
_FORK = "SELECT CONVERT(nvarchar(36), recovery_fork_guid) FROM sys.database_recovery_status WHERE database_id = DB_ID()"


def recovery_fork(control: Control) -> str | None:
    """Return the recovery fork of the database, which a restore and a failover change; None if it is not visible."""
    try:
        found = control.value(_FORK, doing="reading the recovery fork")
    except SourceError:
        return None
    return None if found is None else str(found)


def shows_fork(control: Control) -> bool:
    """Whether the server shows recovery forks to those who may see them; Azure SQL Database has no view of them."""
    return not is_azure_sql_database(control)


def witness(control: Control, to: Lsn) -> Witness | None:
    """The newest captured transaction at or below `to`; None when there is none to remember."""
    found = _newest(control, to)
    return None if found is None else replace(found, fork=recovery_fork(control))


def require_witness(control: Control, known: Witness) -> None:
    """Check that the source still has the history that the witness saw.

    Where cleanup may have removed the transaction, the recovery fork must be the same.

    Raises:
        SourceRestoredError: the source has another history: it was restored, or a failover lost transactions.
    """
    row = control.row(
        f"SELECT {_WITNESS} FROM {MAPPING} WHERE start_lsn = {LSN}",
        digits(known.start_lsn),
        doing="looking for the witness",
    )
    if row is not None and _witness(row) == known:
        return
    if row is None:
        oldest = _lsn(control.value(f"SELECT MIN(start_lsn) FROM {MAPPING}", doing="reading the oldest position"))
        if oldest is not None and known.start_lsn < oldest:
            fork = recovery_fork(control)
            if fork is None or known.fork in {None, fork}:
                return
            raise SourceRestoredError(
                f"Transaction {known.start_lsn.text} of {known.tran_end_time}, which was captured before, is gone, and "
                f"the source was restored or failed over since: found recovery fork {fork}, expected {known.fork}. A "
                "new epoch and a new snapshot are needed"
            )
    found = "no longer exists" if row is None else f"is a different one ({_witness(row)})"
    raise SourceRestoredError(
        f"Transaction {known.start_lsn.text} of {known.tran_end_time}, which was captured before, {found}: the "
        "database was restored, or a failover lost transactions. A new epoch and a new snapshot are needed"
    )


def require_complete(control: Control, to: Lsn, known: Witness | None) -> None:
    """Check that no transaction has appeared below a position up to which everything was read.

    Positions may be past the newest transaction, where nothing was captured. A restored log uses them again.

    Args:
        control: the connection.
        to: the position.
        known: the witness that was chosen together with it.

    Raises:
        SourceRestoredError: there is a newer transaction at or below `to`.
    """
    found = _newest(control, to)
    if found is not None and (known is None or found.start_lsn > known.start_lsn):
        raise SourceRestoredError(
            f"Transaction {found.start_lsn.text} of {found.tran_end_time} is at or below {to.text}, which was read "
            "before the transaction existed: the database was restored, or a failover lost transactions. A new epoch "
            "and a new snapshot are needed"
        )


def _newest(control: Control, to: Lsn) -> Witness | None:
    row = control.row(
        f"SELECT TOP (1) {_WITNESS} FROM {MAPPING} WHERE start_lsn <= {LSN} AND tran_id <> 0x00 "
        "ORDER BY start_lsn DESC",
        digits(to),
        doing="choosing a witness",
    )
    return None if row is None else _witness(row)


def _witness(row: Any) -> Witness:
    start = _lsn(row[0])
    assert start is not None
    return Witness(start, row[1].lower(), row[2].lower(), row[3])


def _lsn(raw: bytes | None) -> Lsn | None:
    return None if raw is None or bytes(raw) == ZERO_LSN.raw else Lsn(bytes(raw))
