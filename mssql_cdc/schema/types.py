"""The type table: how each SQL Server type is stored, whether that loses anything, and who can read it.

One row per type, and no other module may decide the same things again. How Debezium shows a type is decided
in `records/`; how a value is fetched and cast is decided in `source/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from mssql_cdc.errors import SchemaError

MAX_LENGTH = -1
"""`SqlServerType.length` of a `(max)` type, as `sys.columns.max_length` has it."""

Lossy = Literal["never", "digits", "offset", "base type", "surrogates"]


@dataclass(frozen=True, slots=True)
class SqlServerType:
    """A column's base type (alias types are resolved, `sysname` is `nvarchar(128)`).

    `length` counts characters for (n)char and (n)varchar, bytes for binary types, and is -1 for `(max)`.
    """

    name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    collation: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.lower())

    @property
    def is_max(self) -> bool:
        """Whether this is a `(max)` type."""
        return self.length == MAX_LENGTH

    @property
    def is_character(self) -> bool:
        """Whether values are character strings with a collation."""
        return _rule(self).character

    @property
    def is_old_lob(self) -> bool:
        """Whether this is text, ntext or image: CDC never delivers their before image."""
        return self.name in {"text", "ntext", "image"}

    @property
    def declaration(self) -> str:
        """The type as T-SQL writes it, for instance `decimal(10, 2)` or `nvarchar(max)`."""
        return f"{self.name}{_rule(self).arguments(self)}"


@dataclass(frozen=True, slots=True)
class _Rule:
    arrow: Callable[[SqlServerType], pa.DataType]
    arguments: Callable[[SqlServerType], str]
    lossy: Callable[[SqlServerType], Lossy]
    character: bool = False
    needs_pyodbc: bool = False


def arrow_type(sql_type: SqlServerType) -> pa.DataType:
    """The Arrow (and by it the Delta) type of a column in `before`, `after` and the current table."""
    return _rule(sql_type).arrow(sql_type)


def lossy(sql_type: SqlServerType) -> Lossy:
    """What of a value the Arrow type may not carry and `_exact` then does.

    `digits`: the seventh fractional digit, kept as `2024-05-06 07:08:09.1234567`. `offset`: that or an
    offset other than `+00:00`, kept as `2024-05-06 07:08:09.1234567 +02:00` (local time). `base type`: a
    JSON object of `sql_variant` properties. `surrogates`: text with a lone surrogate, kept as `utf16:` and
    big-endian hex.
    """
    return _rule(sql_type).lossy(sql_type)


def needs_pyodbc(sql_type: SqlServerType) -> bool:
    """Whether bulk reading through ODBC's Arrow path would truncate or refuse the type."""
    return sql_type.is_max or _rule(sql_type).needs_pyodbc


def _rule(sql_type: SqlServerType) -> _Rule:
    try:
        return _TABLE[sql_type.name]
    except KeyError:
        known = ", ".join(sorted(_TABLE))
        raise SchemaError(
            f"The SQL Server type {sql_type.name!r} is unknown; known are {known}. "
            "Exclude the column with column.exclude.list"
        ) from None


def _no_arguments(_: SqlServerType) -> str:
    return ""


def _length(sql_type: SqlServerType) -> str:
    return "(max)" if sql_type.is_max else f"({sql_type.length})"


def _precision_scale(sql_type: SqlServerType) -> str:
    return f"({sql_type.precision}, {sql_type.scale or 0})"


def _scale(sql_type: SqlServerType) -> str:
    return f"({7 if sql_type.scale is None else sql_type.scale})"


def _never(_: SqlServerType) -> Lossy:
    return "never"


def _seventh_digit(sql_type: SqlServerType) -> Lossy:
    return "digits" if sql_type.scale in {None, 7} else "never"


def _always(what: Lossy) -> Callable[[SqlServerType], Lossy]:
    return lambda _: what


def _plain(arrow: pa.DataType, **more: Any) -> _Rule:
    return _Rule(arrow=lambda _: arrow, **{"arguments": _no_arguments, "lossy": _never, **more})


def _decimal(sql_type: SqlServerType) -> pa.DataType:
    return pa.decimal128(sql_type.precision or 18, sql_type.scale or 0)


def _text(**more: Any) -> _Rule:
    return _plain(pa.string(), character=True, **more)


_SURROGATES = _always("surrogates")
_TABLE: dict[str, _Rule] = {
    "bit": _plain(pa.bool_()),
    "tinyint": _plain(pa.int16()),
    "smallint": _plain(pa.int16()),
    "int": _plain(pa.int32()),
    "bigint": _plain(pa.int64()),
    "decimal": _Rule(arrow=_decimal, arguments=_precision_scale, lossy=_never),
    "numeric": _Rule(arrow=_decimal, arguments=_precision_scale, lossy=_never),
    "money": _plain(pa.decimal128(19, 4)),
    "smallmoney": _plain(pa.decimal128(10, 4)),
    "real": _plain(pa.float32()),
    "float": _plain(pa.float64()),
    "char": _text(arguments=_length),
    "varchar": _text(arguments=_length),
    "nchar": _text(arguments=_length, lossy=_SURROGATES),
    "nvarchar": _text(arguments=_length, lossy=_SURROGATES),
    "text": _text(needs_pyodbc=True),
    "ntext": _text(needs_pyodbc=True, lossy=_SURROGATES),
    "xml": _plain(pa.string(), needs_pyodbc=True),
    "json": _plain(pa.string(), needs_pyodbc=True),
    "uniqueidentifier": _plain(pa.string()),
    "binary": _plain(pa.binary(), arguments=_length),
    "varbinary": _plain(pa.binary(), arguments=_length),
    "image": _plain(pa.binary(), needs_pyodbc=True),
    "timestamp": _plain(pa.binary()),
    "rowversion": _plain(pa.binary()),
    "hierarchyid": _plain(pa.binary(), needs_pyodbc=True),
    "geometry": _plain(pa.binary(), needs_pyodbc=True),
    "geography": _plain(pa.binary(), needs_pyodbc=True),
    "date": _plain(pa.date32()),
    "smalldatetime": _plain(pa.timestamp("us")),
    "datetime": _plain(pa.timestamp("us")),
    "datetime2": _plain(pa.timestamp("us"), arguments=_scale, lossy=_seventh_digit),
    "datetimeoffset": _plain(pa.timestamp("us", tz="UTC"), arguments=_scale, lossy=_always("offset")),
    "time": _plain(pa.string(), arguments=_scale),
    "sql_variant": _plain(pa.string(), needs_pyodbc=True, lossy=_always("base type")),
}
