"""Debezium's view of a table's structure, as its schema change records show it (SCH-08, features §3.4).

What the JDBC driver reports of a type stands in the type's row. How values look is decided in `converters.py`.
"""

from __future__ import annotations

from typing import Any

from mssql_cdc.schema import Column, TableSchema


def table_structure(schema: TableSchema) -> dict[str, Any]:
    """`table` of a schema change record, excluded columns included (column filters shape values only)."""
    return {
        "defaultCharsetName": None,
        "primaryKeyColumnNames": list(schema.key_columns),
        "columns": [_column(column, position) for position, column in enumerate(schema.columns, start=1)],
        "comment": None,
    }


def _column(column: Column, position: int) -> dict[str, Any]:
    row = column.type.row
    name = row.jdbc.name or row.name
    if column.identity:  # `decimal() identity` is the server's own spelling.
        name = f"{name}{'()' if row.arguments == 'precision and scale' else ''} identity"
    return {
        "name": column.name,
        "jdbcType": row.jdbc.code,
        "nativeType": None,
        "typeName": name,
        "typeExpression": name,
        "charsetName": None,
        "length": column.type.jdbc_length,
        "scale": column.type.jdbc_scale,
        "position": position,
        "optional": column.nullable,
        "autoIncremented": column.identity,
        "generated": column.computed,
        "comment": None,
        "defaultValueExpression": column.default_text,
        "enumValues": None,
    }
