"""Conversion between all types, by SQL Server's rules and with its errors.

`converter(source, target)` makes a function for values in storage form, cached by the two types; `convert` converts one
value; `assigner` is for column values, where lost characters are an error. The parts are in conversion_numbers,
conversion_dates and conversion_strings; what does not belong here: which type wins (precedence.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from mssql_sandbox.engine import (
    conversion_binary,
    conversion_dates,
    conversion_numbers,
    conversion_strings,
    hierarchy,
)
from mssql_sandbox.engine.conversion_pairs import FORBIDDEN
from mssql_sandbox.engine.types import (
    BINARIES,
    DATES,
    MAX,
    NATIONAL,
    NUMBERS,
    SINGLE_BYTE,
    STRINGS,
    UDTS,
    SqlType,
    reported_name,
)  # fmt: skip
from mssql_sandbox.errors import SqlError, error

Converter = Callable[[Any], Any]
_CHARACTERS = SINGLE_BYTE | NATIONAL


def convert(value: object, source: SqlType, target: SqlType, *, style: int | None = None, try_: bool = False) -> Any:
    """The value in `target`'s storage form, as CAST or CONVERT gives it; character data is silently truncated.

    `try_`: TRY_CAST and TRY_CONVERT: a value that cannot be converted is NULL; an impossible pair of types (529) still
    is an error. Errors: 220, 232, 235, 241, 242, 244, 245, 248, 281, 295, 529, 8114, 8115, 8169, 8170.
    """
    if value is None:
        return None
    function = converter(source, target, style)
    if not try_:
        return function(value)
    try:
        return function(value)
    except SqlError as failure:
        if failure.number == 529:
            raise
        return None


@lru_cache(maxsize=8192)
def converter(source: SqlType, target: SqlType, style: int | None = None) -> Converter:
    """The function that converts non-NULL values of `source` to `target`; error 529 if there is no conversion."""
    if (source.name, target.name) in FORBIDDEN:
        raise error(529, source=reported_name(source), target=reported_name(target))
    if source.name == "sql_variant":
        return _from_variant(target, style)
    if target.name == "sql_variant":
        if source.name in {"text", "ntext", "image", "xml", "rowversion"} | UDTS or source.length == MAX:
            raise error(206, left=reported_name(source), right="sql_variant")
        return lambda value: (source, value)
    made = _build(source, target, style)
    if made is None:
        raise error(529, source=reported_name(source), target=reported_name(target))
    return made


def _build(source: SqlType, target: SqlType, style: int | None) -> Converter | None:
    if target.name == "hierarchyid" and source.name in _CHARACTERS:
        return hierarchy.from_text
    if source.name == "hierarchyid" and target.name in _CHARACTERS:
        fit = conversion_strings.fitter(target)
        return lambda value: fit(hierarchy.to_text(value))
    if target.name in STRINGS:
        return conversion_strings.to_string(source, target, style)
    if target.name in BINARIES:
        return conversion_binary.to_binary(source, target, style)
    if source.name in BINARIES:
        return conversion_binary.from_binary(source, target)
    if target.name in NUMBERS:
        return conversion_numbers.to_number(source, target)
    if target.name in DATES:
        return conversion_dates.to_date(source, target, style)
    if target.name == "uniqueidentifier":
        return conversion_strings.to_guid(source)
    if target.name in UDTS and source.name == target.name:
        return lambda value: value
    return None


def _from_variant(target: SqlType, style: int | None) -> Converter:
    if target.name == "sql_variant":
        return lambda value: value
    return lambda value: converter(value[0], target, style)(value[1])


def assigner(source: SqlType, target: SqlType, *, table: str, column: str, verbose: bool = True) -> Converter:
    """Like `converter`, for storing into a column, where truncation of text or bytes is an error.

    It is 2628 or, when not `verbose` (compatibility levels below 150), 8152. Trailing blanks and zero bytes may be cut.
    """
    function = converter(source, target)
    if target.length == MAX or target.name not in {"char", "varchar", "nchar", "nvarchar", "binary", "varbinary"}:
        return function
    if _fits(source, target):
        return function
    whole = converter(source, SqlType(_varying(target.name), MAX, collation=target.collation))
    blank: Any = b"\x00" if target.name in {"binary", "varbinary"} else " "

    def assign(value: Any) -> Any:
        result = function(value)
        if type(value) is str and len(value) <= target.length and value.isascii():
            return result
        full = whole(value)
        if len(full) > len(result) and full.rstrip(blank) != result.rstrip(blank):
            if not verbose:
                raise error(8152)
            shown = result if isinstance(result, str) else "0x" + result.hex().upper()
            raise error(2628, table=table, column=column, value=shown)
        return result

    return assign


def _varying(name: str) -> str:
    return name if "var" in name else name.replace("char", "varchar").replace("binary", "varbinary")


def _fits(source: SqlType, target: SqlType) -> bool:
    """Whether no value of the source can be too long."""
    if source.name in {"binary", "varbinary"} and target.name in {"binary", "varbinary"}:
        return 0 < source.length <= target.length
    narrow = target.name in SINGLE_BYTE and target.collation is not None and target.collation.multi_byte
    if source.name in STRINGS and target.name in STRINGS and not narrow:
        return 0 < source.length <= target.length
    return source.name not in STRINGS | NATIONAL | BINARIES
