"""The replacement for NULL in a NOT NULL column: the column's literal default, else its type's zero (EVT-20).

CDC does not deliver some values of NOT NULL columns (for example unchanged large values in before images), and
Debezium's schemas do not allow NULL there.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext

from mssql_cdc.config import RecordSettings
from mssql_cdc.records.encodings import binary_encoder, unscaled_text
from mssql_cdc.schema import Column, Kind, SqlServerType

Literal = bool | int | float | str | bytes | Decimal


def value_of_null(column: Column, settings: RecordSettings) -> bool | int | float | str:
    """Return the JSON value that replaces NULL in this NOT NULL column.

    Only literal defaults are used, except those of dates and times, which Debezium lets the server parse.
    """
    literal = literal_default(column)
    value = _zero(column.type.kind, settings) if literal is None else literal
    if isinstance(value, Decimal):
        return _decimal(value, column.type, settings)
    return binary_encoder(settings.binary_handling)(value) if isinstance(value, bytes) else value


def literal_default(column: Column) -> Literal | None:
    """Parse a literal DEFAULT (`((1))`, `('abc')`, `(0x0102)`) as Debezium does; None if there is none."""
    text = column.default_text
    if text is None or text == "(NULL)":
        return None
    try:
        return _literal(column.type.kind, text)
    except (ValueError, InvalidOperation):
        return None


def _literal(kind: Kind, text: str) -> Literal | None:
    match kind:
        case Kind.INTEGER:
            return int(_innermost(text).rstrip("."))
        case Kind.BOOLEAN:
            return text == "((1))"
        case Kind.DECIMAL:
            return Decimal(text[2:-2])
        case Kind.FLOAT:
            return float(_innermost(text))
        case Kind.BINARY:
            return bytes.fromhex(_innermost(text).removeprefix("0x"))
        case Kind.TEXT:
            quoted = re.search(r"'(.*)'", text, re.DOTALL)
            # As in Debezium, doubled quotes stay doubled and parentheses truncate the text.
            return _innermost(quoted[1]) if quoted else None
        case (
            Kind.DATE | Kind.TIME | Kind.TIMESTAMP | Kind.INSTANT | Kind.DOCUMENT | Kind.UUID | Kind.CLR | Kind.VARIANT
        ):
            return None


def _innermost(text: str) -> str:
    """Return the text between the last `(` and the first `)` after it."""
    return text[text.rfind("(") + 1 :].split(")", 1)[0]


def _decimal(value: Decimal, sql_type: SqlServerType, settings: RecordSettings) -> float | str:
    scale = sql_type.jdbc_scale or 0
    with localcontext() as context:
        context.prec = 60
        value = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_EVEN)
        unscaled = int(value.scaleb(scale))
    if settings.decimal_handling == "double":
        return float(value)
    if settings.decimal_handling == "string":
        return format(value, "f")
    return unscaled_text(unscaled)


def _zero(kind: Kind, settings: RecordSettings) -> Literal:
    is_iso = settings.time_precision == "isostring"
    match kind:
        case Kind.BOOLEAN:
            return False
        case Kind.INTEGER:
            return 0
        case Kind.DECIMAL:
            return Decimal(0)
        case Kind.FLOAT:
            return 0.0
        case Kind.BINARY | Kind.CLR:
            return b""
        case Kind.DATE:
            return "1970-01-01Z" if is_iso else 0
        case Kind.TIME:
            return "00:00:00Z" if is_iso else 0
        case Kind.TIMESTAMP:
            return "1970-01-01T00:00:00Z" if is_iso else 0
        case Kind.INSTANT:
            return "1970-01-01T00:00:00Z"
        case Kind.TEXT | Kind.DOCUMENT | Kind.UUID | Kind.VARIANT:
            return ""
