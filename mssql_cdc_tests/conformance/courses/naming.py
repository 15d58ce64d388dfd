"""Debezium's naming strategies of topics: with and without the schema, `Unicode`, and several tables of one topic."""

from __future__ import annotations

from mssql_cdc.config.json_forms import SIMPLE_HEADERS
from mssql_cdc_tests.conformance.workload import NO_SCHEMAS, SCHEMAS, Course, Reading, Script, captured

_STRATEGY = "topic.naming.strategy"
_TRANSACTIONS = {"provide.transaction.metadata": "true"}
_ROUTED = {
    _STRATEGY: "io.debezium.schema.SchemaRegexTopicNamingStrategy",
    "topic.regex": r"(.*)\.(?<table>part)_+\d.*",
    "topic.replacement": "$1.${table}s",
}


def _named(name: str) -> Reading:
    strategy = f"io.debezium.schema.{name}TopicNamingStrategy"
    return Reading(name=name, properties={**SCHEMAS, **_TRANSACTIONS, _STRATEGY: strategy}, features=("TOP-11",))


def _routed(name: str, **properties: str) -> Reading:
    given = {option.replace("__", "."): value for option, value in properties.items()}
    theirs = {"header.converter.class": SIMPLE_HEADERS} if "header.converter" in given else {}
    return Reading(name=name, properties={**SCHEMAS, **_ROUTED, **given}, theirs=theirs, features=("TOP-11",))


NAMING = Course(
    name="naming",
    databases=("conf_naming",),
    properties={"schema.history.internal.store.only.captured.tables.ddl": "true"},
    scripts=(
        Script(
            name="tables of one topic",
            group="topics",
            restates="ByLogicalTableRouterTest.testKeyReplacementWorkingConfigurationWithNoSchemaNameAdjustment",
            features=("TOP-11", "EVT-05"),
            tables=("dbo.part_1", "dbo.part_2", "dbo.part__3 é"),
            setup=(
                *(
                    f"CREATE TABLE dbo.[{table}] (id int NOT NULL, name nvarchar(20), n decimal(5, 2) {key})"
                    for table, key in (
                        ("part_1", ", PRIMARY KEY (id)"),
                        ("part_2", ", PRIMARY KEY (id)"),
                        ("part__3 é", ""),
                    )
                ),
                captured("part_1"),
                captured("part_2"),
                captured("part__3 é", capture_instance="N'part_3'"),
                "INSERT INTO dbo.part_1 VALUES (1, N'a', 1.5), (2, N'b', NULL)",
                "INSERT INTO dbo.part_2 VALUES (1, N'c', 2.5)",
                "INSERT INTO dbo.[part__3 é] VALUES (1, N'd', 3.5)",
            ),
            changes=(
                "INSERT INTO dbo.part_1 VALUES (3, N'e', 0)",
                "INSERT INTO dbo.part_2 VALUES (3, N'f', 0); INSERT INTO dbo.[part__3 é] VALUES (3, N'g', 0)",
                "UPDATE dbo.part_1 SET name = N'h' WHERE id = 3",
                "UPDATE dbo.part_2 SET id = 4 WHERE id = 3",
                "UPDATE dbo.[part__3 é] SET id = 4, name = N'i' WHERE id = 3",
                "DELETE FROM dbo.part_1 WHERE id = 1; DELETE FROM dbo.part_2 WHERE id = 1",
                "DELETE FROM dbo.[part__3 é] WHERE id = 1",
            ),
        ),
        Script(
            name="table that does not match",
            group="topics",
            restates="ByLogicalTableRouterTest.testBrokenKeyReplacementConfigurationNullValue",
            features=("TOP-01", "TOP-11"),
            tables=("dbo.other",),
            setup=(
                "CREATE TABLE dbo.other (id int PRIMARY KEY, name nvarchar(20))",
                captured("other"),
                "INSERT INTO dbo.other VALUES (1, N'a')",
            ),
            changes=("UPDATE dbo.other SET id = 2", "DELETE FROM dbo.other"),
        ),
    ),
    readings=(
        *(_named(name) for name in ("Default", "SchemaUnicode", "DefaultUnicode")),
        _routed("regex"),
        _routed(
            "regex without schema",
            topic__naming__strategy="io.debezium.schema.DefaultRegexTopicNamingStrategy",
            topic__key__field__name="physical-table",
            **_TRANSACTIONS,
        ),
        _routed(
            "regex of the field",
            topic__key__field__regex=r"(.*)\.part(_+)(\d)(.*)",
            topic__key__field__replacement=r"$3\$$11$4",
            message__key__columns=r"dbo\.part_.*:name,n",
            schema__name__adjustment__mode="avro",
            field__name__adjustment__mode="avro",
            topic__key__field__name="physical-table",
        ),
        _routed("regex without a field", topic__key__enforce__uniqueness="false"),
        _routed(
            "regex and shown headers",
            **{"header.converter": SIMPLE_HEADERS, "message.key.columns": r"dbo\.part_.*:id,name"},
        ),
        _routed(
            "shorter match",
            topic__regex=r"(server1|server1.*)",
            topic__replacement="$1-x",
            **NO_SCHEMAS,
        ),
    ),
)
