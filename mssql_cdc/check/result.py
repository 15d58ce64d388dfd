"""What a check found, as values, and the error that represents all of it at the end."""

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
            `never read`, the lake has no row, as configured.
        source_rows: rows at the source, as far as they were compared.
        lake_rows: rows in the lake.
        checksum: of the source's rows.
        differences: rows that differ.
        log: what is wrong with the change log, one line per finding.
        left_out: columns that were not compared, with the reason.
        notes: other remarks: structure, gaps, reasons for the status.
        fetched: rows that the source had to send.
        repaired: rows that differed and were read again; everything else was found afterwards.
        error: why the table or its change log could not be compared, or its current table not be updated beforehand.
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
    """Tables of a database that no check covers: the source has them, the lake does not.

    `stopped` is the error that `run` ends with for the database, whatever its tables hold. `error` is why the database
    could not be surveyed as a run does, or its current tables could not be updated: the findings may not be complete.
    """

    catalog: str
    not_captured: tuple[TableId, ...] = ()
    excluded: tuple[TableId, ...] = ()
    notes: tuple[str, ...] = ()
    stopped: SourceRestoredError | None = None
    error: MssqlCdcError | None = None


def raise_findings(checks: Sequence[TableCheck], others: Sequence[NotLookedAt] = ()) -> None:
    """Raise the error that the command has to end with; possible losses come first.

    Args:
        checks: what was found about each table.
        others: what was found about each database.

    Raises:
        SourceRestoredError: a source went back in time, and an operator has to decide.
        DataLostError: a table is lost, was given up, or is gone from the source.
        CheckDiffersError: a table differs.
        NotCaughtUpError: the lake has nothing of a table yet.
        MssqlCdcError: a table could not be compared or updated, or a database could not be surveyed.
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
