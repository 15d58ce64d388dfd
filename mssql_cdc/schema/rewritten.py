"""Which change of a column's type rewrites the values of a table, without a word of it in the change table (D24).

`char(5)` that becomes `char(10)` pads them, fewer digits round them.
"""

from __future__ import annotations

from mssql_cdc.schema.type_table import TYPES, Kind
from mssql_cdc.schema.types import SqlServerType

_FIXED = {"char", "nchar", "binary"}
_DIGITS = {"date": -2, "smalldatetime": -1, "money": 4, "smallmoney": 4, "real": 98, "float": 99}
"""Digits of fractions of the types that declare none; a date has no hours, and a `float` more than any decimal."""
_DATETIME = "datetime"
"""Thirds of a hundredth of a second: in 3 digits, the same values; in more, others."""


def is_rewritten(before: SqlServerType, after: SqlServerType) -> bool:
    """Whether a change of the type changes values that are stored.

    Args:
        before: The type of a column.
        after: The type that it got.
    """
    if before.name not in TYPES or after.name not in TYPES:
        return False
    kinds = before.kind, after.kind
    if before.kind in {Kind.TEXT, Kind.DOCUMENT} and after.row.code_page:
        collations = before.collation, after.collation
        if not before.row.code_page or (None not in collations and collations[0] != collations[1]):
            return True  # What the code page does not have became a question mark.
    if after.name in _FIXED:
        return before.name not in _FIXED or before.length != after.length
    if kinds in {(Kind.TEXT, Kind.TEXT), (Kind.BINARY, Kind.BINARY)}:
        return False
    if before.name == _DATETIME or after.name == _DATETIME:
        return _is_moved(before, after)
    digits = _digits(before), _digits(after)
    return None not in digits and (digits[1] or 0) < (digits[0] or 0)


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
