"""Models of source tables, the type table, and the Arrow schemas derived from them (no I/O)."""

from mssql_cdc.schema.arrow import (
    change_log_schema,
    current_names,
    current_schema,
    former_names,
    neutral_schema,
    row_struct,
    stored_struct,
)
from mssql_cdc.schema.tables import (
    NO_CONSTRAINT,
    Column,
    FormerColumn,
    TableId,
    TableSchema,
    TableStructure,
    UniqueKey,
)
from mssql_cdc.schema.type_table import TYPES, Kind, TypeRow
from mssql_cdc.schema.types import SqlServerType

__all__ = [
    "NO_CONSTRAINT",
    "TYPES",
    "Column",
    "FormerColumn",
    "Kind",
    "SqlServerType",
    "TableId",
    "TableSchema",
    "TableStructure",
    "TypeRow",
    "UniqueKey",
    "change_log_schema",
    "current_names",
    "current_schema",
    "former_names",
    "neutral_schema",
    "row_struct",
    "stored_struct",
]
