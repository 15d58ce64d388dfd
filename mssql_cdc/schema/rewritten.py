"""Which changes of a column's type rewrite a table's values without leaving a trace in the change table (D24).

A change from `char(5)` to `char(10)` pads them; fewer digits round them.
"""

from __future__ import annotations

from mssql_cdc.schema.type_table import TYPES, Kind
from mssql_cdc.schema.types import SqlServerType

_FIXED = {"char", "nchar", "binary"}
_DIGITS = {"date": -2, "smalldatetime": -1, "money": 4, "smallmoney": 4, "real": 98, "float": 99}
"""Fractional digits of the types that declare none; a date has no hours, and a `float` has more than any decimal."""
_DATETIME = "datetime"
"""It counts thirds of a hundredth of a second: with 3 digits, the values are the same; with more, they differ."""


def is_rewritten(before: SqlServerType, after: SqlServerType) -> bool:
    """Whether a change of type changes stored values.

    Args:
        before: The column's former type.
        after: Its new type.
    """
    if before.name not in TYPES or after.name not in TYPES:
        return False
    kinds = before.kind, after.kind
    if before.kind in {Kind.TEXT, Kind.DOCUMENT} and after.row.code_page:
        collations = before.collation, after.collation
        if not before.row.code_page or (None not in collations and collations[0] != collations[1]):
            return True  # Characters that the code page lacks became question marks.
    if after.name in _FIXED:
        return before.name not in _FIXED or before.length != after.length
    if kinds in {(Kind.TEXT, Kind.TEXT), (Kind.BINARY, Kind.BINARY)}:
        return False
    if before.name == _DATETIME or after.name == _DATETIME:
        return _is_moved(before, after)
    digits = _digits(before), _digits(after)
    return None not in digits and (digits[1] or 0) < (digits[0] or 0)


def _is_moved(before: SqlServerType, after: SqlServerType) -> bool:
    """Whether a change from `datetime` to another type, or from another type to `datetime`, changes the moment."""
    if before.name == after.name:
        return False
    other = _digits(after if before.name == _DATETIME else before)
    if before.name == _DATETIME:
        return other != 3
    return other is None or other > 2


def _digits(kind: SqlServerType) -> int | None:
    """How many fractional digits the values of a type have; None: they are neither numbers nor times."""
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
