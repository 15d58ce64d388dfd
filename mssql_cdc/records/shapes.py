"""How the rows of each schema version of a table are rendered: names of fields, converters, schemas (features §3).

`rows.py` renders the rows accordingly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config import Connector
from mssql_cdc.config.json_forms import JsonForm
from mssql_cdc.errors import ConfigurationError, SchemaError
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.records.converters import Convert, converter, null_text
from mssql_cdc.records.custom_converters import Registered, RowConvert
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.json_texts import json_text
from mssql_cdc.records.names import field_name
from mssql_cdc.records.reselect import Reselect
from mssql_cdc.records.schemas import Schema, envelope_schema, key_schema, value_schema
from mssql_cdc.records.string_texts import checked_string
from mssql_cdc.schema import Column, TableId, TableSchema

_FIELD_BYTES = 16
"""The quotes, colon and comma of a field, and a number, which takes some bits in the lake."""


@dataclass(frozen=True, slots=True)
class Large:
    """A column whose before image CDC omits unless the update changed it (TYP-05), and the text shown `instead`."""

    column: str
    field: str
    instead: str


@dataclass(frozen=True)
class TableShape:
    """Defines how the rows of one schema version of a table are rendered.

    `key_schema` and `value_schema` are texts, if records have schemas; `header_schema` is the schema of a key in a
    header. `shares_texts`: a column looks the same in the key and in the value. `header_fields` are the fields of a key
    in a header, if it looks different there. `added` are the names and values of further key fields. `checked` are the
    schemas of key and value that post-processors must adhere to; `reselect` re-selects missing values. `string_key` and
    `string_header` are the schemas of keys that are written in the form of Java's `toString`. `compares`: updates that
    change nothing are left out; `defaulted` are, for this comparison, the fields whose NULL looks like their default.
    """

    schema: TableSchema
    topic: str
    fields: tuple[tuple[str, Column, Convert], ...]
    key_fields: tuple[tuple[str, Column, Convert], ...]
    large: tuple[Large, ...] = ()
    key_schema: str | None = None
    value_schema: str | None = None
    shares_texts: bool = True
    header_fields: tuple[tuple[str, Column, Convert], ...] | None = None
    header_schema: str | None = None
    added: tuple[tuple[str, str], ...] = ()
    checked: tuple[Schema | None, Schema] | None = None
    reselect: Reselect | None = None
    string_key: Mapping[str, Any] | None = None
    string_header: Mapping[str, Any] | None = None
    compares: bool = False
    defaulted: frozenset[str] = frozenset()

    @property
    def has_key(self) -> bool:
        """Whether records have keys."""
        return bool(self.key_fields or self.added)

    @cached_property
    def text_bytes(self) -> int:
        """About how many bytes a record has, whatever its values: schemas, and the fields of images and keys, twice."""
        schemas = [text for text in (self.key_schema, self.value_schema, self.header_schema) if text is not None]
        fields = sum(len(name.encode()) + _FIELD_BYTES for name, _, _ in (*self.fields, *self.key_fields))
        return sum(len(text.encode()) for text in schemas) + 2 * fields

    @property
    def table_id(self) -> TableId:
        """The table's id, with its database."""
        return self.schema.table_id

    @classmethod
    def of(cls, schema: TableSchema, connector: Connector, extensions: Extensions) -> TableShape:
        """Build the shape of a schema version under the connector's modes.

        Args:
            schema: The schema version.
            connector: The configuration.
            extensions: Its extensions.

        Raises:
            SchemaError: `field.name.adjustment.mode` gives two columns the same name, a field that is added to keys has
                the name of another, or a column's type is unknown.
            ConfigurationError: The key has a column that the lake does not hold.
        """
        settings, table = connector.records, schema.table_id
        registered = extensions.converters.registered(schema)
        custom = {name: one.field for name, one in registered.items()}
        block = None if extensions.transactions is None else extensions.transactions.block

        def convert_of(column: Column, form: JsonForm) -> Convert | None:
            own = registered.get(column.name)
            mask = connector.filters.mask_for(table.catalog or "", table.schema, table.name, column.name)
            return converter(column, settings, form, mask=mask) if own is None else RowConvert(own, form)

        def fields(columns: Sequence[Column], form: JsonForm) -> tuple[tuple[str, Column, Convert], ...]:
            adjustment = settings.field_name_adjustment
            found = [(field_name(c.name, adjustment), c, convert_of(c, form)) for c in columns]
            names = [name for name, _, _ in found]
            if len(set(names)) < len(names):
                raise SchemaError(
                    f"{table}: field.name.adjustment.mode gives two columns the same name: {sorted(names)}"
                )
            return tuple((name, column, convert) for name, column, convert in found if convert is not None)

        own = _own_key(schema, connector)
        keys, values, headers = settings.key_form, settings.value_form, settings.header_form
        topic = extensions.topics.data_change_topic(table)
        value_fields = fields(schema.value_columns, values)
        key_columns = [schema.column(name) for name in own or schema.record_key]
        key_fields, header_fields = fields(key_columns, keys), fields(key_columns, headers)
        added = _added(table, key_fields, extensions)

        def schema_of_key(of: tuple[tuple[str, Column, Convert], ...], form: JsonForm) -> str:
            return key_schema(topic, _columns(of), settings, form, custom, added=[name for name, _ in added])

        return cls(
            schema=schema,
            topic=topic,
            fields=value_fields,
            key_fields=key_fields,
            large=tuple(
                Large(column.name, name, _undelivered(column, table, connector, registered))
                for name, column, _ in value_fields
                if column.type.is_hidden_untouched
            ),
            key_schema=schema_of_key(key_fields, keys) if keys.schemas else None,
            value_schema=value_schema(topic, _columns(value_fields), table, connector, custom=custom, transaction=block)
            if values.schemas
            else None,
            shares_texts=keys.values == values.values,
            header_fields=None if headers.values == keys.values else header_fields,
            header_schema=schema_of_key(header_fields, headers) if headers.schemas else None,
            added=added,
            checked=(
                json.loads(schema_of_key(key_fields, keys)) if key_fields or added else None,
                envelope_schema(topic, _columns(value_fields), table, connector, custom=custom, transaction=block),
            )
            if extensions.post_processors.own
            else None,
            reselect=extensions.reselect,
            string_key=checked_string(json.loads(schema_of_key(key_fields, keys)), "key.converter")
            if settings.writes_string_keys
            else None,
            string_header=checked_string(json.loads(schema_of_key(header_fields, headers)), "header.converter")
            if settings.writes_string_headers
            else None,
            compares=settings.skip_unchanged,
            defaulted=frozenset(
                name
                for name, column, _ in value_fields
                if column.nullable and column.name not in registered and null_text(column, settings, values) != "null"
            )
            if settings.skip_unchanged
            else frozenset(),
        )


def _own_key(schema: TableSchema, connector: Connector) -> tuple[str, ...]:
    """Return the columns of `message.key.columns`; a filter may have kept one of them out of the lake."""
    table = schema.table_id
    names = [column.name for column in schema.columns]
    own = connector.records.keys.columns_for(table.catalog or "", table.schema, table.name, names)
    hidden = [name for name in own if name in schema.hidden]
    if hidden:
        raise ConfigurationError(
            f"{table}: message.key.columns has {', '.join(hidden)}, which column.exclude.list or column.include.list "
            "keeps out of the lake. Name other columns, or let these in: changes that are captured then have them"
        )
    return own


def _added(
    table: TableId, key: Sequence[tuple[str, Column, Convert]], extensions: Extensions
) -> tuple[tuple[str, str], ...]:
    """Return the field that the naming strategy adds to keys."""
    found = extensions.topics.key_field(table)
    if found is None:
        return ()
    if any(name == found[0] for name, _, _ in key):
        raise SchemaError(f"{table}: the key has a column {found[0]!r}; set topic.key.field.name to another name")
    return (found,)


def _columns(fields: Sequence[tuple[str, Column, Convert]]) -> list[tuple[str, Column]]:
    return [(name, column) for name, column, _ in fields]


def _undelivered(column: Column, table: TableId, connector: Connector, registered: Mapping[str, Registered]) -> str:
    """Return Debezium's text for a value that the change table lacks.

    A mask of asterisks also replaces NULL; any mask also replaces what stands for NULL in a NOT NULL column.
    """
    own = registered.get(column.name)
    if own is not None:
        return own.text(None, connector.records.value_form)
    mask = connector.filters.mask_for(table.catalog or "", table.schema, table.name, column.name)
    if mask is not None and mask.kind == "fill" and mask.applies_to(column.type.name):
        return json_text("*" * mask.length)
    return null_text(column, connector.records, connector.records.value_form, mask=mask)


@dataclass(frozen=True)
class Shapes:
    """The shapes of all tables and schema versions of one database."""

    history: SchemaHistory
    connector: Connector
    extensions: Extensions
    _known: dict[tuple[TableId, int], TableShape] = field(default_factory=dict[tuple[TableId, int], TableShape])

    def of(self, table_id: TableId, version: int) -> TableShape:
        """Return the shape of a version (raises SchemaError if the history does not contain it)."""
        key = table_id, version
        if key not in self._known:
            # Only one is kept, whichever thread was first.
            self._known.setdefault(
                key, TableShape.of(self.history.version(table_id, version), self.connector, self.extensions)
            )
        return self._known[key]

    def text_bytes(self, table_id: TableId, rows: pa.RecordBatch) -> int:
        """Return about how many bytes the records of a change log's rows have, whatever their values."""
        counted = pc.value_counts(rows.column("_schema")).to_pylist()
        return sum(one["counts"] * self.of(table_id, one["values"]).text_bytes for one in counted)

    def table_of(self, shape: TableShape) -> TableId:
        """Return the current name of the table to which a shape belongs; the shape's own name may be a former one."""
        return next(table for (table, _), known in self._known.items() if known is shape)
