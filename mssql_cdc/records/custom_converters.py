"""User-defined converters (SPI-05): Debezium's `CustomConverter` in Python.

A converter sees each column once and may register a schema and a function for it; the function then produces the
column's values in keys, values and defaults. An entry point in the group `mssql_cdc.converters` names its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from mssql_cdc.config import Connector
from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.config.json_forms import JsonForm
from mssql_cdc.errors import ConfigurationError, placed
from mssql_cdc.extensions import load_extension
from mssql_cdc.records.connect_values import (
    Schema,
    UnfitValueError,
    check_schema,
    dumped,
    field_schema,
    to_json,
)
from mssql_cdc.records.defaults import literal_default, stored
from mssql_cdc.records.json_texts import Texts
from mssql_cdc.records.schemas import jdbc_type_name
from mssql_cdc.schema import Column, Kind, TableSchema

Conversion = Callable[[Any], Any]
"""Converts a source value, which is None for NULL, to the value in a record."""


@dataclass(frozen=True, slots=True)
class RelationalColumn:
    """A column as a converter sees it, with Debezium's names; `default` is a value like those to be converted."""

    name: str
    data_collection: str
    type_name: str
    type_expression: str
    length: int | None
    scale: int | None
    is_optional: bool
    has_default: bool
    default: Any


class ConverterRegistration(Protocol):
    """Receives what a converter registers for the column that it was asked about."""

    def register(self, schema: Schema, convert: Conversion) -> None:
        """Register a schema (`{"type": "string", "name": …}`) and the function that produces its values."""
        ...


class CustomConverter(Protocol):
    """A converter, like Debezium's `io.debezium.spi.converter.CustomConverter`."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Receive the converter's properties, without its name as a prefix; called once, before all other methods."""
        ...

    def converter_for(self, column: RelationalColumn, registration: ConverterRegistration) -> None:
        """Register a conversion for a column, or do nothing."""
        ...


@dataclass(slots=True)
class _Registration:
    schema: Schema | None = None
    convert: Conversion | None = None

    def register(self, schema: Schema, convert: Conversion) -> None:
        check_schema(schema)
        self.schema, self.convert = schema, convert


@dataclass(frozen=True, slots=True)
class Registered:
    """A column's conversion; `default` is the column's default after conversion."""

    converter: str
    column: Column
    schema: Schema
    convert: Conversion
    default: Any = None

    def field(self, form: JsonForm) -> dict[str, Any]:
        """Return the schema of the field."""
        default = None if self.default is None else self._json(self.default, form)
        return field_schema(self.schema, optional=self.column.nullable, default=default)

    def text(self, value: Any, form: JsonForm) -> str:
        """Return the JSON of a source value.

        Args:
            value: The value; None is NULL.
            form: How Kafka Connect's converter writes it.

        Raises:
            UnfitValueError: The converter fails, or its value does not fit its schema.
        """
        try:
            found = self.convert(value)
        except Exception as error:  # noqa: BLE001 (any: user code)
            raise UnfitValueError(f"{self._who} fails: {placed(error)}") from None
        if found is None and self.default is not None and form.defaults:
            found = self.default
        return dumped(self._json(found, form))

    def _json(self, value: Any, form: JsonForm) -> Any:
        try:
            return to_json({**self.schema, "optional": self.column.nullable}, value, numeric=form.numeric)
        except UnfitValueError as error:
            raise UnfitValueError(f"{self._who} makes a value that its schema does not allow: {error}") from None

    @property
    def _who(self) -> str:
        return f"the converter {self.converter!r} of the column {self.column.name!r}"


@dataclass(frozen=True, slots=True)
class RowConvert:
    """Converts a column row by row; it is called only with the rows that have the image."""

    registered: Registered
    form: JsonForm

    def __call__(self, values: pa.Array, exact: pa.Array | None) -> Texts:
        """Return the JSON texts."""
        found = source_values(self.registered.column, values, exact)
        return pa.array([self.registered.text(value, self.form) for value in found], pa.string())


@dataclass(frozen=True, slots=True)
class CustomConverters:
    """The converters of a connector, in order: the first one that registers a column converts it."""

    connector: Connector
    own: tuple[tuple[str, CustomConverter], ...] = ()

    @classmethod
    def of(cls, connector: Connector) -> CustomConverters:
        """Load and configure the converters (raises ConfigurationError)."""
        found: list[tuple[str, CustomConverter]] = []
        for one in connector.records.extensions.own_converters:
            setting = f"{one.name}.type"
            made = load_extension(
                ExtensionGroup.CONVERTERS, one.type, setting=setting, methods=("configure", "converter_for")
            )
            made.configure(one.read())
            found.append((one.name, made))
        return cls(connector, tuple(found))

    def registered(self, schema: TableSchema) -> dict[str, Registered]:
        """Return the conversions of a table's columns, by column name.

        Raises:
            ConfigurationError: A converter registers something that cannot be used.
        """
        if not self.own:
            return {}
        found = ((column.name, self._of(column, schema)) for column in schema.columns)
        return {name: one for name, one in found if one is not None}

    def _of(self, column: Column, schema: TableSchema) -> Registered | None:
        table = schema.table_id
        asked = _as_asked(column, table.text)
        for name, converter in self.own:
            registration = _Registration()
            try:
                converter.converter_for(asked, registration)
                if registration.schema is None or registration.convert is None:
                    continue
                made = Registered(name, column, registration.schema, registration.convert)
                if asked.has_default:
                    made = Registered(name, column, made.schema, made.convert, made.convert(asked.default))
                made.field(JsonForm())
            except Exception as error:
                raise ConfigurationError(
                    f"{name}.type: the converter fails for the column {column.name!r} of {table}: "
                    f"{type(error).__name__}: {error}"
                ) from error
            mask = self.connector.filters.mask_for(table.catalog or "", table.schema, table.name, column.name)
            if mask is not None and mask.applies_to(column.type.name):
                raise ConfigurationError(
                    f"{name}.type: the converter registers the column {column.name!r} of {table}, which is masked: the "
                    "lake has only its masked values. Leave it out of the converter, or take the mask off"
                )
            return made
        return None


def _as_asked(column: Column, table: str) -> RelationalColumn:
    name = jdbc_type_name(column)
    literal = literal_default(column)
    default = None if literal is None else source_values(column, *stored(column, literal))[0]
    return RelationalColumn(
        column.name, table, name, name, column.type.jdbc_length, column.type.jdbc_scale, column.nullable,
        column.default_text is not None and literal is not None, default,
    )  # fmt: skip


def source_values(column: Column, values: pa.Array, exact: pa.Array | None) -> list[Any]:
    """Return values as converters get them.

    They are bool, int, float, Decimal, str, bytes, date and datetime; times of day are texts, and so are the moments
    that Python's datetime cannot hold: those of datetime2(7) and datetimeoffset, in ISO 8601.

    Args:
        column: Their column.
        values: The lake's values.
        exact: Their exact texts, where the stored value loses something.
    """
    found = values.to_pylist()
    texts: list[str | None] = exact.to_pylist() if exact is not None else [None] * len(found)
    match column.type.kind:
        case Kind.TIMESTAMP if column.type.fraction_digits > 6:
            return [
                None if value is None else f"{value.isoformat(timespec='microseconds')}{text[26:] if text else '0'}"
                for value, text in zip(found, texts, strict=True)
            ]
        case Kind.INSTANT:
            return [
                None if value is None else text.replace(" ", "T", 1).replace(" ", "") if text else value.isoformat()
                for value, text in zip(found, texts, strict=True)
            ]
        case Kind.TEXT | Kind.DOCUMENT:
            return [
                value if text is None else bytes.fromhex(text[6:]).decode("utf-16-be", "surrogatepass")
                for value, text in zip(found, texts, strict=True)
            ]
        case _:
            return found
