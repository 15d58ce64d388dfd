"""Schemas of records as Kafka Connect's JSON converter writes them (features §3): constant texts per table version.

The schema of a column follows from its type and the modes, as its values do (`converters.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from mssql_cdc.config import Connector, RecordSettings
from mssql_cdc.config.json_forms import JsonForm
from mssql_cdc.config.masks import MaskRule
from mssql_cdc.records.connect_values import dumped
from mssql_cdc.records.converters import default_text, time_unit
from mssql_cdc.records.names import schema_name
from mssql_cdc.schema import Column, Kind, TableId

Schema = dict[str, Any]
Fields = Sequence[tuple[str, Column]]
"""Columns with the names of their fields."""
Custom = Mapping[str, Callable[[JsonForm], Schema]]
"""Functions that build the schema of a column's field, without its name, for columns that a user's converter
registered."""
NONE: Custom = MappingProxyType({})
STRING: Schema = {"type": "string", "optional": False}
"""The schema of a text that is not a field."""
_SOURCE_TYPE = "__debezium.source.column"
_NUMBERS = {"tinyint": "int16", "smallint": "int16", "int": "int32", "bigint": "int64", "real": "float"}
CLOUD_EVENT_DATA = "io.debezium.connector.sqlserver.Data"
_UNITS = {1_000_000: "", 1_000: "Micro", 1: "Nano"}


def field(name: str, kind: str, /, *, optional: bool = False, **more: Any) -> Schema:
    """Return the schema of a field of a struct.

    Args:
        name: Its name.
        kind: Kafka Connect's type.
        optional: Whether it can be null.
        more: What else the schema has, in the converter's order: name, version, parameters, default.
    """
    return {"type": kind, "optional": optional, **more, "field": name}


def struct(fields: Sequence[Schema], *, optional: bool = False, **more: Any) -> Schema:
    """Return the schema of a struct.

    Args:
        fields: The schemas of its fields.
        optional: Whether it can be null.
        more: Its name and version; with `field`, it is itself a field.
    """
    return {"type": "struct", "fields": list(fields), "optional": optional, **more}


def array(items: Schema, *, optional: bool = False, **more: Any) -> Schema:
    """Return the schema of an array.

    Args:
        items: The schema of its items.
        optional: Whether it can be null.
        more: With `field`, it is a field.
    """
    return {"type": "array", "items": items, "optional": optional, **more}


def transaction_block() -> Schema:
    """Return the schema of the block `transaction` in values."""
    return struct(
        [field("id", "string"), field("total_order", "int64"), field("data_collection_order", "int64")],
        optional=True, name="event.block", version=1, field="transaction",
    )  # fmt: skip


def source_schema() -> Schema:
    """Return the schema of the `source` block."""
    allowed = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
    snapshot = field(
        "snapshot", "string", optional=True, name="io.debezium.data.Enum", version=1,
        parameters={"allowed": allowed}, default="false",
    )  # fmt: skip
    fields = [
        *(field(name, "string") for name in ("version", "connector", "name")), field("ts_ms", "int64"), snapshot,
        field("db", "string"), field("sequence", "string", optional=True),
        *(field(name, "int64", optional=True) for name in ("ts_us", "ts_ns")),
        *(field(name, "string") for name in ("schema", "table")),
        *(field(name, "string", optional=True) for name in ("change_lsn", "commit_lsn")),
        field("event_serial_no", "int64", optional=True),
    ]  # fmt: skip
    return struct(fields, name="io.debezium.connector.sqlserver.Source", version=1, field="source")


def key_schema(
    topic: str,
    fields: Fields,
    settings: RecordSettings,
    form: JsonForm,
    custom: Custom = NONE,
    *,
    added: Iterable[str] = (),
) -> str:
    """Return the schema of a table's keys as text.

    Args:
        topic: The table's topic.
        fields: The key's columns.
        settings: The modes.
        form: How keys are written.
        custom: The schemas that users' converters registered, by column.
        added: The names of fields that are not columns.
    """
    name = schema_name(f"{topic}.Key", settings.schema_names)
    columns = [_field_of(one, column, settings, form, custom) for one, column in fields]
    return dumped(struct([*columns, *(field(one, "string") for one in added)], name=name))


def value_schema(
    topic: str,
    fields: Fields,
    table: TableId,
    connector: Connector,
    *,
    custom: Custom = NONE,
    transaction: Mapping[str, Any] | None = None,
) -> str:
    """Return the schema of a table's values, or of the data of its CloudEvents, as text.

    Args:
        topic: The table's topic.
        fields: The columns of `before` and `after`.
        table: The table.
        connector: The modes, the masks and the propagated types.
        custom: The schemas that users' converters registered, by column.
        transaction: The schema of the transaction block of a user's factory; None: Debezium's.
    """
    envelope = envelope_schema(topic, fields, table, connector, custom=custom, transaction=transaction)
    if connector.records.writes_cloud_events:
        return dumped(struct(envelope["fields"][:2], name=CLOUD_EVENT_DATA))
    return dumped(envelope)


def envelope_schema(
    topic: str,
    fields: Fields,
    table: TableId,
    connector: Connector,
    *,
    custom: Custom = NONE,
    transaction: Mapping[str, Any] | None = None,
) -> Schema:
    """Return the schema of a table's values.

    Args:
        topic: As for `value_schema`.
        fields: The same.
        table: The same.
        connector: The same.
        custom: The same.
        transaction: The same.
    """
    settings = connector.records
    columns: list[Schema] = []
    for name, column in fields:
        found = _field_of(name, column, settings, settings.value_form, custom)
        added = _added_parameters(column, table, connector)
        if added:
            found["parameters"] = found.get("parameters", {}) | added
        columns.append(found)
    value = schema_name(f"{topic}.Value", settings.schema_names)
    images = [struct(columns, optional=True, name=value, field=image) for image in ("before", "after")]
    block = transaction_block() if transaction is None else {**transaction, "optional": True, "field": "transaction"}
    return struct(
        [
            *images, source_schema(), block, field("op", "string"),
            *(field(name, "int64", optional=True) for name in ("ts_ms", "ts_us", "ts_ns")),
        ],
        name=schema_name(f"{topic}.Envelope", settings.schema_names), version=2,
    )  # fmt: skip


def _field_of(name: str, column: Column, settings: RecordSettings, form: JsonForm, custom: Custom) -> Schema:
    own = custom.get(column.name)
    return column_schema(name, column, settings, form) if own is None else {**own(form), "field": name}


def column_schema(name: str, column: Column, settings: RecordSettings, form: JsonForm) -> Schema:
    """Return the schema of a column's field.

    Args:
        name: The name of the field.
        column: The column.
        settings: The modes.
        form: How the default is written.
    """
    kind, more = _kind(column, settings)
    default = default_text(column, settings, form)
    if default is not None:
        # A number in the form NUMERIC can have more digits than a double.
        digits = Decimal if column.type.kind is Kind.DECIMAL and kind == "bytes" else float
        more = more | {"default": json.loads(default, parse_float=digits)}
    return field(name, kind, optional=column.nullable, **more)


def _kind(column: Column, settings: RecordSettings) -> tuple[str, Schema]:
    kind, mode = column.type.kind, settings.time_precision
    match kind:
        case Kind.BOOLEAN:
            return "boolean", {}
        case Kind.INTEGER | Kind.FLOAT:
            return _NUMBERS.get(column.type.name, "double"), {}
        case Kind.DECIMAL:
            return _decimal(column, settings)
        case Kind.BINARY | Kind.CLR:
            return "bytes" if settings.binary_handling == "bytes" else "string", {}
        case Kind.INSTANT:
            return "string", _named("io.debezium.time.ZonedTimestamp")
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP if mode == "isostring":
            iso = {Kind.DATE: "IsoDate", Kind.TIME: "IsoTime", Kind.TIMESTAMP: "IsoTimestamp"}[kind]
            return "string", _named(f"io.debezium.time.{iso}")
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP:
            return _moment(column, settings)
        case Kind.TEXT | Kind.DOCUMENT | Kind.UUID | Kind.VARIANT:
            return "string", {}


def _decimal(column: Column, settings: RecordSettings) -> tuple[str, Schema]:
    if settings.decimal_handling != "precise":
        return ("double" if settings.decimal_handling == "double" else "string"), {}
    parameters = {"scale": str(column.type.jdbc_scale), "connect.decimal.precision": str(column.type.jdbc_length)}
    return "bytes", {**_named("org.apache.kafka.connect.data.Decimal"), "parameters": parameters}


def _moment(column: Column, settings: RecordSettings) -> tuple[str, Schema]:
    kind, mode = column.type.kind, settings.time_precision
    what = {Kind.DATE: "Date", Kind.TIME: "Time", Kind.TIMESTAMP: "Timestamp"}[kind]
    if mode == "connect":
        return ("int64" if kind is Kind.TIMESTAMP else "int32"), _named(f"org.apache.kafka.connect.data.{what}")
    if kind is Kind.DATE:
        return "int32", _named("io.debezium.time.Date")
    unit = _UNITS[time_unit(column.type, mode)]
    return ("int32" if kind is Kind.TIME and not unit else "int64"), _named(f"io.debezium.time.{unit}{what}")


def _named(name: str) -> Schema:
    return {"name": name, "version": 1}


def _added_parameters(column: Column, table: TableId, connector: Connector) -> dict[str, str]:
    """Return the parameters that masks, or else propagated source types, add to a field's schema."""
    place = (table.catalog or "", table.schema, table.name)
    mask = connector.filters.mask_for(*place, column.name)
    if mask is not None:
        return _mask_parameters(mask, column)
    row = column.type
    type_name = jdbc_type_name(column)
    if not connector.records.propagates_type(*place, (column.name, type_name)):
        return {}
    found = {f"{_SOURCE_TYPE}.type": type_name.upper()}
    if row.jdbc_length is not None:
        found[f"{_SOURCE_TYPE}.length"] = str(row.jdbc_length)
    if row.jdbc_scale is not None:
        found[f"{_SOURCE_TYPE}.scale"] = str(row.jdbc_scale)
    return {**found, f"{_SOURCE_TYPE}.name": column.name}


def _mask_parameters(mask: MaskRule, column: Column) -> dict[str, str]:
    if mask.kind != "truncate":
        return {"masked": "true"}
    length = column.type.jdbc_length
    return {"truncateLength": str(mask.length)} if length is None or length > mask.length else {}


def jdbc_type_name(column: Column) -> str:
    """Return the type's name as Debezium's driver reports it; `decimal() identity` is the server's own spelling."""
    row = column.type.row
    name = column.alias or row.jdbc.name or row.name
    if column.identity:
        return f"{name}{'()' if row.arguments == 'precision and scale' else ''} identity"
    return name
