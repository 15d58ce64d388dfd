"""Decoding single values, without frame, into storage form; every range is checked.

type_codecs.py assigns decoders to types.
"""

import decimal
import math
import struct
import uuid

from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.tds.collations import default_collation
from mssql_sandbox.tds.wire import ProtocolError, decode_utf16

TICKS_PER_DAY = 864_000_000_000
DATETIME_TICKS_PER_DAY = 25_920_000
MINUTES_PER_DAY = 1440
LAST_DAY = 3_652_058  # 9999-12-31
_WIDE = decimal.Context(prec=80)


class InvalidValueError(ValueError):
    """Well-formed bytes that are not a value of the declared type (SQL Server: error 8023)."""


def time_size(scale: int) -> int:
    """Bytes of a time of day of that scale."""
    return 3 if scale <= 2 else 4 if scale <= 4 else 5


def read_int(data: bytes, _: SqlType) -> int:
    """Integers; only one-byte integers are unsigned."""
    return int.from_bytes(data, "little", signed=len(data) > 1)


def read_bit(data: bytes, _: SqlType) -> int:
    """Any non-zero bit means 1."""
    return int(data[0] != 0)


def read_float(data: bytes, _: SqlType) -> float:
    """Floating-point numbers; NaN and infinities do not exist."""
    value = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
    if not math.isfinite(value):
        raise InvalidValueError(f"{value} is no value of float or real")
    return value


def read_money(data: bytes, _: SqlType) -> decimal.Decimal:
    """An amount of money with its high half first, or a small one."""
    if len(data) == 4:
        amount = int.from_bytes(data, "little", signed=True)
    else:
        high, low = struct.unpack("<iI", data)
        amount = high << 32 | low
    return _WIDE.scaleb(decimal.Decimal(amount), -4)


def read_decimal(data: bytes, type_: SqlType) -> decimal.Decimal:
    """Sign, then magnitude."""
    magnitude = int.from_bytes(data[1:], "little")
    if magnitude >= 10**type_.precision:
        raise InvalidValueError(f"{magnitude} has more than {type_.precision} digits")
    value = _WIDE.scaleb(decimal.Decimal(magnitude), -type_.scale)
    return value if data[0] else _WIDE.minus(value)


def read_datetime(data: bytes, _: SqlType) -> int:
    """Days and 1/300 seconds."""
    days, ticks = struct.unpack("<iI", data)
    if not -53690 <= days <= 2958463 or ticks >= DATETIME_TICKS_PER_DAY:
        raise InvalidValueError(f"{days} days and {ticks} ticks are no datetime")
    return days * DATETIME_TICKS_PER_DAY + ticks


def read_smalldatetime(data: bytes, _: SqlType) -> int:
    """Days and minutes."""
    days, minutes = struct.unpack("<HH", data)
    if minutes >= MINUTES_PER_DAY:
        raise InvalidValueError(f"minute {minutes} is no smalldatetime")
    return days * MINUTES_PER_DAY + minutes


def read_date(data: bytes, _: SqlType) -> int:
    """Days since 0001-01-01."""
    days = int.from_bytes(data, "little")
    if days > LAST_DAY:
        raise InvalidValueError(f"{days} days after 0001-01-01 are no date")
    return days


def read_time(data: bytes, type_: SqlType) -> int:
    """Units of the scale since midnight."""
    ticks = int.from_bytes(data, "little") * 10 ** (7 - type_.scale)
    if ticks >= TICKS_PER_DAY:
        raise InvalidValueError(f"{ticks} ticks are no time of day")
    return ticks


def read_datetime2(data: bytes, type_: SqlType) -> int:
    """Time, then date."""
    size = time_size(type_.scale)
    return read_date(data[size : size + 3], type_) * TICKS_PER_DAY + read_time(data[:size], type_)


def read_datetimeoffset(data: bytes, type_: SqlType) -> tuple[int, int]:
    """Time and date in UTC, then the offset in minutes."""
    offset = int.from_bytes(data[-2:], "little", signed=True)
    if not -840 <= offset <= 840:
        raise InvalidValueError(f"{offset} minutes are no time zone offset")
    return read_datetime2(data[:-2], type_), offset


def read_guid(data: bytes, _: SqlType) -> uuid.UUID:
    """The first three groups are little-endian."""
    return uuid.UUID(bytes_le=data)


def read_single_byte(data: bytes, type_: SqlType) -> str:
    """Text in the code page of the type's collation."""
    return (type_.collation or default_collation()).decode(data)


def read_national(data: bytes, _: SqlType) -> str:
    """UTF-16 text."""
    return decode_utf16(data)


def read_xml(data: bytes, _: SqlType) -> str:
    """UTF-16 text, with or without a byte-order mark."""
    # Microsoft's driver sends a byte-order mark, others do not.
    return decode_utf16(data.removeprefix(b"\xff\xfe"))


def read_raw(data: bytes, _: SqlType) -> bytes:
    """Bytes, unchanged."""
    return data


def read_variant(data: bytes, type_: SqlType) -> object:
    """Never called: a variant needs the reader, for its base type comes first."""
    raise ProtocolError(f"{type_.name} has its own reader ({len(data)} bytes)")
