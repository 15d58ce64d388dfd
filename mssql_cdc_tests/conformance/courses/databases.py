"""Several databases in one connector, names with special characters, and tables that nobody captures."""

from __future__ import annotations

from mssql_cdc_tests.conformance.workload import SCHEMAS, Course, Reading, Script, captured

_TRANSACTIONS = {"provide.transaction.metadata": "true"}
_ONLY = {"schema.history.internal.store.only.captured.tables.ddl": "true"}


def _script(database: int, table: str) -> Script:
    return Script(
        name=f"{table} of database {database}",
        group="databases",
        database=database,
        tables=(f"dbo.{table}",),
        restates="SqlServerConnectorMultiPartitionModeIT.snapshotAndStreaming",
        setup=(
            f"CREATE TABLE dbo.{table} (id int PRIMARY KEY, v varchar(10))",
            captured(table),
            f"INSERT INTO dbo.{table} VALUES (1, 'a')",
        ),
        changes=(
            f"INSERT INTO dbo.{table} VALUES (2, 'b')",
            f"UPDATE dbo.{table} SET id = 3 WHERE id = 1",
            f"DELETE FROM dbo.{table}",
        ),
    )


DATABASES = Course(
    name="databases",
    databases=("conf_one", "Conf-Two x"),
    properties=_ONLY,
    is_ordered=False,
    scripts=(_script(0, "both"), _script(0, "first"), _script(1, "both"), _script(1, "second")),
    readings=(Reading(name="two databases", properties=SCHEMAS | _TRANSACTIONS),),
)
STRUCTURE = Course(
    name="structure",
    databases=("conf_structure",),
    scripts=(
        Script(
            name="captured table",
            group="schema changes",
            restates="SchemaHistoryTopicIT.snapshotSchemaChanges",
            tables=("dbo.taken",),
            setup=(
                "CREATE TABLE dbo.taken (id int PRIMARY KEY, v varchar(10))",
                captured("taken"),
                "INSERT INTO dbo.taken VALUES (1, 'a')",
            ),
            changes=("INSERT INTO dbo.taken VALUES (2, 'b')",),
        ),
        Script(
            name="table without CDC",
            group="schema changes",
            restates="SqlServerConnectorIT.shouldCaptureTableSchemaForAllTablesIncludingNonCaptured",
            tables=("dbo.plain", "other.plain"),
            expected={"*": ("structure",)},
            setup=(
                "CREATE TABLE dbo.plain (id int PRIMARY KEY, v varchar(10) DEFAULT 'x')",
                "CREATE SCHEMA other",
                "CREATE TABLE other.plain (a int, b varchar(10))",
            ),
        ),
        Script(
            name="table that is filtered",
            group="schema changes",
            restates="SqlServerConnectorIT.shouldCaptureTableSchemaForAllTablesIncludingNonCaptured",
            tables=("dbo.filtered",),
            expected={"*": ("structure",)},
            setup=("CREATE TABLE dbo.filtered (id int PRIMARY KEY, v varchar(10))", captured("filtered")),
        ),
    ),
    readings=(
        Reading(name="all tables", properties=SCHEMAS | {"table.exclude.list": r"dbo\.marker,dbo\.filtered"}),
        Reading(
            name="plain", properties={"table.exclude.list": r"dbo\.marker,dbo\.filtered"}, expected=("no-converter",)
        ),
    ),
)
