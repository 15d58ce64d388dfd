"""Converters of values and headers: CloudEvents, and headers as Kafka Connect's JSON converter writes them."""

from __future__ import annotations

from dataclasses import replace

from mssql_cdc.config.json_forms import SIMPLE_HEADERS, STRINGS
from mssql_cdc_tests.conformance.courses.streaming import SCRIPTS
from mssql_cdc_tests.conformance.workload import NULLS, SCHEMAS, Course, Reading, Script, captured

_KEYS = {"key.converter.schemas.enable": "true"}
_CLOUD_EVENTS = "io.debezium.converters.CloudEventsConverter"
_TRANSACTIONS = {"provide.transaction.metadata": "true"}
_OWN_KEYS = {"message.key.columns": r"dbo\.prices:price,label"}
_SCRIPTS = {"update", "key update", "no key", "large values", "defaults", "rows that come and go"}


def _cloud_events(name: str, **options: str) -> Reading:
    """A reading with options of the converter; Debezium's engine takes its class under another name than Connect."""
    given = {f"value.converter.{option.replace('_', '.')}": value for option, value in options.items()}
    return Reading(
        name=name,
        properties={**_KEYS, **_TRANSACTIONS, **_OWN_KEYS, "value.converter": _CLOUD_EVENTS, **given},
        theirs={"value.converter.class": _CLOUD_EVENTS},
        features=("EVT-26", "DEP-02"),
    )


def _headers(name: str, **options: str) -> Reading:
    given = {f"header.converter.{option.replace('_', '.')}": value for option, value in options.items()}
    return Reading(name=name, properties={**SCHEMAS, **_OWN_KEYS, **given}, features=("DEP-02", "OL-01"))


CONVERTERS = Course(
    name="converters",
    databases=("conf_converters",),
    properties={"schema.history.internal.store.only.captured.tables.ddl": "true"},
    scripts=(
        *(replace(script, readings=(), expected={}) for script in SCRIPTS if script.name in _SCRIPTS),
        Script(
            name="key of several types",
            group="keys",
            restates="SnapshotIT.shouldOutputRecordsInCloudEventsFormat",
            features=("EVT-05", "EVT-14", "EVT-26"),
            tables=("dbo.prices",),
            setup=(
                """CREATE TABLE dbo.prices (id int PRIMARY KEY, price decimal(9, 2) DEFAULT 1.5,
                label nvarchar(20) DEFAULT 'none', at datetime2(3), ratio float, raw varbinary(4), day date)""",
                captured("prices"),
                """INSERT INTO dbo.prices VALUES
                (1, 9.99, N'a "b"', '2026-01-02T03:04:05.678', 1.5E10, 0x0102, '2026-01-02'),
                (2, NULL, NULL, NULL, NULL, NULL, NULL)""",
            ),
            changes=(
                "UPDATE dbo.prices SET price = 8.5 WHERE id = 1",
                "UPDATE dbo.prices SET label = N'ü', price = NULL WHERE id = 1",
                "UPDATE dbo.prices SET label = N'c' WHERE id = 2",
                "UPDATE dbo.prices SET label = N'\\ ' + NCHAR(10) + N'/', price = 0, ratio = 0.1 WHERE id = 1",
                "DELETE FROM dbo.prices WHERE id = 2",
            ),
        ),
    ),
    readings=(
        _cloud_events("cloud events"),
        _cloud_events("cloud events without schemas", json_schemas_enable="false"),
        _cloud_events(
            "cloud events without extensions",
            extension_attributes_enable="false",
            json_replace_null_with_default="false",
            json_decimal_format="numeric",
            metadata_source="value,id:generate,type:generate",
        ),
        _headers("headers with schemas", schemas_enable="true"),
        _headers("headers of another form", schemas_enable="false", decimal_format="NUMERIC"),
        Reading(
            name="simple headers",
            properties={
                **SCHEMAS,
                "header.converter": SIMPLE_HEADERS,
                "message.key.columns": r"dbo\.prices:price,label,ratio,raw,day",
            },
            theirs={"header.converter.class": SIMPLE_HEADERS},
            features=("DEP-02", "OL-01"),
        ),
        Reading(
            name="strings",
            properties={
                "value.converter.schemas.enable": "true",
                **_TRANSACTIONS,
                "key.converter": STRINGS,
                "header.converter": STRINGS,
                "message.key.columns": r"dbo\.prices:price,label,ratio,raw,day,at",
                "heartbeat.interval.ms": "1",
            },
            theirs={"key.converter.class": STRINGS, "header.converter.class": STRINGS},
            features=("DEP-02",),
        ),
        Reading(
            name="headers with nulls",
            properties={
                **SCHEMAS,
                **NULLS,
                **_OWN_KEYS,
                "header.converter": "org.apache.kafka.connect.json.JsonConverter",
            },
        ),
    ),
)
