"""How Kafka Connect's JSON converter, or Debezium's CloudEvents converter, writes keys, values and headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationInfo

from mssql_cdc.config.property import Effect, Group, prop, section
from mssql_cdc.config.report import Report

DecimalFormat = Literal["base64", "numeric"]

JSON = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
CLOUD_EVENTS = "io.debezium.converters.CloudEventsConverter"
_PREFIX = "value.converter"
_SOURCES = ("value", "id:generate", "type:generate", "traceparent:header", "dataSchemaName:generate")
_GENERATED = {"id:generate", "type:generate"}


@dataclass(frozen=True, slots=True)
class JsonForm:
    """How Kafka Connect's JSON converter writes keys, or values.

    `schemas` adds the schema. `defaults` replaces null with the default of an optional field. `numeric` writes decimals
    as numbers instead of base64. `connect` is set if any property of the converter is; otherwise there are no
    schemas, and NULL and `source.snapshot` are shown as they are, which no setting of the converter does.
    """

    schemas: bool = False
    defaults: bool = False
    numeric: bool = False
    connect: bool = False

    @property
    def values(self) -> tuple[bool, bool]:
        """What determines the texts of a column's values."""
        return self.defaults, self.numeric

    def hides(self, snapshot: str) -> bool:
        """Whether `source.snapshot` is null: Debezium leaves `false` to the schema's default."""
        return snapshot == "false" and self.connect and not self.defaults

    @classmethod
    def of(
        cls, *, converter: str | None, schemas: bool | None, defaults: bool | None, decimals: DecimalFormat | None
    ) -> JsonForm:
        """Return the form for the converter's properties; those that are not set have Kafka Connect's defaults.

        Args:
            converter: `key.converter` or `value.converter`.
            schemas: `schemas.enable`.
            defaults: `replace.null.with.default`.
            decimals: `decimal.format`.
        """
        if converter is None and schemas is None and defaults is None and decimals is None:
            return cls()
        return cls(schemas is not False, defaults is not False, decimals == "numeric", connect=True)


def _generated(sources: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """Refuse the rendering of records whose metadata comes from headers, which only transforms could add."""
    if sources[:1] != ("value",) or not set(sources) >= _GENERATED:
        Report.of(info).refuse_records(f"{_PREFIX}.metadata.source={','.join(sources)}")
        return _SOURCES
    return sources


@section(Group.KAFKA)
class CloudEventSettings:
    """The options of `value.converter=io.debezium.converters.CloudEventsConverter`."""

    serializer: Literal["json"] = prop(f"{_PREFIX}.serializer.type", "json", "EVT-26", unrendered=("avro",))
    """Selects how CloudEvents are serialized."""
    data_serializer: Literal["json"] = prop(f"{_PREFIX}.data.serializer.type", "json", "EVT-26", unrendered=("avro",))
    """Selects how the data of CloudEvents is serialized."""
    schemas: bool = prop(f"{_PREFIX}.json.schemas.enable", True, "EVT-26")
    """Adds the schema to the data of each CloudEvent."""
    nulls: bool = prop(f"{_PREFIX}.json.replace.null.with.default", True, "EVT-26")
    """Replaces null with a column's default in the data of CloudEvents."""
    decimals: DecimalFormat = prop(f"{_PREFIX}.json.decimal.format", "base64", "EVT-26")
    """Selects how the data of CloudEvents shows Connect's decimals."""
    extensions: bool = prop(f"{_PREFIX}.extension.attributes.enable", True, "EVT-26")
    """Adds the operation, the source block and the transaction block as attributes."""
    sources: Annotated[tuple[str, ...], AfterValidator(_generated)] = prop(
        f"{_PREFIX}.metadata.source", _SOURCES, "EVT-26"
    )
    """Selects where attributes come from. Records are rendered only with metadata from values, generated ids and
    types."""
    data_name_in_header: bool = prop(
        f"{_PREFIX}.schema.data.name.source.header.enable", False, "EVT-26", effect=Effect.NO_RECORDS
    )
    """Takes the name of the data's schema from a header."""
    tracing: bool = prop(
        f"{_PREFIX}.opentelemetry.tracing.attributes.enable", False, "EVT-26 OL-01", effect=Effect.NO_RECORDS
    )
    """Adds the attribute `traceparent` from a header."""

    @property
    def form(self) -> JsonForm:
        """How the data is written."""
        return JsonForm(self.schemas, self.nulls, self.decimals == "numeric", connect=True)
