"""How records look: the properties that shape what `records/` renders. None of them changes a Delta table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from mssql_cdc.config.extension_points import ExtensionSettings
from mssql_cdc.config.java_regex import java_pattern
from mssql_cdc.config.json_forms import (
    CLOUD_EVENTS,
    JSON,
    SIMPLE_HEADERS,
    STRINGS,
    CloudEventSettings,
    DecimalFormat,
    JsonForm,
)
from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.property import Effect, Group, plain, prop, regexes, section, topic_name
from mssql_cdc.config.report import Report

BinaryHandling = Literal["bytes", "base64", "base64-url-safe", "hex"]
DecimalHandling = Literal["precise", "double", "string"]
TimePrecision = Literal["adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"]
FailureHandling = Literal["fail", "warn", "skip", "ignore"]
NameAdjustment = Literal["none", "avro", "avro_unicode"]

TO_STRING = JsonForm(numeric=True, connect=True)
"""The form from which `StringConverter` makes texts: null stays null, and decimals are numbers."""
_ENTRY = re.compile(r"\s*([^\s:]+):([^:\s]+)\s*")


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """The columns of a record's key, if they are not the primary key (EVT-05).

    `entries` are pairs of (table expression, column expression), in configured order. The identity of a row in the
    lake is `_key` (correctness B12) in any case.
    """

    entries: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> RecordKeys:
        """Parse `tableRegex:column,column;tableRegex:column`.

        Raises:
            ValueError: the text has another form, or an expression is not valid.
        """
        entries: list[tuple[str, str]] = []
        for part in (raw.strip() for raw in text.split(";") if raw.strip()):
            found = _ENTRY.fullmatch(part)
            if found is None:
                raise ValueError(f"{part!r} is not of the form <table>:<column>,<column>")
            table, columns = found.groups()
            entries.extend((table, column) for column in columns.split(",") if column)
        for table, column in entries:
            java_pattern(f"(?:{table})\\.(?:{column})", ignore_case=True)
        return cls(tuple(entries))

    def columns_for(self, catalog: str, schema: str, table: str, columns: Sequence[str]) -> tuple[str, ...]:
        """The key columns among `columns`, in configured order.

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
            columns: the names of its columns.

        Returns:
            The names; empty when the primary key is the key.
        """
        found: list[str] = []
        for table_expression, column_expression in self.entries:
            expression = java_pattern(f"(?:{table_expression})\\.(?:{column_expression})", ignore_case=True)
            for column in columns:
                name = f"{schema}.{table}.{column}"
                if column not in found and (expression.fullmatch(name) or expression.fullmatch(f"{catalog}.{name}")):
                    found.append(column)
        return tuple(found)


def _record_keys(value: Any) -> Any:
    return RecordKeys.parse(value) if isinstance(value, str) else value


def _skipped(operations: frozenset[str], info: ValidationInfo) -> frozenset[str]:
    if "none" in operations and len(operations) > 1:
        raise ValueError("none cannot be combined with other operations; remove it or the others")
    if "r" in operations:
        Report.of(info).notice("skipped.operations", "r has no effect: only changes are skipped, no rows of snapshots")
    return operations - {"none", "r"}


@section(Group.RECORD)
class RecordSettings:
    """How records look. `skipped` holds op letters; empty = none."""

    tombstones: bool = prop("tombstones.on.delete", True, "EVT-12")
    """Adds a record without a value after each delete."""
    skipped: Annotated[frozenset[Literal["c", "u", "d", "t", "r", "none"]], AfterValidator(_skipped)] = prop(
        "skipped.operations", frozenset({"t"}), "FLT-13"
    )
    """Leaves these operations out of the records. The lake keeps them. `r` skips nothing, as in Debezium: snapshot rows
    are not changes."""
    skip_unchanged: bool = prop("skip.messages.without.change", False, "EVT-22")
    """Leaves out updates that change no captured column."""
    transaction_metadata: bool = prop("provide.transaction.metadata", False, "TXN-01")
    """Adds a transaction block to each record, a BEGIN and an END record to each transaction, and the table
    `_transactions` to the lake."""
    schema_changes: bool = prop("include.schema.changes", True, "SCH-05")
    """Writes the records of the schema change topic."""
    time_precision: TimePrecision = prop("time.precision.mode", "adaptive", "TYP-01", unrendered=("structured",))
    """Selects how records show dates and times."""
    decimal_handling: DecimalHandling = prop("decimal.handling.mode", "precise", "TYP-01")
    """Selects how records show decimals."""
    binary_handling: BinaryHandling = prop("binary.handling.mode", "bytes", "TYP-01")
    """Selects how records show binary values."""
    field_name_adjustment: NameAdjustment = prop("field.name.adjustment.mode", "none", "TOP-08")
    """Selects how field names are made valid for Avro."""
    sanitize_field_names: bool = prop("sanitize.field.names", False, "TOP-08", effect=Effect.TRANSLATED)
    """Is the older form of `field.name.adjustment.mode=avro`."""
    extended_headers: bool = prop("extended.headers.enabled", True, "EVT-24")
    """Adds context headers."""
    task_id: str = prop("task.id", "0", "EVT-24")
    """Sets the task that context headers name. `records --task-id` does, too."""
    queue_size: int = prop("max.queue.size", 8192, "ERR-05", group=Group.KAFKA, ge=1)
    """Limits how many records of `records --follow` wait for a slow reader. There is no other queue."""
    keys: Annotated[RecordKeys, BeforeValidator(_record_keys)] = prop("message.key.columns", RecordKeys(), "EVT-05")
    """Chooses the key columns of records: `<table>:<column>,<column>;…`. Rows keep their identity in the lake."""
    key_converter: str | None = prop(
        "key.converter", None, "DEP-01", effect=Effect.NO_RECORDS, rendered=(JSON, STRINGS), group=Group.KAFKA
    )
    """Names Kafka Connect's converter for keys. `JsonConverter` and `StringConverter` are supported; the latter writes
    texts like `Struct{id=1}` and has no options. If any property of `JsonConverter` is set, the others have Kafka
    Connect's defaults; if none is, keys are JSON without schemas."""
    key_schemas: bool | None = prop("key.converter.schemas.enable", None, "DEP-01", group=Group.KAFKA)
    """Adds the schema to each key; Kafka Connect's default is true."""
    key_nulls: bool | None = prop("key.converter.replace.null.with.default", None, "DEP-01", group=Group.KAFKA)
    """Replaces null with a column's default in each key; Kafka Connect's default is true."""
    key_decimals: DecimalFormat | None = prop("key.converter.decimal.format", None, "DEP-01", group=Group.KAFKA)
    """Selects how keys show Connect's decimals; Kafka Connect's default is BASE64."""
    value_converter: str | None = prop(
        "value.converter", None, "DEP-01", effect=Effect.NO_RECORDS, rendered=(JSON, CLOUD_EVENTS), group=Group.KAFKA
    )
    """Names Kafka Connect's converter for values, like `key.converter` for keys. Debezium's `CloudEventsConverter` is
    supported, too: it has its own options and does not read those of `JsonConverter`. `StringConverter` is not: its
    text of a whole value cannot be read back."""
    value_schemas: bool | None = prop("value.converter.schemas.enable", None, "DEP-01", group=Group.KAFKA)
    """Adds the schema to each value; Kafka Connect's default is true."""
    value_nulls: bool | None = prop("value.converter.replace.null.with.default", None, "DEP-01", group=Group.KAFKA)
    """Replaces null with a column's default in each value; Kafka Connect's default is true."""
    value_decimals: DecimalFormat | None = prop("value.converter.decimal.format", None, "DEP-01", group=Group.KAFKA)
    """Selects how values show Connect's decimals; Kafka Connect's default is BASE64."""
    cloud_events: CloudEventSettings = Field(default_factory=CloudEventSettings)
    header_converter: str | None = prop(
        "header.converter",
        None,
        "DEP-01",
        effect=Effect.NO_RECORDS,
        rendered=(JSON, SIMPLE_HEADERS, STRINGS),
        group=Group.KAFKA,
    )
    """Names Kafka Connect's converter for headers, like `key.converter` for keys. If no property of it is set, headers
    are JSON without schemas, and the keys in them look like record keys. `SimpleHeaderConverter`, Kafka Connect's
    default, writes headers, even keys, as texts; like `StringConverter`, it has no options."""
    header_schemas: bool | None = prop("header.converter.schemas.enable", None, "DEP-01", group=Group.KAFKA)
    """Adds the schema to each header; Kafka Connect's default is true."""
    header_nulls: bool | None = prop("header.converter.replace.null.with.default", None, "DEP-01", group=Group.KAFKA)
    """Replaces null with a column's default in each header; Kafka Connect's default is true."""
    header_decimals: DecimalFormat | None = prop("header.converter.decimal.format", None, "DEP-01", group=Group.KAFKA)
    """Selects how headers show Connect's decimals; Kafka Connect's default is BASE64."""
    failure_handling: FailureHandling = prop("event.processing.failure.handling.mode", "fail", "ERR-01")
    """Selects what rendering does with a change whose values cannot be converted: `fail` stops and reports its
    position; `warn` logs it and leaves it out; `skip` and `ignore` leave it out silently. Capture always stops: change
    logs and current tables never leave a change out."""
    schema_names: NameAdjustment = prop("schema.name.adjustment.mode", "none", "TOP-08")
    """Selects how schema names are made valid for Avro. Only records with schemas show them."""
    source_types: Annotated[PatternList, regexes(3)] = prop("column.propagate.source.type", PatternList(), "FLT-11")
    """Adds the source type of these columns, `schema.table.column`, to the schemas of records."""
    source_type_names: Annotated[PatternList, regexes(3)] = prop(
        "datatype.propagate.source.type", PatternList(), "FLT-12"
    )
    """Adds the source type of columns of these types, `schema.table.typeName`, to the schemas of records."""
    topic_delimiter: Annotated[str, AfterValidator(plain)] = prop("topic.delimiter", ".", "TOP-05")
    """Joins the parts of a topic name. Like the whole name, it consists of letters, digits, `.`, `_` and `-`."""
    transaction_topic: Annotated[str, AfterValidator(plain)] = prop(
        "topic.transaction", "transaction", "TOP-03", older=("transaction.topic",)
    )
    """Sets the end of the transaction topic's name."""
    heartbeat_topic_prefix: Annotated[str, AfterValidator(plain)] = prop(
        "topic.heartbeat.prefix", "__debezium-heartbeat", "TOP-04", older=("heartbeat.topics.prefix",)
    )
    """Sets the start of the heartbeat topic's name."""
    heartbeat_topic: Annotated[str, AfterValidator(topic_name)] | None = prop("topic.heartbeat.name", None, "TOP-04")
    """Sets the whole name of the heartbeat topic (newer than 3.3.1)."""
    source_maker: str = prop(
        "sourceinfo.struct.maker",
        "io.debezium.connector.sqlserver.SqlServerSourceInfoStructMaker",
        effect=Effect.NO_RECORDS,
    )
    """Names the Java class that builds the source block."""
    extensions: ExtensionSettings = Field(default_factory=ExtensionSettings)

    def propagates_type(self, catalog: str, schema: str, table: str, column: tuple[str, str]) -> bool:
        """Whether the schema of a value shows the column's source type (FLT-11, FLT-12).

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
            column: the column's name, and its type's name as Debezium's driver reports it.
        """
        return any(
            found.matches(f"{schema}.{table}.{name}") or found.matches(f"{catalog}.{schema}.{table}.{name}")
            for found, name in zip((self.source_types, self.source_type_names), column, strict=True)
        )

    @property
    def writes_string_keys(self) -> bool:
        """Whether keys are what Java's `toString` returns."""
        return self.key_converter is not None and self.key_converter.strip() == STRINGS

    @property
    def writes_string_headers(self) -> bool:
        """Whether headers are what Java's `toString` returns."""
        return self.header_converter is not None and self.header_converter.strip() == STRINGS

    @property
    def key_form(self) -> JsonForm:
        """How keys are written."""
        if self.writes_string_keys:
            return TO_STRING
        return JsonForm.of(
            converter=self.key_converter,
            schemas=self.key_schemas,
            defaults=self.key_nulls,
            decimals=self.key_decimals,
        )

    @property
    def value_form(self) -> JsonForm:
        """How values are written; with CloudEvents, their data."""
        if self.writes_cloud_events:
            return self.cloud_events.form
        return JsonForm.of(
            converter=self.value_converter,
            schemas=self.value_schemas,
            defaults=self.value_nulls,
            decimals=self.value_decimals,
        )

    @property
    def writes_cloud_events(self) -> bool:
        """Whether values are CloudEvents; then records that are not row changes have no value."""
        return self.value_converter is not None and self.value_converter.strip() == CLOUD_EVENTS

    @property
    def writes_simple_headers(self) -> bool:
        """Whether headers are texts."""
        return self.header_converter is not None and self.header_converter.strip() == SIMPLE_HEADERS

    @property
    def header_form(self) -> JsonForm:
        """How headers are written."""
        if self.writes_simple_headers:
            return JsonForm(defaults=True, numeric=True, connect=True)
        if self.writes_string_headers:
            return TO_STRING
        form = JsonForm.of(
            converter=self.header_converter,
            schemas=self.header_schemas,
            defaults=self.header_nulls,
            decimals=self.header_decimals,
        )
        return form if form.connect else replace(self.key_form, schemas=False)

    @model_validator(mode="before")
    @classmethod
    def _sanitize(cls, data: Any) -> Any:
        """`sanitize.field.names=true` means `avro`, unless the newer property is set."""
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data)
        return {"field.name.adjustment.mode": "avro"} | given if given.get("sanitize.field.names") else given

    @model_validator(mode="after")
    def _check_converters(self, info: ValidationInfo) -> RecordSettings:
        """Report the options that a converter does not read, here as in Kafka Connect."""
        report = Report.of(info)
        if self.writes_cloud_events and (self.value_schemas, self.value_nulls, self.value_decimals) != (None,) * 3:
            report.notice("value.converter", "CloudEventsConverter reads value.converter.json.… instead")
        header = (self.header_schemas, self.header_nulls, self.header_decimals)
        if (self.value_converter or "").strip() == STRINGS:
            report.notice(
                "value.converter",
                "StringConverter is for keys and headers: its text of a whole value cannot be read back",
            )
        if self.writes_simple_headers and header != (None,) * 3:
            report.notice("header.converter", "SimpleHeaderConverter has no options")
        if self.writes_string_headers and header != (None,) * 3:
            report.notice("header.converter", "StringConverter does not read the options of JsonConverter")
        if self.writes_string_keys and (self.key_schemas, self.key_nulls, self.key_decimals) != (None,) * 3:
            report.notice("key.converter", "StringConverter does not read the options of JsonConverter")
        return self
