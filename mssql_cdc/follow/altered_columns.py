"""Which ALTER COLUMN rewrites the values of a table without a word of it in the change table (D24).

Such values still fit their Delta column, so nothing else would notice: `char(5)` that becomes `char(10)` pads them,
fewer digits round them. Only reading the table shows what its rows have now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from mssql_cdc.schema import SqlServerType, TableSchema
from mssql_cdc.schema.type_table import TYPES, Kind

_FIXED = {"char", "nchar", "binary"}
_DIGITS = {"date": -2, "smalldatetime": -1, "money": 4, "smallmoney": 4, "real": 98, "float": 99}
"""Digits of fractions of the types that declare none; a date has no hours, and a `float` more than any decimal."""
_DATETIME = "datetime"
"""Thirds of a hundredth of a second: in 3 digits, the same values; in more, others."""


def altered_columns(versions: Sequence[TableSchema]) -> tuple[TableSchema, list[str]] | None:
    """The last of these versions under which values were rewritten, and the columns; None: none were.

    A version with another key says nothing: its table is read again anyway.

    Args:
        versions: Versions of a table, oldest first.
    """
    pairs = list(pairwise(versions))
    for before, after in reversed(pairs):
        columns = list(_rewritten(before, after)) if before.key_fingerprint == after.key_fingerprint else []
        if columns:
            return after, columns
    return None


def is_rewritten(before: SqlServerType, after: SqlServerType) -> bool:
    """Whether a change of the type changes values that are stored.

    Args:
        before: The type of a column.
        after: The type that it got.
    """
    if before.name not in TYPES or after.name not in TYPES:
        return False
    kinds = before.kind, after.kind
    if before.kind in {Kind.TEXT, Kind.DOCUMENT} and after.row.code_page and not before.row.code_page:
        return True  # What the code page does not have became a question mark.
    if after.name in _FIXED:
        return before.name not in _FIXED or before.length != after.length
    if kinds in {(Kind.TEXT, Kind.TEXT), (Kind.BINARY, Kind.BINARY)}:
        return False
    if before.name == _DATETIME or after.name == _DATETIME:
        return _is_moved(before, after)
    digits = _digits(before), _digits(after)
    return None not in digits and (digits[1] or 0) < (digits[0] or 0)


def _rewritten(before: TableSchema, after: TableSchema) -> Iterator[str]:
    known = {column.name: column for column in before.value_columns}
    for column in after.value_columns:
        old = known.get(column.name)
        same = old is not None and (old.position, old.stored_name) == (column.position, column.stored_name)
        if old is not None and same and not column.computed and is_rewritten(old.type, column.type):
            yield column.name


def _is_moved(before: SqlServerType, after: SqlServerType) -> bool:
    """Whether a `datetime` that another type becomes, or that becomes another type, is another moment."""
    if before.name == after.name:
        return False
    other = _digits(after if before.name == _DATETIME else before)
    if before.name == _DATETIME:
        return other != 3
    return other is None or other > 2


def _digits(kind: SqlServerType) -> int | None:
    """How many digits of a fraction the values of a type have; None: they are no numbers and no times."""
    if kind.name in _DIGITS:
        return _DIGITS[kind.name]
    match kind.kind:
        case Kind.BOOLEAN | Kind.INTEGER:
            return 0
        case Kind.DECIMAL:
            return kind.scale or 0
        case Kind.TIME | Kind.TIMESTAMP | Kind.INSTANT:
            return kind.fraction_digits
        case _:
            return None
