"""Keys as Kafka Connect's StringConverter writes them: what Java's `toString` returns, `Struct{id=1,name=a}`.

Nothing is escaped, and fields that are null are left out. Dates of Connect's own types would be shown in the JVM's
time zone, which the lake does not have: they are an error. Keys are built row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa

from mssql_cdc.config.java_texts import java_double
from mssql_cdc.errors import SchemaError
from mssql_cdc.records.json_texts import Texts, json_text
from mssql_cdc.records.number_texts import with_numbers_as_written

Schema = Mapping[str, Any]
_CONNECT = "org.apache.kafka.connect.data."
_DATES = {f"{_CONNECT}{name}" for name in ("Date", "Time", "Timestamp")}


def string_texts(keys: Texts, schema: Schema) -> Texts:
    """Return keys as JSON strings; null stays null.

    Args:
        keys: The keys as JSON, with decimals as numbers and without defaults instead of null.
        schema: Their schema.
    """
    found = (with_numbers_as_written(key) for key in keys.to_pylist())
    return pa.array([json_text(string_text(schema, one)) for one in found], pa.string())


def string_text(schema: Schema, value: Any) -> str | None:
    """Return what Java's `toString` returns for a value; None for null.

    Args:
        schema: Its schema.
        value: The value as JSON.
    """
    if value is None:
        return None
    match schema["type"]:
        case "struct":
            own = cast("Mapping[str, Any]", value)
            fields = [(one["field"], string_text(one, own[one["field"]])) for one in schema["fields"]]
            return f"Struct{{{','.join(f'{name}={text}' for name, text in fields if text is not None)}}}"
        case "array":
            items = cast("Sequence[Any]", value)
            return f"[{', '.join(string_text(schema['items'], one) or 'null' for one in items)}]"
        case "bytes" if schema.get("name") == f"{_CONNECT}Decimal":
            return str(Decimal(str(value)))
        case "bytes":
            size = len(value) // 4 * 3 - value.count("=")
            return f"java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]"
        case "float" | "double":
            return java_double(str(value))
        case "boolean":
            return "true" if value else "false"
        case _:
            return str(value)


def checked_string(schema: Schema, setting: str) -> Schema:
    """Return the schema of a key if such keys can be written.

    Args:
        schema: The schema.
        setting: The property that names the converter.

    Raises:
        SchemaError: It has a field whose text depends on the JVM.
    """
    for one in schema["fields"]:
        if one.get("name") in _DATES or one["type"] == "map":
            raise SchemaError(
                f"{setting}: StringConverter writes the field {one['field']} of {schema['name']} in a way that depends "
                "on Debezium's JVM; choose another converter, or another time.precision.mode than connect"
            )
    return schema
