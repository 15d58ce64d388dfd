"""System-versioned tables on write: period columns, and former rows kept in the history table.

What does not belong here: definitions and FOR SYSTEM_TIME (the executor's temporal.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.table import Table

_END_OF_TIME = 3652059 * 864_000_000_000
_DIGITS = 7


def current_period(table: Table, transaction: Transaction) -> tuple[int, int]:
    """Start and end of the period of a new row: the transaction's begin, and the last moment of the year 9999."""
    assert table.period_at is not None
    start, end = (table.columns[place].type for place in table.period_at)
    return _rounded(transaction.begin_ticks, start), _END_OF_TIME - 10 ** (_DIGITS - end.scale)


def _rounded(ticks: int, type_: SqlType) -> int:
    step = 10 ** (_DIGITS - type_.scale)
    return ticks // step * step


def former_row(table: Table, history: Table, transaction: Transaction, row: tuple) -> tuple:
    """The history row of a row that is no longer current; 13535 if it is younger than the transaction.

    A row changed twice in one transaction leaves a history row whose period is empty; queries do not show it.
    """
    assert table.period_at is not None
    start, end = table.period_at
    now = current_period(table, transaction)[0]
    if row[start] > now:
        raise SqlError(
            13535, f"Data modification failed on system-versioned table '{table.long_name}' because transaction time "
            "was earlier than period start time for affected records."
        )  # fmt: skip
    cells = {column.name: value for column, value in zip(table.columns, row, strict=True)}
    cells[table.columns[end].name] = now
    return tuple(cells.get(column.name) for column in history.columns)
