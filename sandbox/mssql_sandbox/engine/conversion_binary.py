"""Conversion to and from binary types: the bytes that SQL Server stores for each type."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from mssql_sandbox.engine.conversion_numbers import to_number
from mssql_sandbox.engine.ticks import DATETIME_DAY, DAY_TICKS, Moment, OutOfRangeError, from_moment
from mssql_sandbox.engine.types import (
    BINARIES,
    EXACT,
    INTEGERS,
    MAX,
    MONEY,
    NATIONAL,
    STRINGS,
    UDTS,
    SqlType,
    reported_name,
)  # fmt: skip
from mssql_sandbox.errors import error

Converter = Callable[[Any], Any]
_SIZES = {"bit": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "smallmoney": 4, "money": 8}


def to_binary(source: SqlType, target: SqlType, style: int | None) -> Converter | None:
    """The function to binary, varbinary, image or rowversion; numbers keep their last bytes, others their first."""
    length = 8 if target.name == "rowversion" else target.length
    fixed = target.name in {"binary", "rowversion"}
    if source.name in STRINGS and (style or 0) in {1, 2}:
        return _from_hexadecimal(source, length, style or 0, fixed=fixed)
    encode = encoder(source)
    if encode is None:
        return None
    right = source.name in INTEGERS | MONEY

    def convert(value: Any) -> bytes:
        data = encode(value)
        if length == MAX:
            return data
        if len(data) > length:
            return data[-length:] if right else data[:length]
        if not fixed:
            return data
        return data.rjust(length, b"\x00") if right else data.ljust(length, b"\x00")

    return convert


def encoder(source: SqlType) -> Converter | None:
    """The function from a value to its bytes as CAST(… AS varbinary) shows them."""
    name = source.name
    if name in BINARIES | UDTS:
        return lambda value: value
    if name in NATIONAL:
        return lambda value: value.encode("utf-16-le", "surrogatepass")
    if name in STRINGS:
        collation = source.collation
        return (lambda value: value.encode("cp1252", "replace")) if collation is None else collation.encode
    if name in INTEGERS:
        size = _SIZES[name]
        return lambda value: value.to_bytes(size, "big", signed=name not in {"tinyint", "bit"})
    if name in MONEY:
        size = _SIZES[name]
        return lambda value: int(value.scaleb(4)).to_bytes(size, "big", signed=True)
    if name in EXACT:
        return lambda value: _decimal_bytes(value, source)
    if name in {"float", "real"}:
        form = ">d" if name == "float" else ">f"
        return lambda value: struct.pack(form, value)
    if name == "uniqueidentifier":
        return lambda value: value.bytes_le
    return _date_encoder(source)


def _decimal_bytes(value: Decimal, type_: SqlType) -> bytes:
    magnitude = int(abs(value).scaleb(type_.scale))
    size = 4 * max(1, -(-magnitude.bit_length() // 32))
    sign = 0 if value < 0 else 1
    return bytes((type_.precision, type_.scale, 0, sign)) + magnitude.to_bytes(size, "little")


def _date_encoder(source: SqlType) -> Converter | None:
    name = source.name
    if name == "datetime":
        return lambda value: struct.pack(">iI", *divmod(value, DATETIME_DAY))
    if name == "smalldatetime":
        return lambda value: struct.pack(">HH", *divmod(value, 1440))
    if name == "date":
        return lambda value: value.to_bytes(3, "little")
    size = 3 if source.scale <= 2 else 4 if source.scale <= 4 else 5
    step = 10 ** (7 - source.scale)
    head = bytes((source.scale,))
    if name == "time":
        return lambda value: head + (value // step).to_bytes(size, "little")

    def stamp(ticks: int) -> bytes:
        day, part = divmod(ticks, DAY_TICKS)
        return head + (part // step).to_bytes(size, "little") + day.to_bytes(3, "little")

    if name == "datetime2":
        return stamp
    if name == "datetimeoffset":
        return lambda value: stamp(value[0]) + struct.pack("<h", value[1])
    return None


def _from_hexadecimal(source: SqlType, length: int, style: int, *, fixed: bool) -> Converter:
    def convert(value: str) -> bytes:
        digits = value
        if style == 1:
            if digits[:2].lower() != "0x":
                raise error(8114, source=reported_name(source), target="varbinary")
            digits = digits[2:]
        try:
            data = bytes.fromhex(digits) if " " not in digits else _refuse()
        except ValueError:
            raise error(8114, source=reported_name(source), target="varbinary") from None
        if length != MAX:
            data = data[:length].ljust(length, b"\x00") if fixed else data[:length]
        return data

    return convert


def _refuse() -> bytes:
    raise ValueError("blanks are no hexadecimal digits")


def from_binary(source: SqlType, target: SqlType) -> Converter | None:
    """The function from bytes to a number, a legacy date or a uniqueidentifier; short values are zero-filled left."""
    name = target.name
    if name == "bit":
        return lambda value: int(any(value))
    if name in {"tinyint", "smallint", "int", "bigint"}:
        size = _SIZES[name]
        return lambda value: int.from_bytes(_last(value, size), "big", signed=name != "tinyint")
    if name in MONEY:
        size = _SIZES[name]
        return lambda value: Decimal(int.from_bytes(_last(value, size), "big", signed=True)).scaleb(-4)
    if name in EXACT:
        return lambda value: _decimal_of(value, source, target)
    if name == "datetime":
        return lambda value: _datetime_of(_last(value, 8))
    if name == "smalldatetime":
        return lambda value: int.from_bytes(_last(value, 4)[:2], "big") * 1440 + int.from_bytes(value[-2:], "big")
    if name == "uniqueidentifier":
        return lambda value: uuid.UUID(bytes_le=value[:16].ljust(16, b"\x00"))
    if name in {"date", "time", "datetime2", "datetimeoffset"}:
        return lambda value: _dated(value, source, target)
    return (lambda value: value) if name in UDTS else None


def _last(value: bytes, size: int) -> bytes:
    return value[-size:].rjust(size, b"\x00")


def _datetime_of(data: bytes) -> int:
    day, part = struct.unpack(">iI", data)
    return day * DATETIME_DAY + part


def _decimal_of(value: bytes, source: SqlType, target: SqlType) -> Decimal:
    if len(value) < 5 or value[1] > 38:
        raise error(8114, source=reported_name(source), target="numeric")
    magnitude = Decimal(int.from_bytes(value[4:], "little")).scaleb(-value[1])
    exact = to_number(SqlType("decimal", precision=38, scale=value[1]), target)
    assert exact is not None
    return exact(magnitude if value[3] else -magnitude)


def _dated(value: bytes, source: SqlType, target: SqlType) -> object:
    if target.name == "date":
        if len(value) == 3:
            return int.from_bytes(value, "little")
        raise error(8114, source=reported_name(source), target=target.name)
    tail = {"time": 0, "datetime2": 3, "datetimeoffset": 5}[target.name]
    scale = value[0] if value else 8
    size = 3 if scale <= 2 else 4 if scale <= 4 else 5
    if scale > 7 or len(value) != 1 + size + tail:
        raise error(8114, source=reported_name(source), target=target.name)
    part = int.from_bytes(value[1 : 1 + size], "little") * 10 ** (7 - scale)
    day = int.from_bytes(value[1 + size : 4 + size], "little") if tail else 0
    offset = struct.unpack("<h", value[-2:])[0] if tail == 5 else 0
    try:
        point = Moment(day, part + offset * 600_000_000, offset)
        return from_moment(point, target)
    except OutOfRangeError:
        raise error(8114, source=reported_name(source), target=target.name) from None
