"""Names, literals and types as Spark SQL writes them."""

from __future__ import annotations

import pyarrow as pa


def spark_identifier(uri: str) -> str:
    """The Delta table at a path."""
    return f"delta.{quoted(uri)}"


def quoted(name: str) -> str:
    """A quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def sql_type(kind: pa.DataType) -> str:
    """The type of a column; names within it may contain any character."""
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{quoted(field.name)}: {sql_type(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"MAP<{sql_type(kind.key_type)}, {sql_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_type(kind.value_type)}>"
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString()
