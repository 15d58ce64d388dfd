"""The files of a table as its log lists them, with statistics under the table's logical column names."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable

from mssql_cdc.lake.delta_schema import arrow_of, file_schema
from mssql_cdc.lake.properties import is_mapped

_PARTS = ("min.", "max.", "null_count.")


def add_actions(table: DeltaTable) -> pa.Table:
    """One row per file: path, size and row count, and the statistics that its writer left, such as `min._batch`.

    Args:
        table: The table.
    """
    found = pa.table(table.get_add_actions(flatten=True))
    if not is_mapped(table.metadata().configuration):
        return found
    names = {part + stored: part + name for stored, name in _names(table).items() for part in _PARTS}
    return found.rename_columns([names.get(name, name) for name in found.column_names])


def _names(table: DeltaTable) -> dict[str, str]:
    """The table's column names by their names in its files."""
    schema_json = table.schema().to_json()
    logical = arrow_of(schema_json)
    return dict(zip(file_schema(schema_json, logical).names, logical.names, strict=True))
