"""Reading one value of a declared type from a client's message, including sql_variant and chunked values.

The bytes of each type belong to type_codecs.py, encoding of rows to row_encoder.py.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

from mssql_sandbox.engine import types
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.tds.collations import collation_of_bytes
from mssql_sandbox.tds.decoders import InvalidValueError, time_size
from mssql_sandbox.tds.type_codecs import Frame, codec_of, decimal_size
from mssql_sandbox.tds.type_info import WRONG_LENGTH, WireType, read_type_info
from mssql_sandbox.tds.wire import ProtocolError, Reader

_SHORT_NULL = 0xFFFF
_PARTS_NULL = 0xFFFF_FFFF_FFFF_FFFF
_TEXT_NULL = -1

_FIXED_SIZES: Mapping[str, tuple[int, ...]] = {
    # Drivers may declare a wide integer and send a narrower one.
    "bit": (1,), "tinyint": (1,), "smallint": (1, 2), "int": (1, 2, 4), "bigint": (1, 2, 4, 8), "real": (4,),
    "float": (4, 8), "smallmoney": (4,), "money": (4, 8), "smalldatetime": (4,), "datetime": (8,), "date": (3,),
    "uniqueidentifier": (16,),
}  # fmt: skip


Decoder = Callable[[bytes], object]
ValueReader = Callable[[Reader], object]


@functools.lru_cache(maxsize=4096)
def value_reader(wire: WireType) -> ValueReader:
    """The function that reads the next value of a type, in storage form; None for NULL.

    It raises:
        ProtocolError: a length that the type cannot have or that leaves the message.
        InvalidValueError: well-formed bytes that are no value of the type.
    """
    if wire.is_null:
        return lambda _reader: None
    if wire.type.name == "sql_variant":
        return _read_variant
    decode = value_decoder(wire)
    if wire.fixed_size:
        return lambda reader: decode(reader.take(wire.fixed_size))
    frame = codec_of(wire.type).frame(wire.type)
    if frame is Frame.BYTE:
        return _after_byte(decode)
    read_framed = _after_short if frame is Frame.SHORT else read_parts if frame is Frame.PARTS else _after_long

    def read(reader: Reader) -> object:
        data = read_framed(reader)
        return None if data is None else decode(data)

    return read


def _after_byte(decode: Decoder) -> ValueReader:
    def read(reader: Reader) -> object:
        size = reader.u8()
        return decode(reader.take(size)) if size else None

    return read


def _after_short(reader: Reader) -> bytes | None:
    size = reader.u16()
    return None if size == _SHORT_NULL else reader.take(size)


def _after_long(reader: Reader) -> bytes | None:
    size = reader.i32()  # text, ntext, image: parameters carry no text pointer
    if size == _TEXT_NULL:
        return None
    if size < 0:
        raise ProtocolError(f"a text value of {size} bytes", number=WRONG_LENGTH)
    return reader.take(size)


def read_parts(reader: Reader) -> bytes | None:
    """A partially length-prefixed value; the announced total is not trusted."""
    if reader.u64() == _PARTS_NULL:
        return None
    chunks = []
    while size := reader.u32():
        chunks.append(reader.take(size))
    return b"".join(chunks)


def value_decoder(wire: WireType) -> Decoder:
    """The function that decodes a value from its bytes without frame; their number must fit the type."""
    type_ = wire.type
    if wire.narrow is not None and type_.name in types.SINGLE_BYTE:
        return wire.narrow.decode
    decode = codec_of(type_).decode
    allowed = _sizes(type_)
    if allowed is None:
        return lambda data: decode(data, type_)

    def checked(data: bytes) -> object:
        if len(data) not in allowed:
            expected = ", ".join(map(str, allowed))
            raise ProtocolError(f"a {type_.name} value of {len(data)} bytes; expected {expected}", number=WRONG_LENGTH)
        return decode(data, type_)

    return checked


def _sizes(type_: SqlType) -> Sequence[int] | None:
    """The numbers of bytes that a value may have; None for types without limits."""
    name = type_.name
    if name in types.SCALED_TIMES:
        return (time_size(type_.scale) + {"time": 0, "datetime2": 3, "datetimeoffset": 5}[name],)
    if name in types.EXACT:
        return range(2, decimal_size(38) + 2)  # FreeTDS sends only as many bytes as the number needs
    return _FIXED_SIZES.get(name)


def _read_variant(reader: Reader) -> object:
    total = reader.u32()
    if total == 0:
        return None
    inner = Reader(reader.take(total))
    wire = _variant_base(inner)
    return wire.type, value_decoder(wire)(inner.take(inner.remaining))


def _variant_base(reader: Reader) -> WireType:
    """Base type and properties; a variant's properties have another layout than TYPE_INFO."""
    token = reader.u8()
    properties = Reader(reader.take(reader.u8()))
    if token in (0xA7, 0xAF, 0xE7, 0xEF):
        collation = collation_of_bytes(properties.take(5))
        size = properties.u16()
        name = {0xA7: "varchar", 0xAF: "char", 0xE7: "nvarchar", 0xEF: "nchar"}[token]
        return WireType(SqlType(name, max(size // 2, 1) if name[0] == "n" else size), collation)
    if token in (0xA5, 0xAD):
        size = properties.u16()
        return WireType(SqlType("varbinary" if token == 0xA5 else "binary", size))
    if token in (0x6A, 0x6C):
        precision, scale = properties.u8(), properties.u8()
        if not 1 <= precision <= 38 or scale > precision:
            raise InvalidValueError(f"decimal({precision},{scale}) inside a sql_variant")
        return WireType((types.decimal if token == 0x6A else types.numeric)(precision, scale))
    if token == 0x24:
        return WireType(types.UNIQUEIDENTIFIER)
    # The remaining types have no properties (fixed codes, date) or the scale byte, as in TYPE_INFO.
    return read_type_info(Reader(bytes((token,)) + properties.take(properties.remaining)))
