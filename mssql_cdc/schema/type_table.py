"""The type table: one row per SQL Server type, with everything that the project knows about the type.

A new type of a known kind needs only one row here. Rows are data: the `Kind` decides how values are handled, in one
place per package: fetching in `source/sqlserver/columns`, chunk bounds in `source/sqlserver/chunks`, Debezium's format
in `records/converters` and `records/defaults`, the check's format in `lake/canonical`. `types.py` applies a
declaration such as `decimal(10, 2)` to its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Literal

import pyarrow as pa

from mssql_cdc.errors import SchemaError

JDBC_MAX = 2_147_483_647
"""The length that the driver reports for a type without limit."""

Arguments = Literal["none", "length", "precision and scale", "scale"]
Loss = Literal["never", "digits", "offset", "base type", "surrogates"]
BeforeImage = Literal["always", "when changed", "undocumented", "never"]


class Kind(Enum):
    """The kind of a type's values. Types of one kind differ only in the data of their rows."""

    BOOLEAN = auto()
    INTEGER = auto()
    DECIMAL = auto()
    FLOAT = auto()
    TEXT = auto()
    DOCUMENT = auto()
    """Text of unlimited length that cannot be a key and has no literal default: xml, json."""
    UUID = auto()
    BINARY = auto()
    CLR = auto()
    """The bytes of a CLR type."""
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()
    """Date and time without a zone."""
    INSTANT = auto()
    """Date and time with an offset."""
    VARIANT = auto()


@dataclass(frozen=True, slots=True)
class Jdbc:
    """What Debezium's driver reports about a type.

    `length` and `scale` are those of types without arguments. For a type with a scale, `length` is its display length
    without the fraction; a declared length or precision replaces both. `name` is set where the driver uses another
    name for the type.
    """

    code: int
    length: int | None = None
    scale: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class TypeRow:
    """One SQL Server type.

    Attributes:
        name: the base type's name in `sys.types`, lower case.
        kind: chooses the functions that handle its values.
        arrow: how values are stored; None: a decimal of the declared precision and scale.
        jdbc: what Debezium's schema change records say about it.
        arguments: what its declaration has in parentheses.
        select: T-SQL that fetches a value, `{c}` for the column; text is fetched as nvarchar of `{length}` characters.
        style: the CONVERT style under which a value's text loses nothing; None: the plain conversion loses nothing.
        bound_style: the same for chunk bounds, which the server must read again under any language; None: `style`.
        bound_bytes: the size of a chunk's bound, for a type that sorts by its bytes and declares no length.
        check: T-SQL that the check selects instead of its kind's own expression.
        loss: what the Arrow type may be unable to carry; see `SqlServerType.loss`.
        digits: fractional-second digits of a type whose declaration does not give them.
        large: values have no size limit, so no buffer can be sized for them.
        before_image: when CDC delivers the value in the before image of an update (TYP-05). `undocumented`: an
            untouched one may be left out, so it is taken from the after image; records show it as if it was delivered.
        code_page: whether character data is in the code page of its collation, not in UTF-16.
    """

    name: str
    kind: Kind
    arrow: pa.DataType | None
    jdbc: Jdbc
    arguments: Arguments = "none"
    select: str = "{c}"
    style: int | None = None
    bound_style: int | None = None
    bound_bytes: int | None = None
    check: str | None = None
    loss: Loss = "never"
    digits: int | None = None
    large: bool = False
    before_image: BeforeImage = "always"
    code_page: bool = False


def type_row(name: str) -> TypeRow:
    """The row of a type, by its name in lower case.

    Raises:
        SchemaError: the table has none.
    """
    try:
        return TYPES[name]
    except KeyError:
        raise SchemaError(
            f"The SQL Server type {name!r} is unknown; known are {', '.join(sorted(TYPES))}. "
            "Leave the column out of the capture instance (@captured_column_list of sys.sp_cdc_enable_table)"
        ) from None


_MICROSECONDS, _UTC_MICROSECONDS = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
_MONEY, _SMALLMONEY = pa.decimal128(19, 4), pa.decimal128(10, 4)
_NVARCHAR = "CAST({c} AS nvarchar({length}))"

_ROWS = (
    TypeRow("bit", Kind.BOOLEAN, pa.bool_(), Jdbc(-7, 1)),
    TypeRow("tinyint", Kind.INTEGER, pa.int16(), Jdbc(-6, 3, 0), select="CAST({c} AS smallint)"),
    TypeRow("smallint", Kind.INTEGER, pa.int16(), Jdbc(5, 5, 0)),
    TypeRow("int", Kind.INTEGER, pa.int32(), Jdbc(4, 10, 0)),
    TypeRow("bigint", Kind.INTEGER, pa.int64(), Jdbc(-5, 19, 0)),
    TypeRow("decimal", Kind.DECIMAL, None, Jdbc(3), "precision and scale"),
    TypeRow("numeric", Kind.DECIMAL, None, Jdbc(2), "precision and scale"),
    TypeRow(
        "money", Kind.DECIMAL, _MONEY, Jdbc(3, 19, 4),
        style=2, check="CONVERT(varchar(40), {c}, 2)",
    ),
    TypeRow(
        "smallmoney", Kind.DECIMAL, _SMALLMONEY, Jdbc(3, 10, 4),
        style=2, check="CONVERT(varchar(40), {c}, 2)",
    ),
    TypeRow("real", Kind.FLOAT, pa.float32(), Jdbc(7, 24), style=3),
    TypeRow("float", Kind.FLOAT, pa.float64(), Jdbc(8, 53), style=3),
    TypeRow("char", Kind.TEXT, pa.string(), Jdbc(1), "length", select=_NVARCHAR, code_page=True),
    TypeRow("varchar", Kind.TEXT, pa.string(), Jdbc(12), "length", select=_NVARCHAR, code_page=True),
    TypeRow("nchar", Kind.TEXT, pa.string(), Jdbc(-15), "length", loss="surrogates"),
    TypeRow("nvarchar", Kind.TEXT, pa.string(), Jdbc(-9), "length", loss="surrogates"),
    TypeRow(
        "text", Kind.TEXT, pa.string(), Jdbc(-1, JDBC_MAX), select="CAST(CAST({c} AS varchar(max)) AS nvarchar(max))",
        check="CAST(CAST(CAST({c} AS varchar(max)) AS nvarchar(max)) AS varbinary(max))",
        large=True, before_image="never", code_page=True,
    ),
    TypeRow(
        "ntext", Kind.TEXT, pa.string(), Jdbc(-16, JDBC_MAX // 2), select="CAST({c} AS nvarchar(max))",
        loss="surrogates", large=True, before_image="never",
    ),
    TypeRow(
        "xml", Kind.DOCUMENT, pa.string(), Jdbc(-16, JDBC_MAX), select="CAST({c} AS nvarchar(max))",
        large=True, before_image="when changed",
    ),
    TypeRow(
        "json", Kind.DOCUMENT, pa.string(), Jdbc(-16, JDBC_MAX), select="CAST({c} AS nvarchar(max))",
        large=True, before_image="when changed",
    ),
    TypeRow("uniqueidentifier", Kind.UUID, pa.string(), Jdbc(1, 36), select="CAST({c} AS varchar(37))"),
    TypeRow("binary", Kind.BINARY, pa.binary(), Jdbc(-2), "length"),
    TypeRow("varbinary", Kind.BINARY, pa.binary(), Jdbc(-3), "length"),
    TypeRow("image", Kind.BINARY, pa.binary(), Jdbc(-4, JDBC_MAX), large=True, before_image="never"),
    TypeRow("timestamp", Kind.BINARY, pa.binary(), Jdbc(-2, 8), select="CAST({c} AS binary(8))", bound_bytes=8),
    TypeRow(
        "rowversion", Kind.BINARY, pa.binary(), Jdbc(-2, 8, name="timestamp"),
        select="CAST({c} AS binary(8))", bound_bytes=8,
    ),
    TypeRow("hierarchyid", Kind.CLR, pa.binary(), Jdbc(-3, 892), large=True, bound_bytes=892),
    TypeRow("geometry", Kind.CLR, pa.binary(), Jdbc(-3, JDBC_MAX), large=True, before_image="undocumented"),
    TypeRow("geography", Kind.CLR, pa.binary(), Jdbc(-3, JDBC_MAX), large=True, before_image="undocumented"),
    TypeRow("date", Kind.DATE, pa.date32(), Jdbc(91, 10, 0), style=121),
    TypeRow("time", Kind.TIME, pa.string(), Jdbc(92, 8), "scale", select="CAST({c} AS varchar(17))", style=121),
    TypeRow(
        "smalldatetime", Kind.TIMESTAMP, _MICROSECONDS, Jdbc(93, 16, 0),
        style=120, bound_style=126, digits=0,
    ),
    TypeRow(
        "datetime", Kind.TIMESTAMP, _MICROSECONDS, Jdbc(93, 23, 3),
        style=121, bound_style=126, digits=3,
    ),
    TypeRow("datetime2", Kind.TIMESTAMP, _MICROSECONDS, Jdbc(93, 19), "scale", style=121, loss="digits"),
    TypeRow("datetimeoffset", Kind.INSTANT, _UTC_MICROSECONDS, Jdbc(-155, 26), "scale", style=121, loss="offset"),
    TypeRow("sql_variant", Kind.VARIANT, pa.string(), Jdbc(-150, JDBC_MAX, 0), loss="base type", large=True),
)  # fmt: skip

TYPES: Mapping[str, TypeRow] = MappingProxyType({row.name: row for row in _ROWS})
"""Every type by name."""
