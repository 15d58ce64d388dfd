"""How files of a table name and type some of its columns, worked out once: a step asks for hundreds of small files.

`lake/delta_schema.py` works it out; the result depends on nothing but the two schemas.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from mssql_cdc.lake.delta_schema import file_schema


@lru_cache(maxsize=4096)
def stored_schema(schema_json: str, wanted: pa.Schema) -> pa.Schema:
    """`file_schema` with physical names.

    Raises:
        SchemaError: the table lacks a column of `wanted`, or has it with a type that cannot hold the values.
    """
    return file_schema(schema_json, wanted)
