"""TYPE_INFO (MS-TDS 2.2.5.6): the description of a type that precedes values, written and read."""

import functools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mssql_sandbox.engine import types
from mssql_sandbox.engine.collation import Collation
from mssql_sandbox.engine.types import MAX, SqlType
from mssql_sandbox.tds.collations import collation_bytes, collation_of_bytes
from mssql_sandbox.tds.type_codecs import codec_of, decimal_size, declared_bytes
from mssql_sandbox.tds.wire import ProtocolError, Reader, b_varchar, us_varchar

VARIANT_MAXIMUM = 8009
UNKNOWN_TYPE, WRONG_LENGTH = 8009, 8016
USER_TYPE_ROWVERSION = 0x50

_MAX_LENGTH = 0xFFFF
_TEXT_MAXIMUM = 0x7FFFFFFF
_ASSEMBLY = "Microsoft.SqlServer.Types, Version=11.0.0.0, Culture=neutral, PublicKeyToken=89845dcd8080cc91"
_UDTS: Mapping[str, tuple[int, str]] = {
    "hierarchyid": (892, "Microsoft.SqlServer.Types.SqlHierarchyId"),
    "geometry": (_MAX_LENGTH, "Microsoft.SqlServer.Types.SqlGeometry"),
    "geography": (_MAX_LENGTH, "Microsoft.SqlServer.Types.SqlGeography"),
}
_SIZES: Mapping[str, int] = {
    "bit": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "real": 4, "float": 8, "smallmoney": 4, "money": 8,
    "smalldatetime": 4, "datetime": 8, "uniqueidentifier": 16,
}  # fmt: skip


def type_info(type_: SqlType) -> bytes:
    """TYPE_INFO of a type; every type is announced in its nullable form."""
    name = type_.name
    token = bytes((codec_of(type_).token,))
    if name in _SIZES:
        return token + bytes((_SIZES[name],))
    if name in types.EXACT:
        return token + bytes((decimal_size(type_.precision) + 1, type_.precision, type_.scale))
    if name in types.SCALED_TIMES:
        return token + bytes((type_.scale,))
    if name in types.UDTS:
        size, class_name = _UDTS[name]
        full_name = us_varchar(f"{class_name}, {_ASSEMBLY}")
        return token + struct.pack("<H", size) + b_varchar("master") + b_varchar("sys") + b_varchar(name) + full_name
    if name in types.LEGACY_LOBS:
        collation = b"" if name == "image" else collation_bytes(type_.collation)
        return token + struct.pack("<I", _TEXT_MAXIMUM) + collation
    if name == "date":
        return token
    if name == "xml":
        return token + b"\0"
    if name == "sql_variant":
        return token + struct.pack("<I", VARIANT_MAXIMUM)
    length = _MAX_LENGTH if type_.length == MAX and name != "rowversion" else declared_bytes(type_)
    collation = collation_bytes(type_.collation) if name in types.STRINGS else b""
    return token + struct.pack("<H", length) + collation


@dataclass(frozen=True, slots=True)
class WireType:
    """A type as a client declared it: fixed forms have no length before the value."""

    type: SqlType
    narrow: Collation | None = None  # its code page decodes single-byte text; the parameter has no collation
    fixed_size: int = 0
    is_null: bool = False


_FIXED: Mapping[int, WireType] = {
    0x30: WireType(types.TINYINT, fixed_size=1),
    0x32: WireType(types.BIT, fixed_size=1),
    0x34: WireType(types.SMALLINT, fixed_size=2),
    0x38: WireType(types.INT, fixed_size=4),
    0x3A: WireType(types.SMALLDATETIME, fixed_size=4),
    0x3B: WireType(types.REAL, fixed_size=4),
    0x3C: WireType(types.MONEY_TYPE, fixed_size=8),
    0x3D: WireType(types.DATETIME, fixed_size=8),
    0x3E: WireType(types.FLOAT, fixed_size=8),
    0x7A: WireType(types.SMALLMONEY, fixed_size=4),
    0x7F: WireType(types.BIGINT, fixed_size=8),
    0x1F: WireType(types.INT, is_null=True),
}
_BY_SIZE: Mapping[int, Mapping[int, SqlType]] = {
    0x26: {1: types.TINYINT, 2: types.SMALLINT, 4: types.INT, 8: types.BIGINT},
    0x68: {1: types.BIT},
    0x6D: {4: types.REAL, 8: types.FLOAT},
    0x6E: {4: types.SMALLMONEY, 8: types.MONEY_TYPE},
    0x6F: {4: types.SMALLDATETIME, 8: types.DATETIME},
    0x24: {16: types.UNIQUEIDENTIFIER},
}
_SCALED: Mapping[int, Callable[[int], SqlType]] = {
    0x29: types.time,
    0x2A: types.datetime2,
    0x2B: types.datetimeoffset,
}
_EXACT: Mapping[int, Callable[[int, int], SqlType]] = {
    0x6A: types.decimal,
    0x6C: types.numeric,
    0x37: types.decimal,
    0x3F: types.numeric,
}
_TEXTS: Mapping[int, str] = {0xA7: "varchar", 0xAF: "char", 0xE7: "nvarchar", 0xEF: "nchar"}
_BINARIES: Mapping[int, str] = {0xA5: "varbinary", 0xAD: "binary"}
_LEGACY: Mapping[int, str] = {0x23: "text", 0x63: "ntext", 0x22: "image"}
_XML, _UDT, _VARIANT, _DATE, _TABLE = 0xF1, 0xF0, 0x62, 0x28, 0xF3
FIXED_DECLARATIONS: Mapping[int, int] = {
    **dict.fromkeys((*_FIXED, _DATE), 1),
    **dict.fromkeys((*_BY_SIZE, *_SCALED), 2),
    **dict.fromkeys(_BINARIES, 3),
    **dict.fromkeys(_EXACT, 4),
    **dict.fromkeys(_TEXTS, 8),
}
"""The number of bytes of TYPE_INFO, including its token, for the types with a fixed number."""


def read_type_info(reader: Reader) -> WireType:
    """The type that a client declares for a parameter.

    Raises:
        ProtocolError: a token, size, precision or scale that SQL Server does not have.
    """
    token = reader.u8()
    if token in _FIXED:
        return _FIXED[token]
    if token in _BY_SIZE:
        return WireType(_pick(_BY_SIZE[token], reader.u8(), token))
    if token in _EXACT:
        return WireType(_read_exact(token, reader))
    if token in _SCALED:
        scale = reader.u8()
        if scale > 7:
            raise ProtocolError(f"type 0x{token:02X} with scale {scale}; expected 0 to 7", number=WRONG_LENGTH)
        return WireType(_SCALED[token](scale))
    if token in _TEXTS:
        return _read_text(_TEXTS[token], reader)
    if token in _BINARIES:
        return WireType(SqlType(_BINARIES[token], _declared_length(reader.u16())))
    if token in _LEGACY:
        return _read_legacy(_LEGACY[token], reader)
    return _read_other(token, reader)


def _pick(choices: Mapping[int, SqlType], size: int, token: int) -> SqlType:
    if size not in choices:
        raise ProtocolError(f"type 0x{token:02X} with size {size}; expected {sorted(choices)}", number=WRONG_LENGTH)
    return choices[size]


def _read_exact(token: int, reader: Reader) -> SqlType:
    reader.skip(1)
    precision, scale = reader.u8(), reader.u8()
    if not 1 <= precision <= 38 or scale > precision:
        reason = f"decimal({precision},{scale}) is no type; expected precision 1 to 38 and scale within it"
        raise ProtocolError(reason, number=WRONG_LENGTH)
    return _EXACT[token](precision, scale)


def _declared_length(size: int) -> int:
    return MAX if size == _MAX_LENGTH else size


def _read_text(name: str, reader: Reader) -> WireType:
    return _text_type(name, _declared_length(reader.u16()), reader.take(5))


@functools.lru_cache(maxsize=4096)
def _text_type(name: str, size: int, collation: bytes) -> WireType:
    if name in types.NATIONAL:
        return WireType(SqlType(name, size if size == MAX else max(size // 2, 1)))
    return WireType(SqlType(name, size), collation_of_bytes(collation))


def _read_legacy(name: str, reader: Reader) -> WireType:
    reader.skip(4)
    if name == "image":
        return WireType(SqlType(name, MAX))
    return WireType(SqlType(name, MAX), collation_of_bytes(reader.take(5)))


def _read_other(token: int, reader: Reader) -> WireType:
    if token == _DATE:
        return WireType(types.DATE)
    if token == _XML:
        if reader.u8():
            reader.b_varchar()
            reader.b_varchar()
            reader.us_varchar()
        return WireType(types.XML)
    if token == _VARIANT:
        reader.skip(4)
        return WireType(types.SQL_VARIANT)
    if token == _UDT:
        reader.b_varchar()
        reader.b_varchar()
        name = reader.b_varchar().lower()
        if name not in types.UDTS:
            raise ProtocolError(f"user-defined type {name!r} is not known; expected {', '.join(sorted(types.UDTS))}")
        return WireType(SqlType(name, _UDTS[name][0] if name == "hierarchyid" else MAX))
    if token == _TABLE:
        raise ProtocolError("a table-valued parameter stands where a single value was expected")
    raise ProtocolError(f"type 0x{token:02X} is not known", number=UNKNOWN_TYPE)
