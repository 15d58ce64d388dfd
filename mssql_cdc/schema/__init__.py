"""Models of source tables, the type table, and the Arrow shapes that follow from them (no I/O)."""

from mssql_cdc.schema.arrow import (
    change_log_schema,
    current_names,
    current_schema,
    neutral_schema,
    row_struct,
)
from mssql_cdc.schema.tables import Column, TableId, TableSchema
from mssql_cdc.schema.types import SqlServerType, arrow_type, lossy, needs_pyodbc

__all__ = [
    "Column",
    "SqlServerType",
    "TableId",
    "TableSchema",
    "arrow_type",
    "change_log_schema",
    "current_names",
    "current_schema",
    "lossy",
    "needs_pyodbc",
    "neutral_schema",
    "row_struct",
]
