"""What stands for a NULL in a NOT NULL column: the column's literal default, else its type's zero (EVT-20).

CDC does not deliver some values of NOT NULL columns (unchanged large values in before images, for instance), and
Debezium's schemas do not allow NULL there.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext
from typing import Any

from mssql_cdc.config import RecordSettings
from mssql_cdc.records.encodings import binary_encoder, unscaled_text
from mssql_cdc.schema import Column

_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_TEXTS = {"char", "varchar", "nchar", "nvarchar", "text", "ntext"}
_BYTES = {"binary", "varbinary", "image", "timestamp", "rowversion"}
_DECIMALS = {"decimal", "numeric", "money", "smallmoney"}


def value_of_null(column: Column, settings: RecordSettings) -> Any:
    """The JSON value for a NULL of this NOT NULL column.

    Only literal defaults count; those of dates and times, which Debezium lets the server parse, do not.
    """
    name = column.type.name
    literal = literal_default(column)
    if name in _DECIMALS:
        return _decimal(literal or Decimal(0), column, settings)
    if literal is not None:
        return literal if name not in _BYTES else binary_encoder(settings.binary_handling)(literal)
    return _zero(name, settings)


def literal_default(column: Column) -> Any:
    """The value of a literal DEFAULT (`((1))`, `('abc')`, `(0x0102)`), read as Debezium reads it; None: none."""
    text, name = column.default_text, column.type.name
    if text is None or text == "(NULL)":
        return None
    try:
        if name in _INTEGERS:
            return int(_innermost(text).rstrip("."))
        if name == "bit":
            return text == "((1))"
        if name in _DECIMALS:
            return Decimal(text[2:-2])
        if name in {"float", "real"}:
            return float(_innermost(text))
        if name in _BYTES:
            return bytes.fromhex(_innermost(text).removeprefix("0x"))
    except (ValueError, InvalidOperation):
        return None
    quoted = re.search(r"'(.*)'", text, re.DOTALL) if name in _TEXTS else None
    # Doubled quotes stay and parentheses cut, as in Debezium.
    return _innermost(quoted[1]) if quoted else None


def _innermost(text: str) -> str:
    """What stands between the last `(` and the first `)` behind it."""
    return text[text.rfind("(") + 1 :].split(")", 1)[0]


def _decimal(value: Decimal, column: Column, settings: RecordSettings) -> Any:
    scale = {"money": 4, "smallmoney": 4}.get(column.type.name, column.type.scale or 0)
    with localcontext() as context:
        context.prec = 60
        value = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_EVEN)
        unscaled = int(value.scaleb(scale))
    if settings.decimal_handling == "double":
        return float(value)
    if settings.decimal_handling == "string":
        return format(value, "f")
    return unscaled_text(unscaled)


def _zero(name: str, settings: RecordSettings) -> Any:
    if name == "datetimeoffset":
        return "1970-01-01T00:00:00Z"
    if settings.time_precision == "isostring":
        iso = {"date": "1970-01-01Z", "time": "00:00:00Z"}
        if name in {*iso, "datetime", "smalldatetime", "datetime2"}:
            return iso.get(name, "1970-01-01T00:00:00Z")
    if name in {"date", "time", "datetime", "smalldatetime", "datetime2", *_INTEGERS}:
        return 0
    if name == "bit":
        return False
    return 0.0 if name in {"float", "real"} else ""
