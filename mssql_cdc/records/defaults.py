"""Literal defaults as Debezium understands them, and the value that replaces NULL in a NOT NULL column (EVT-20).

CDC does not deliver some values of NOT NULL columns (for example unchanged large values in before images), and
Debezium's schemas do not allow NULL there. A default is also part of the schemas of records, and Kafka Connect's
converter can show it instead of NULL.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import pyarrow as pa

from mssql_cdc.schema import Column, Kind

_ALL_DIGITS = Context(prec=100)
"""Python's default context has 28 digits; SQL Server's decimals have 38."""
Literal = tuple[Any, str | None]
"""A value as the lake stores it, and its exact text where the stored value loses something."""
_DATE = r"(\d{4}-\d{2}-\d{2})"
_TIME = r"(\d{1,2}:\d{2}(?::\d{2})?)(?:\.(\d{1,7}))?"
_ZONE = r"([+-]\d{2}:\d{2})"
_RANGES = {"tinyint": (-(2**15), 2**15), "smallint": (-(2**15), 2**15), "int": (-(2**31), 2**31)}
"""Java's types; Debezium reads the default of a tinyint as a short."""
_TICKS = {"smalldatetime": 1, "datetime": 60 * 300}
"""How many distinct values there are per minute."""


def literal_default(column: Column) -> Literal | None:
    """Parse a literal DEFAULT (`((1))`, `('abc')`, `(0x0102)`) as Debezium does; None if Debezium shows none."""
    text = column.default_text
    if text is None or column.identity or column.alias is not None:
        return None
    try:
        found = _literal(column, text)
        if found is not None:
            stored(column, found)  # A default that the column cannot hold counts as none.
    except (ValueError, ArithmeticError):
        return None
    return found


def zero(column: Column) -> Literal:
    """Return what Debezium shows for a missing value of a NOT NULL column without a default."""
    match column.type.kind:
        case Kind.BOOLEAN:
            return False, None
        case Kind.INTEGER:
            return 0, None
        case Kind.DECIMAL:
            return Decimal(0), None
        case Kind.FLOAT:
            return 0.0, None
        case Kind.BINARY | Kind.CLR:
            return b"", None
        case Kind.DATE:
            return date(1970, 1, 1), None
        case Kind.TIME:
            return "00:00:00", None
        case Kind.TIMESTAMP:
            return datetime(1970, 1, 1), None  # noqa: DTZ001 (SQL Server's value has no zone)
        case Kind.INSTANT:
            return datetime(1970, 1, 1, tzinfo=UTC), None
        case Kind.TEXT | Kind.DOCUMENT | Kind.UUID | Kind.VARIANT:
            return "", None


def stored(column: Column, literal: Literal) -> tuple[pa.Array, pa.Array | None]:
    """Return a literal as a column of one row, and its exact texts."""
    value, exact = literal
    if isinstance(value, Decimal):
        scale = Decimal(1).scaleb(-(column.type.jdbc_scale or 0))
        value = value.quantize(scale, rounding=ROUND_HALF_EVEN, context=_ALL_DIGITS)
    return pa.array([value], column.type.arrow), None if exact is None else pa.array([exact], pa.string())


def _literal(column: Column, text: str) -> Literal | None:
    found: Any
    match column.type.kind:
        case Kind.INTEGER:
            found = _integer(column.type.name, _innermost(text))
        case Kind.BOOLEAN:
            found = text == "((1))"
        case Kind.DECIMAL:
            found = Decimal(text[2:-2])
        case Kind.FLOAT:
            found = None if _innermost(text).upper() == "NULL" else float(_innermost(text))
        case Kind.BINARY if column.type.row.arguments == "length" or column.type.is_large:
            found = bytes.fromhex(text[3:-1])
        case Kind.TEXT:
            # As in Debezium, doubled quotes stay doubled, parentheses truncate the text, and 'NULL' is NULL.
            first, last = text.find("'"), text.rfind("'")
            found = _innermost(text if first < 0 else _between(text, first + 1, last))
            found = None if found.upper() == "NULL" else found
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP | Kind.INSTANT:
            return _moment(column, text[2:-2])
        case Kind.BINARY | Kind.DOCUMENT | Kind.UUID | Kind.CLR | Kind.VARIANT:
            return None
    return None if found is None else (found, None)


def _integer(type_name: str, text: str) -> int | None:
    if text.upper() == "NULL":
        return None
    number = int(text.removesuffix(".") if type_name == "bigint" else text)
    low, high = _RANGES.get(type_name, (-(2**63), 2**63))
    return number if low <= number < high else None


def _moment(column: Column, text: str) -> Literal | None:
    """Parse a date or time in ISO notation, with all digits, however many the column keeps.

    Debezium lets the server parse it, which accepts more notations.
    """
    match column.type.kind:
        case Kind.DATE:
            found = re.fullmatch(_DATE, text)
            return (date.fromisoformat(found[1]), None) if found else None
        case Kind.TIME:
            found = re.fullmatch(_TIME, text)
            if found is None:
                return None
            return f"{_padded(found[1])}.{(found[2] or '').ljust(7, '0')}", None
        case Kind.INSTANT:
            found = re.fullmatch(f"{_DATE}(?:[ T]{_TIME})?(?: ?{_ZONE})?", text)
        case _:
            found = re.fullmatch(f"{_DATE}(?:[ T]{_TIME})?", text)
    if found is None:
        return None
    digits = (found[3] or "").ljust(7, "0")
    local = datetime.fromisoformat(f"{found[1]}T{_padded(found[2] or '00:00')}")
    at = local + timedelta(microseconds=int(digits[:6]))
    if column.type.name in _TICKS:
        return _rounded(at, _TICKS[column.type.name]), None
    seventh, shown = digits[6], f"{local.isoformat(sep=' ')}.{digits}"
    if column.type.kind is Kind.TIMESTAMP:
        return at, shown if seventh != "0" else None
    zone = found[4] or "+00:00"
    exact = f"{shown} {zone}" if seventh != "0" or zone != "+00:00" else None
    return datetime.fromisoformat(f"{at.isoformat()}{zone}").astimezone(UTC), exact


def _rounded(at: datetime, ticks: int) -> datetime:
    """Round to ticks of a minute, then to milliseconds, as the server does."""
    start = at.replace(second=0, microsecond=0)
    count = (at - start) / timedelta(minutes=1) * ticks
    return start + timedelta(milliseconds=round(int(count + 0.5) * 60_000 / ticks))


def _padded(time: str) -> str:
    parts = [part.zfill(2) for part in time.split(":")]
    return ":".join([*parts, "00"][:3])


def _innermost(text: str) -> str:
    """Return the text between the last `(` and the first `)`, as Debezium does (raises ValueError like `_between`)."""
    end = text.find(")")
    return _between(text, text.rfind("(") + 1, len(text) if end < 0 else end)


def _between(text: str, start: int, end: int) -> str:
    """Return a part of a text; as in Java, it cannot end before it begins (raises ValueError)."""
    if start > end:
        raise ValueError(f"there is no text from {start} to {end}")
    return text[start:end]
