"""Files of rows that wait beside a change log, in its folder: VACUUM takes them for garbage, read or not.

Their columns have the logical names of their schema, whatever the change log calls its own. `capture/incremental`
decides which rows are written to the change log, and where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from mssql_cdc.lake.files import FileTarget
from mssql_cdc.lake.read import file_rows
from mssql_cdc.lake.storage import LOCAL, Storage, file_system
from mssql_cdc.schema import TableSchema, change_log_schema


def staging(uri: str, storage: Storage = LOCAL) -> FileTarget:
    """Where rows wait for a place in the change log in this folder."""
    return FileTarget(uri, storage=storage)


def staged_rows(
    uri: str,
    paths: Sequence[str],
    schema: TableSchema,
    *,
    columns: Sequence[str] | None = None,
    storage: Storage = LOCAL,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of staged files, in order.

    Args:
        uri: The folder of the change log.
        paths: The files in it.
        schema: The structure of the rows.
        columns: Only these columns of the change log.
        storage: How to reach the folder.

    Raises:
        FileNotFoundError: A file is gone.
    """
    system, logical = file_system(uri, storage), change_log_schema(schema)
    if columns is not None:
        logical = pa.schema([logical.field(name) for name in columns])
    for path in paths:
        with system.open_input_file(path) as source:
            yield from file_rows(pq.ParquetFile(source), logical, logical, None)
