"""Debezium's view of a table's structure: what its JDBC driver reports of each type, and schema change structures.

The one table of JDBC codes, lengths and scales (SCH-08, features §3.4). How values look is decided in `converters.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema import Column, SqlServerType, TableSchema

MAX = 2_147_483_647
Size = int | Callable[[SqlServerType], int | None] | None


@dataclass(frozen=True, slots=True)
class JdbcType:
    """What `DatabaseMetaData.getColumns` says of a type; sizes are numbers or depend on the declaration."""

    code: int
    length: Size = None
    scale: Size = None
    arguments: str = ""
    """What stands between the type's name and ` identity`: `decimal() identity` is the server's own spelling."""


def table_structure(schema: TableSchema) -> dict[str, Any]:
    """`table` of a schema change record, excluded columns included (column filters shape values only)."""
    return {
        "defaultCharsetName": None,
        "primaryKeyColumnNames": list(schema.key_columns),
        "columns": [_column(column, position) for position, column in enumerate(schema.columns, start=1)],
        "comment": None,
    }


def _column(column: Column, position: int) -> dict[str, Any]:
    try:
        jdbc = JDBC_TYPES[column.type.name]
    except KeyError:
        raise SchemaError(f"No JDBC type is known for {column.type.name!r} of column {column.name!r}") from None
    name = "timestamp" if column.type.name == "rowversion" else column.type.name
    if column.identity:
        name = f"{name}{jdbc.arguments} identity"
    return {
        "name": column.name,
        "jdbcType": jdbc.code,
        "nativeType": None,
        "typeName": name,
        "typeExpression": name,
        "charsetName": None,
        "length": _size(jdbc.length, column.type),
        "scale": _size(jdbc.scale, column.type),
        "position": position,
        "optional": column.nullable,
        "autoIncremented": column.identity,
        "generated": column.computed,
        "comment": None,
        "defaultValueExpression": column.default_text,
        "enumValues": None,
    }


def fraction_digits(sql_type: SqlServerType) -> int:
    """Digits of a second that a temporal type keeps, as Debezium counts them."""
    fixed = {"datetime": 3, "smalldatetime": 0, "date": 0}.get(sql_type.name)
    if fixed is not None:
        return fixed
    return 7 if sql_type.scale is None else sql_type.scale


def _size(size: Size, sql_type: SqlServerType) -> int | None:
    return size(sql_type) if callable(size) else size


def _declared(sql_type: SqlServerType) -> int | None:
    return MAX if sql_type.is_max else sql_type.length


def _with_fraction(digits: int) -> Callable[[SqlServerType], int]:
    """The display length: a dot and the fraction come behind `digits` characters."""

    def length(sql_type: SqlServerType) -> int:
        fraction = fraction_digits(sql_type)
        return digits + (fraction + 1 if fraction else 0)

    return length


def _precision(sql_type: SqlServerType) -> int:
    return sql_type.precision or 18


def _scale(sql_type: SqlServerType) -> int:
    return sql_type.scale or 0


JDBC_TYPES: dict[str, JdbcType] = {
    "bit": JdbcType(-7, 1),
    "tinyint": JdbcType(-6, 3, 0),
    "smallint": JdbcType(5, 5, 0),
    "int": JdbcType(4, 10, 0),
    "bigint": JdbcType(-5, 19, 0),
    "decimal": JdbcType(3, _precision, _scale, arguments="()"),
    "numeric": JdbcType(2, _precision, _scale, arguments="()"),
    "money": JdbcType(3, 19, 4),
    "smallmoney": JdbcType(3, 10, 4),
    "float": JdbcType(8, 53),
    "real": JdbcType(7, 24),
    "char": JdbcType(1, _declared),
    "varchar": JdbcType(12, _declared),
    "text": JdbcType(-1, MAX),
    "nchar": JdbcType(-15, _declared),
    "nvarchar": JdbcType(-9, _declared),
    "ntext": JdbcType(-16, 1_073_741_823),
    "xml": JdbcType(-16, MAX),
    "json": JdbcType(-16, MAX),
    "uniqueidentifier": JdbcType(1, 36),
    "binary": JdbcType(-2, _declared),
    "varbinary": JdbcType(-3, _declared),
    "image": JdbcType(-4, MAX),
    "timestamp": JdbcType(-2, 8),
    "rowversion": JdbcType(-2, 8),
    "hierarchyid": JdbcType(-3, 892),
    "geometry": JdbcType(-3, MAX),
    "geography": JdbcType(-3, MAX),
    "date": JdbcType(91, 10, 0),
    "time": JdbcType(92, _with_fraction(8), fraction_digits),
    "datetime": JdbcType(93, 23, 3),
    "smalldatetime": JdbcType(93, 16, 0),
    "datetime2": JdbcType(93, _with_fraction(19), fraction_digits),
    "datetimeoffset": JdbcType(-155, _with_fraction(26), fraction_digits),
    "sql_variant": JdbcType(-156, 8000),
}
