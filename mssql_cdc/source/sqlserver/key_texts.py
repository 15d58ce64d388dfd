"""A key value as Debezium's notifications show it: the `toString` of the Java object that the driver returns (NOT-07).

Bounds of chunks are texts that `chunks.py` makes; this module turns them into human-readable ones. Binary values are
the exception: Java shows where an array lies in memory, so they stay hexadecimal.
"""

from __future__ import annotations

import struct

from mssql_cdc.config.java_texts import java_double
from mssql_cdc.schema import Kind, SqlServerType

_DAY_OF_TIMES = "1900-01-01"
"""The date of the `java.sql.Timestamp` that the driver makes from a time."""


def key_text(sql_type: SqlServerType, value: str) -> str:
    """Return the text of a key value.

    Args:
        sql_type: The type of the column.
        value: The text of the value in a bound.
    """
    match sql_type.kind:
        case Kind.TEXT:
            return bytes.fromhex(value).decode("utf-16-le", "replace")
        case Kind.BOOLEAN:
            return "true" if value == "1" else "false"
        case Kind.FLOAT:
            return java_double(_shortest(value) if sql_type.name == "real" else repr(float(value)))
        case Kind.TIMESTAMP:
            return _timestamp(value.replace("T", " "))
        case Kind.TIME:
            return _timestamp(f"{_DAY_OF_TIMES} {value}")
        case Kind.INSTANT:
            moment, _, zone = value.rpartition(" ")
            return f"{_timestamp(moment).removesuffix('.0')} {zone}"
        case _:
            return value


def _timestamp(text: str) -> str:
    """The text without trailing zeros in the fraction of a second, which keeps at least one digit."""
    seconds, _, fraction = text.partition(".")
    return f"{seconds}.{fraction.rstrip('0') or '0'}"


def _shortest(value: str) -> str:
    """The fewest digits that represent the same 32-bit number."""
    wanted = struct.pack("f", float(value))
    return next(
        text for digits in range(1, 10) if struct.pack("f", float(text := f"{float(value):.{digits}g}")) == wanted
    )
