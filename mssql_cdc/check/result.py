"""What a check found, as values, and the error that stands for it all at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mssql_cdc.check.multiset import Difference
from mssql_cdc.errors import CheckDiffersError, DataLostError, MssqlCdcError, NotCaughtUpError, SourceRestoredError
from mssql_cdc.schema import TableId

Status = Literal["equal", "never read", "differs", "lost", "failed", "gone", "not caught up", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheck:
    """What the check of one table found.

    Attributes:
        table: its name.
        status: `lost`, `failed` and `gone` tables may lack rows, whatever the comparison says; of a table that was
            `never read` the lake has no row, as it is configured.
        source_rows: rows at the source, as far as they were compared.
        lake_rows: rows in the lake.
        checksum: of the source's rows.
        differences: rows that differ.
        log: what is wrong with the change log, a line each.
        left_out: columns that were not compared, with the reason.
        notes: what else is to be said: structure, gaps, reasons of the status.
        fetched: rows that the source had to send.
        repaired: rows that differed and were read again; everything else was found afterwards.
        error: why the table could not be compared, or its current table not be updated before.
    """

    table: TableId
    status: Status
    source_rows: int | None = None
    lake_rows: int | None = None
    checksum: str = ""
    differences: tuple[Difference, ...] = ()
    log: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fetched: int = 0
    repaired: int = 0
    error: MssqlCdcError | None = None

    @property
    def differs(self) -> bool:
        """Whether something was found that should not be."""
        return bool(self.differences or self.log)


@dataclass(frozen=True, slots=True)
class NotLookedAt:
    """Tables of a database that no check looks at: the source has them, the lake does not.

    `stopped` is what `run` ends with for the database, whatever its tables hold. `error` is why it could not be looked
    at as a run does, or its current tables not be updated: what was found of its tables may not be all.
    """

    catalog: str
    not_captured: tuple[TableId, ...] = ()
    excluded: tuple[TableId, ...] = ()
    notes: tuple[str, ...] = ()
    stopped: SourceRestoredError | None = None
    error: MssqlCdcError | None = None


def raise_findings(checks: Sequence[TableCheck], others: Sequence[NotLookedAt] = ()) -> None:
    """Raise what the command has to end with; what may be lost comes first.

    Args:
        checks: what was found of each table.
        others: what was found of each database.

    Raises:
        SourceRestoredError: a source went back in time, and an operator has to decide.
        DataLostError: a table is lost, was given up, or is gone from the source.
        CheckDiffersError: a table differs.
        NotCaughtUpError: the lake has nothing of a table yet.
        MssqlCdcError: a table could not be compared or updated, or a database not be looked at.
    """
    for other in others:
        if other.stopped is not None:
            raise other.stopped
    missing = [one for one in checks if one.status in {"lost", "failed", "gone"}]
    if missing:
        raise DataLostError(f"Rows may be missing: {'; '.join(f'{c.table} is {c.status}' for c in missing)}")
    different = [one.table.text for one in checks if one.differs]
    if different:
        raise CheckDiffersError(f"{len(different)} tables differ: {', '.join(different)}")
    for one in checks:
        if isinstance(one.error, NotCaughtUpError):
            raise one.error
    for other in others:
        if other.error is not None:
            raise type(other.error)(f"{other.catalog}: {other.error}") from other.error
    failed = [one for one in checks if one.error is not None]
    if failed:
        first = failed[0].error
        assert first is not None  # chosen so above
        more = f" (and {len(failed) - 1} more tables)" if len(failed) > 1 else ""
        raise type(first)(f"{failed[0].table}: {first}{more}") from first
