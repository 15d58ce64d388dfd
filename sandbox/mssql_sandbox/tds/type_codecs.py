"""The table of value codecs: the bytes of each type's values on the wire (MS-TDS 2.2.5.4 to 2.2.5.6).

A codec has, per type, the source text of an expression that turns a value `v` in storage form into its framed bytes
(row encoders are compiled from these), and a function that reads the unframed bytes back. The frame determines the form
of NULL and of lengths. TYPE_INFO is in type_info.py.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mssql_sandbox.engine.types import MAX, SqlType
from mssql_sandbox.tds import decoders
from mssql_sandbox.tds.collations import default_collation
from mssql_sandbox.tds.decoders import DATETIME_TICKS_PER_DAY, MINUTES_PER_DAY, TICKS_PER_DAY, time_size


class Frame(enum.Enum):
    """How the length of a value, and NULL, are written."""

    BYTE = "one byte, 0 is NULL"
    SHORT = "two bytes, FFFF is NULL"
    PARTS = "partially length-prefixed: eight bytes, then chunks"
    POINTER = "text pointer, timestamp, four bytes"
    VARIANT = "four bytes, base type, properties"


NULLS: Mapping[Frame, bytes] = {
    Frame.BYTE: b"\0",
    Frame.SHORT: b"\xff\xff",
    Frame.PARTS: b"\xff" * 8,
    Frame.POINTER: b"\0",
    Frame.VARIANT: b"\0\0\0\0",
}


@dataclass(frozen=True, slots=True)
class Codec:
    """One type: wire token, frame for a given type, expression to encode, function to decode.

    `content` is the expression of the bytes inside the frame, for types whose values differ in length.
    """

    token: int
    frame: Callable[[SqlType], Frame]
    encode: Callable[[SqlType], str]
    decode: Callable[[bytes, SqlType], object]
    content: Callable[[SqlType], str] | None = None


# -- sizes ---------------------------------------------------------------------------------------------------


def decimal_size(precision: int) -> int:
    """Bytes of the magnitude of a decimal of that precision."""
    return 4 if precision <= 9 else 8 if precision <= 19 else 12 if precision <= 28 else 16


# -- encoding: expressions over `v`; the names they use are given by row_encoder.py ----------------------------------


def _decimal(type_: SqlType) -> str:
    size = decimal_size(type_.precision)
    positive, negative = bytes((size + 1, 1)), bytes((size + 1, 0))
    unscaled = f"int(scaleb(v, {type_.scale}))" if type_.scale else "int(v)"
    return f"({positive!r} if (m := {unscaled}) >= 0 else {negative!r}) + abs(m).to_bytes({size}, 'little')"


def _time(type_: SqlType) -> str:
    size, unit = time_size(type_.scale), 10 ** (7 - type_.scale)
    return f"((v // {unit}) << 8 | {size}).to_bytes({size + 1}, 'little')"


def _datetime2(type_: SqlType) -> str:
    size, unit = time_size(type_.scale), 10 ** (7 - type_.scale)
    return (
        f"((v // {TICKS_PER_DAY}) << {8 * size + 8} | (v % {TICKS_PER_DAY} // {unit}) << 8 | {size + 3})"
        f".to_bytes({size + 4}, 'little')"
    )


def _datetimeoffset(type_: SqlType) -> str:
    size, unit = time_size(type_.scale), 10 ** (7 - type_.scale)
    return (
        f"((v[1] & 0xFFFF) << {8 * size + 32} | (v[0] // {TICKS_PER_DAY}) << {8 * size + 8}"
        f" | (v[0] % {TICKS_PER_DAY} // {unit}) << 8 | {size + 5}).to_bytes({size + 6}, 'little')"
    )


def _single_byte(type_: SqlType) -> str:
    return f"v.encode() if v.isascii() else {narrow_name(type_)}(v)"


def narrow_name(type_: SqlType) -> str:
    """The name, in the expressions' environment, of the function that encodes this char, varchar or text."""
    return f"narrow{(type_.collation or default_collation()).code_page}"


def _national(_: SqlType) -> str:
    return "utf16(v, 'surrogatepass')[0]"


def _raw(_: SqlType) -> str:
    return "v"


def _sized(content: Callable[[SqlType], str]) -> Callable[[SqlType], str]:
    """The framing of types that are SHORT, or PARTS if declared (max)."""

    def encode(type_: SqlType) -> str:
        if type_.length == MAX:
            return f"parts({content(type_)})"
        # A table as long as the declared size: a larger value is an error here, not at the client.
        return f"lengths{declared_bytes(type_)}[len(b := ({content(type_)}))] + b"

    return encode


def declared_bytes(type_: SqlType) -> int:
    """The largest size in bytes of a value of a type that is not (max)."""
    if type_.name == "rowversion":
        return 8
    return type_.length * 2 if type_.name in {"nchar", "nvarchar"} else type_.length


def _parts(content: Callable[[SqlType], str]) -> Callable[[SqlType], str]:
    return lambda type_: f"parts({content(type_)})"


def _pointer(content: Callable[[SqlType], str]) -> Callable[[SqlType], str]:
    return lambda type_: f"pointer({content(type_)})"


def write_parts(data: bytes) -> bytes:
    """Partially length-prefixed bytes: the whole as one chunk."""
    size = len(data)
    if not size:
        return bytes(12)
    return b"".join((size.to_bytes(8, "little"), size.to_bytes(4, "little"), data, b"\0\0\0\0"))


def write_pointer(data: bytes) -> bytes:
    """text, ntext, image: clients do not use pointer and timestamp."""
    return b"".join((b"\x10", b"dummy textptr\0\0\0", b"dummyTS\0", len(data).to_bytes(4, "little"), data))


class LengthTable(dict[int, bytes]):
    """Two-byte lengths up to a maximum, computed as needed."""

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self.maximum = maximum

    def __missing__(self, length: int) -> bytes:
        if length > self.maximum:
            raise ValueError(f"a value of {length} bytes in a column declared with {self.maximum} bytes")
        self[length] = packed = length.to_bytes(2, "little")
        return packed


# -- the table ------------------------------------------------------------------------------------------------


def _always(frame: Frame) -> Callable[[SqlType], Frame]:
    return lambda _: frame


def _by_length(type_: SqlType) -> Frame:
    return Frame.PARTS if type_.length == MAX else Frame.SHORT


def _fixed(token: int, expression: str, decode: Callable[[bytes, SqlType], object]) -> Codec:
    return Codec(token, _always(Frame.BYTE), lambda _: expression, decode)


def _varying(
    token: int, content: Callable[[SqlType], str], decode: Callable[[bytes, SqlType], object],
    frame: Callable[[SqlType], Frame] = _by_length,
) -> Codec:  # fmt: skip
    return Codec(token, frame, _sized(content), decode, content)


_BYTE = _always(Frame.BYTE)
_PARTS = _always(Frame.PARTS)
_POINTER = _always(Frame.POINTER)
_DATETIME = f"days_ticks(8, v // {DATETIME_TICKS_PER_DAY}, v % {DATETIME_TICKS_PER_DAY})"
_SMALLDATETIME = f"days_minutes(4, v // {MINUTES_PER_DAY}, v % {MINUTES_PER_DAY})"
_MONEY = "days_ticks(8, (m := int(scaleb(v, 4))) >> 32, m & 0xFFFFFFFF)"
_UDT = Codec(0xF0, _PARTS, _parts(_raw), decoders.read_raw)

CODECS: Mapping[str, Codec] = {
    "bit": _fixed(0x68, "one_byte[v]", decoders.read_bit),
    "tinyint": _fixed(0x26, "one_byte[v]", decoders.read_int),
    "smallint": _fixed(0x26, "int16(2, v)", decoders.read_int),
    "int": _fixed(0x26, "int32(4, v)", decoders.read_int),
    "bigint": _fixed(0x26, "int64(8, v)", decoders.read_int),
    "real": _fixed(0x6D, "float32(4, v)", decoders.read_float),
    "float": _fixed(0x6D, "float64(8, v)", decoders.read_float),
    "smallmoney": _fixed(0x6E, "int32(4, int(scaleb(v, 4)))", decoders.read_money),
    "money": _fixed(0x6E, _MONEY, decoders.read_money),
    "decimal": Codec(0x6A, _BYTE, _decimal, decoders.read_decimal),
    "numeric": Codec(0x6C, _BYTE, _decimal, decoders.read_decimal),
    "smalldatetime": _fixed(0x6F, _SMALLDATETIME, decoders.read_smalldatetime),
    "datetime": _fixed(0x6F, _DATETIME, decoders.read_datetime),
    "date": _fixed(0x28, "(v << 8 | 3).to_bytes(4, 'little')", decoders.read_date),
    "time": Codec(0x29, _BYTE, _time, decoders.read_time),
    "datetime2": Codec(0x2A, _BYTE, _datetime2, decoders.read_datetime2),
    "datetimeoffset": Codec(0x2B, _BYTE, _datetimeoffset, decoders.read_datetimeoffset),
    "uniqueidentifier": _fixed(0x24, r"b'\x10' + v.bytes_le", decoders.read_guid),
    "char": _varying(0xAF, _single_byte, decoders.read_single_byte),
    "varchar": _varying(0xA7, _single_byte, decoders.read_single_byte),
    "nchar": _varying(0xEF, _national, decoders.read_national),
    "nvarchar": _varying(0xE7, _national, decoders.read_national),
    "binary": _varying(0xAD, _raw, decoders.read_raw),
    "varbinary": _varying(0xA5, _raw, decoders.read_raw),
    "rowversion": _varying(0xAD, _raw, decoders.read_raw, _always(Frame.SHORT)),
    "text": Codec(0x23, _POINTER, _pointer(_single_byte), decoders.read_single_byte),
    "ntext": Codec(0x63, _POINTER, _pointer(_national), decoders.read_national),
    "image": Codec(0x22, _POINTER, _pointer(_raw), decoders.read_raw),
    "xml": Codec(0xF1, _PARTS, _parts(_national), decoders.read_xml),
    "hierarchyid": _UDT,
    "geometry": _UDT,
    "geography": _UDT,
    "sql_variant": Codec(0x62, _always(Frame.VARIANT), lambda _: "variant(v)", decoders.read_variant),
}


def codec_of(type_: SqlType) -> Codec:
    """The codec of a type.

    Raises:
        ValueError: a type that the wire does not know.
    """
    try:
        return CODECS[type_.name]
    except KeyError:
        raise ValueError(f"type {type_.name!r} has no wire format; known are {', '.join(CODECS)}") from None
