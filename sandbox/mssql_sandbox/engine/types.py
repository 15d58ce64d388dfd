"""SQL Server's data types as values: `SqlType`, its constructors, declarations and reported names.

What does not belong here: ids and sizes of system types (system_types.py), converting values (conversion.py), type
precedence (precedence.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mssql_sandbox.engine.collation import Collation
from mssql_sandbox.engine.system_types import TYPES
from mssql_sandbox.errors import error

MAX = -1
"""Length of varchar(max), nvarchar(max), varbinary(max)."""


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type with its length, precision, scale and collation; hashable and compared by value.

    `name` is the canonical lower-case name: timestamp is 'rowversion', numeric stays 'numeric', sysname is
    'nvarchar' of 128 with `alias='sysname'`. `length` counts characters for n*char, bytes for char and binary,
    -1 is (max). `precision` and `scale` are set for decimal, numeric and, for every type that has digits, to
    what the catalog reports (int 10,0; money 19,4; datetime2(7) scale 7 ...).
    """

    name: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    collation: Collation | None = None
    alias: str = ""

    def __str__(self) -> str:
        return declaration(self)


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """The metadata of a result-set column that clients receive."""

    name: str
    type: SqlType
    nullable: bool = True
    identity: bool = False
    computed: bool = False
    updatable: bool = False
    table: tuple[str, ...] = ()


INTEGERS = frozenset({"bit", "tinyint", "smallint", "int", "bigint"})
EXACT = frozenset({"decimal", "numeric"})
MONEY = frozenset({"money", "smallmoney"})
APPROXIMATE = frozenset({"real", "float"})
NUMBERS = INTEGERS | EXACT | MONEY | APPROXIMATE
NATIONAL = frozenset({"nchar", "nvarchar", "ntext", "xml"})
SINGLE_BYTE = frozenset({"char", "varchar", "text"})
STRINGS = NATIONAL | SINGLE_BYTE
BINARIES = frozenset({"binary", "varbinary", "image", "rowversion"})
UDTS = frozenset({"hierarchyid", "geometry", "geography"})
DATES = frozenset({"date", "time", "datetime", "smalldatetime", "datetime2", "datetimeoffset"})
LEGACY_LOBS = frozenset({"text", "ntext", "image"})
SCALED_TIMES = frozenset({"time", "datetime2", "datetimeoffset"})

_SYNONYMS = {
    "integer": "int", "dec": "decimal", "double precision": "float", "character": "char", "timestamp": "rowversion",
    "character varying": "varchar", "char varying": "varchar", "binary varying": "varbinary",
    "national character": "nchar", "national char": "nchar", "national character varying": "nvarchar",
    "national char varying": "nvarchar", "national text": "ntext",
}  # fmt: skip
_DECLARATION = re.compile(
    r"\s*(?:\[?sys\]?\s*\.\s*)?\[?([A-Za-z_][\w ]*?)\]?\s*(?:\(\s*(max|\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*$",
    re.IGNORECASE,
)


def make_type(
    name: str, *arguments: int, collation: Collation | None = None, ordinal: int = 1, cast: bool = False
) -> SqlType:
    """The type `name(arguments…)` with SQL Server's defaults; `MAX` means (max).

    `cast` chooses the default length 30 of CAST/CONVERT instead of 1. Errors 243 (unknown type), 2716, 2717,
    2750, 2751, 1001 as for a column, parameter or variable number `ordinal`.
    """
    lowered = " ".join(name.lower().split())
    canonical = _SYNONYMS.get(lowered, lowered)
    if canonical == "sysname":
        return SqlType("nvarchar", 128, collation=collation, alias="sysname")
    info = TYPES.get(canonical)
    if info is None:
        raise error(243, name=name)
    if canonical in EXACT:
        return _decimal(canonical, arguments, ordinal)
    if canonical in SCALED_TIMES:
        return _scaled_time(canonical, arguments)
    if canonical == "float":
        bits = arguments[0] if arguments else 53
        if not 1 <= bits <= 53:
            raise error(2717, size=bits, kind="type", name="float", maximum=53)
        return SqlType("real", precision=24) if bits <= 24 else SqlType("float", precision=53)
    if canonical in {"char", "varchar", "nchar", "nvarchar", "binary", "varbinary"}:
        return _sized(canonical, arguments, collation, default=30 if cast else 1)
    if arguments:
        raise error(2716, ordinal=ordinal, type=name)
    if canonical in STRINGS:
        return SqlType(canonical, MAX, collation=None if canonical == "xml" else collation)
    if canonical in {"image", "geometry", "geography"}:
        return SqlType(canonical, MAX)
    if canonical == "rowversion":
        return SqlType(canonical, 8)
    return SqlType(canonical, precision=info.precision, scale=info.scale)


def _decimal(name: str, arguments: tuple[int, ...], ordinal: int) -> SqlType:
    precision = arguments[0] if arguments else 18
    scale = arguments[1] if len(arguments) > 1 else 0
    if precision > 38:
        raise error(2750, ordinal=ordinal, precision=precision)
    if precision < 1:
        raise error(1001, line=1, value=precision)
    if scale > precision:
        raise error(2751, ordinal=ordinal, scale=scale, precision=precision)
    return SqlType(name, precision=precision, scale=scale)


def _scaled_time(name: str, arguments: tuple[int, ...]) -> SqlType:
    scale = arguments[0] if arguments else 7
    if not 0 <= scale <= 7:
        raise error(1002, line=1, scale=scale)
    bases = {"time": 8, "datetime2": 19, "datetimeoffset": 26}
    return SqlType(name, precision=bases[name] + (scale + 1 if scale else 0), scale=scale)


def _sized(name: str, arguments: tuple[int, ...], collation: Collation | None, *, default: int) -> SqlType:
    length = arguments[0] if arguments else default
    maximum = 4000 if name in NATIONAL else 8000
    if length == MAX:
        if name in {"char", "nchar", "binary"}:
            raise error(102, near="max")
    elif length < 1:
        raise error(1001, line=1, value=length)
    elif length > maximum:
        raise error(2717, size=length, kind="type", name=name, maximum=maximum)
    return SqlType(name, length, collation=collation if name in STRINGS else None)


def parse_type(text: str, *, collation: Collation | None = None, cast: bool = False) -> SqlType:
    """The type of a declaration such as 'decimal(10, 2)', '[nvarchar](max)' or 'sys.int'."""
    match = _DECLARATION.match(text)
    if match is None:
        raise error(243, name=text.strip())
    name, first, second = match.groups()
    arguments: tuple[int, ...] = ()
    if first is not None:
        arguments = (MAX if first.lower() == "max" else int(first), *((int(second),) if second else ()))
    return make_type(name, *arguments, collation=collation, cast=cast)


def reported_name(type_: SqlType) -> str:
    """The name that sys.types and messages use ('timestamp' for rowversion, 'sysname' for the alias)."""
    if type_.name == "rowversion":
        return "timestamp"
    return type_.alias or type_.name


def declaration(type_: SqlType) -> str:
    """The declaration with its arguments, as sp_help and describe functions print it: 'nvarchar(max)'."""
    name = reported_name(type_)
    if type_.alias:
        return name
    if type_.name in EXACT:
        return f"{name}({type_.precision},{type_.scale})"
    if type_.name in SCALED_TIMES:
        return f"{name}({type_.scale})"
    if type_.name in {"char", "varchar", "nchar", "nvarchar", "binary", "varbinary"}:
        return f"{name}({'max' if type_.length == MAX else type_.length})"
    return name


def max_length(type_: SqlType) -> int:
    """Storage size in bytes as sys.columns.max_length reports it; -1 for (max), xml and spatial types."""
    if type_.name in {"nchar", "nvarchar"}:
        return MAX if type_.length == MAX else type_.length * 2
    if type_.name in {"char", "varchar", "binary", "varbinary"}:
        return type_.length
    if type_.name in EXACT:
        return 5 if type_.precision <= 9 else 9 if type_.precision <= 19 else 13 if type_.precision <= 28 else 17
    if type_.name in SCALED_TIMES:
        shift = {"time": 0, "datetime2": 3, "datetimeoffset": 5}[type_.name]
        return shift + (3 if type_.scale <= 2 else 4 if type_.scale <= 4 else 5)
    return TYPES[type_.name].size


def with_collation(type_: SqlType, collation: Collation | None) -> SqlType:
    """The same type under another collation; types without collation are returned as they are."""
    if type_.name not in STRINGS or type_.name == "xml" or type_.collation == collation:
        return type_
    return replace(type_, collation=collation)


BIT = make_type("bit")
TINYINT = make_type("tinyint")
SMALLINT = make_type("smallint")
INT = make_type("int")
BIGINT = make_type("bigint")
REAL = make_type("real")
FLOAT = make_type("float")
MONEY_TYPE = make_type("money")
SMALLMONEY = make_type("smallmoney")
DATE = make_type("date")
DATETIME = make_type("datetime")
SMALLDATETIME = make_type("smalldatetime")
UNIQUEIDENTIFIER = make_type("uniqueidentifier")
SQL_VARIANT = make_type("sql_variant")
ROWVERSION = make_type("rowversion")
XML = make_type("xml")


def varchar(length: int, *, collation: Collation | None = None) -> SqlType:
    """The type varchar of a length, -1 for (max)."""
    return SqlType("varchar", length, collation=collation)


def nvarchar(length: int, *, collation: Collation | None = None) -> SqlType:
    """The type nvarchar of a length, -1 for (max)."""
    return SqlType("nvarchar", length, collation=collation)


def varbinary(length: int) -> SqlType:
    """The type varbinary of a length, -1 for (max)."""
    return SqlType("varbinary", length)


def binary(length: int) -> SqlType:
    """The type binary of a length."""
    return SqlType("binary", length)


def decimal(precision: int, scale: int) -> SqlType:
    """The type decimal of a precision and scale."""
    return SqlType("decimal", precision=precision, scale=scale)


def numeric(precision: int, scale: int) -> SqlType:
    """The type numeric of a precision and scale; the type of literals such as 1.5."""
    return SqlType("numeric", precision=precision, scale=scale)


def datetime2(scale: int = 7) -> SqlType:
    """The type datetime2 of a scale."""
    return make_type("datetime2", scale)


def datetimeoffset(scale: int = 7) -> SqlType:
    """The type datetimeoffset of a scale."""
    return make_type("datetimeoffset", scale)


def time(scale: int = 7) -> SqlType:
    """The type time of a scale."""
    return make_type("time", scale)


def sysname(*, collation: Collation | None = None) -> SqlType:
    """The alias type sysname: nvarchar(128), reported by its own name."""
    return SqlType("nvarchar", 128, collation=collation, alias="sysname")
