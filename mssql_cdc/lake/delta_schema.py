"""Converts Arrow schemas to Delta schemas, and conforms Arrow batches to the actual schema of a table.

The table's own schema takes precedence: columns dropped at the source stay, a widened type stays wide, and the files of
a table with column mapping use its physical names. `lake/evolution.py` changes schemas.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

import pyarrow as pa

from mssql_cdc.errors import SchemaError

_NEEDS_MAPPING = re.compile(r"[ ,;{}()\n\t=]")
_PHYSICAL = "delta.columnMapping.physicalName"
_ID = "delta.columnMapping.id"
_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int16(): (pa.int32(), pa.int64()),
    pa.int32(): (pa.int64(),),
    pa.float32(): (pa.float64(),),
    pa.date32(): (pa.timestamp("us"),),
}
_DIGITS = {pa.int16(): 10, pa.int32(): 10, pa.int64(): 20}
"""The digits before the point that a decimal needs for Delta to widen an integer to it."""


def needs_mapping(schema: pa.Schema | pa.StructType) -> bool:
    """Whether a name contains a character that Delta accepts only with column mapping."""
    return any(
        _NEEDS_MAPPING.search(field.name) or (pa.types.is_struct(field.type) and needs_mapping(field.type))
        for field in schema
    )


@lru_cache(maxsize=1024)
def arrow_of(schema_json: str) -> pa.Schema:
    """The Arrow schema of a Delta schema text, by logical names."""
    fields = json.loads(schema_json)["fields"]
    return pa.schema([_field(field, physical=False) for field in fields])


def is_wider(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of type `wanted` fits the type `found`, exactly and as Delta's type widening allows."""
    if pa.types.is_decimal(found) and pa.types.is_decimal(wanted):
        whole = found.precision - found.scale >= wanted.precision - wanted.scale
        return whole and found.scale >= wanted.scale
    if pa.types.is_decimal(found) and wanted in _DIGITS:
        return found.precision - found.scale >= _DIGITS[wanted]
    return found in _WIDER.get(wanted, ())


@lru_cache(maxsize=4096)
def file_schema(schema_json: str, wanted: pa.Schema, *, physical: bool = True) -> pa.Schema:
    """The schema of a file with the columns of `wanted` for the table that has the schema `schema_json`.

    Args:
        schema_json: the table's schema.
        wanted: the columns, in the order to keep.
        physical: use the table's physical names and field ids; otherwise only its types.

    Raises:
        SchemaError: the table lacks a column of `wanted`, or has it with a type that cannot hold the values.
    """
    fields = {field["name"]: field for field in json.loads(schema_json)["fields"]}
    return pa.schema([_fit(fields.get(field.name), field, field.name, physical=physical) for field in wanted])


def stored_name(schema_json: str, name: str) -> str:
    """The name of a table's column in the table's files."""
    return file_schema(schema_json, pa.schema([arrow_of(schema_json).field(name)])).field(0).name


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the names and types of `schema` (from `file_schema`), column by column."""
    if batch.schema.equals(schema):
        return batch
    names = batch.schema.names
    columns = [_conform(batch.column(i), schema.field(i).type, names[i]) for i in range(batch.num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _fit(found: dict[str, Any] | None, wanted: pa.Field, path: str, *, physical: bool) -> pa.Field:
    if found is None:
        raise SchemaError(f"The Delta table has no column {path!r} yet; its schema must be changed first")
    if pa.types.is_struct(wanted.type) and isinstance(found["type"], dict):
        inner = _inner(found)
        children = [
            _fit(inner.get(child.name), child, f"{path}.{child.name}", physical=physical) for child in wanted.type
        ]
        return _named(found, pa.struct(children), physical=physical)
    has = _type(found["type"], physical=physical)
    if not has.equals(wanted.type) and not is_wider(has, wanted.type):
        raise SchemaError(
            f"Column {path!r} is {has} in the Delta table and {wanted.type} at the source; Delta cannot widen one to "
            "the other. Exclude the column, or move the table's folder away and take a new snapshot"
        )
    return _named(found, has, physical=physical)


def _inner(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The fields of a struct column by name."""
    return {field["name"]: field for field in found["type"]["fields"]}


def _field(found: dict[str, Any], *, physical: bool) -> pa.Field:
    return _named(found, _type(found["type"], physical=physical), physical=physical)


def _named(found: dict[str, Any], data_type: pa.DataType, *, physical: bool) -> pa.Field:
    metadata: dict[str, Any] = found.get("metadata") or {}
    if not physical or _PHYSICAL not in metadata:
        return pa.field(found["name"], data_type, found["nullable"])
    return pa.field(metadata[_PHYSICAL], data_type, found["nullable"], {"PARQUET:field_id": str(metadata[_ID])})


_PRIMITIVES = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def _type(found: str | dict[str, Any], *, physical: bool) -> pa.DataType:
    if isinstance(found, dict):
        if found["type"] == "struct":
            return pa.struct([_field(child, physical=physical) for child in found["fields"]])
        if found["type"] == "array":
            return pa.list_(pa.field("element", _type(found["elementType"], physical=physical)))
        return pa.map_(_type(found["keyType"], physical=physical), _type(found["valueType"], physical=physical))
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", found)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    try:
        return _PRIMITIVES[found]
    except KeyError:
        raise SchemaError(f"The Delta table has a column of type {found!r}, which is not supported") from None


def cast_values(values: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    """The values of a column, cast to the type `wanted`.

    Args:
        values: The values.
        wanted: The type of the Delta column.
        path: The path of the column, for errors.

    Raises:
        SchemaError: a value does not fit; the message does not show it because it belongs to a row.
    """
    if values.type.equals(wanted):
        return values
    try:
        return values.cast(wanted)
    except pa.ArrowException:
        raise SchemaError(
            f"Column {path!r} has a value of type {values.type} that does not fit the Delta table's {wanted}"
        ) from None


def _conform(values: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    if values.type.equals(wanted, check_metadata=True):
        return values
    if isinstance(values, pa.StructArray) and pa.types.is_struct(wanted):
        children = [
            _conform(values.field(i), wanted.field(i).type, f"{path}.{values.type.field(i).name}")
            for i in range(wanted.num_fields)
        ]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=values.is_null())
    return cast_values(values, wanted, path)
