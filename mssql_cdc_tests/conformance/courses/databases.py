"""Several databases in one connector, names with special characters, and tables that nobody captures."""

from __future__ import annotations

from mssql_cdc_tests.conformance.workload import NULLS, SCHEMAS, Course, Reading, Script, captured

_TRANSACTIONS = {"provide.transaction.metadata": "true"}
_ONLY = {"schema.history.internal.store.only.captured.tables.ddl": "true"}


def _script(database: int, table: str) -> Script:
    return Script(
        name=f"{table} of database {database}",
        group="databases",
        database=database,
        tables=(f"dbo.{table}",),
        restates="SqlServerConnectorMultiPartitionModeIT.snapshotAndStreaming",
        features=("HA-03", "HA-04", "STR-22"),
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
    scripts=(
        _script(0, "both"),
        _script(0, "first"),
        _script(1, "both"),
        _script(1, "second"),
        Script(
            name="rows of a table without CDC",
            group="schema changes",
            database=1,
            restates="SqlServerConnectorIT.verifyOffsets",
            tables=("dbo.middle",),
            expected={"*": ("rows-without-cdc",)},
            setup=("CREATE TABLE dbo.middle (id int PRIMARY KEY)", "INSERT INTO dbo.middle VALUES (1), (2)"),
        ),
    ),
    readings=(
        Reading(name="two databases", properties=SCHEMAS | _TRANSACTIONS, features=("HA-02",)),
        Reading(
            name="heartbeats",
            properties=SCHEMAS | _TRANSACTIONS | {"heartbeat.interval.ms": "1"},
            features=("HB-04", "HB-05"),
        ),
    ),
)
_LISTS = {"table.exclude.list": r"dbo\.marker,dbo\.filtered"}
_SCHEMAS_DDL = {"schema.history.internal.store.only.captured.databases.ddl": "true"}
_ONLY_CAPTURED = "captured tables only"
STRUCTURE = Course(
    name="structure",
    databases=("conf_structure",),
    scripts=(
        Script(
            name="captured table",
            group="schema changes",
            features=("SCH-05", "SCH-06", "SCH-08"),
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
            features=("SNP-19", "SCH-11"),
            restates="SqlServerConnectorIT.shouldCaptureTableSchemaForAllTablesIncludingNonCaptured",
            tables=("dbo.plain", "other.plain"),
            setup=(
                "CREATE TABLE dbo.plain (id int PRIMARY KEY, v varchar(10) DEFAULT 'x')",
                "CREATE SCHEMA other",
                "CREATE TABLE other.plain (a int, b varchar(10))",
            ),
        ),
        Script(
            name="table that is filtered",
            group="schema changes",
            features=("SCH-11",),
            restates="SqlServerConnectorIT.shouldCaptureTableSchemaForAllTablesIncludingNonCaptured",
            tables=("dbo.filtered",),
            silent=(_ONLY_CAPTURED,),
            setup=(
                "CREATE TABLE dbo.filtered (id int NOT NULL PRIMARY KEY, v varchar(10), w int)",
                captured("filtered", captured_column_list="N'id, v'"),
            ),
        ),
        Script(
            name="order of tables",
            group="schema changes",
            features=("SCH-05",),
            restates="SchemaHistoryTopicIT.snapshotSchemaChanges",
            tables=("dbo.order 1", "dbo.Order2", "dbo.order3", "dbo.order_a", "dbo.orderA", "other.orders"),
            setup=(
                "CREATE TABLE dbo.order3 (id int PRIMARY KEY)",
                "CREATE TABLE other.orders (id int PRIMARY KEY)",
                "CREATE TABLE dbo.orderA (id int PRIMARY KEY)",
                captured("orderA"),
                "CREATE TABLE dbo.[order 1] (id int PRIMARY KEY)",
                "CREATE TABLE dbo.Order2 (id int PRIMARY KEY)",
                captured("Order2"),
                "CREATE TABLE dbo.order_a (id int PRIMARY KEY)",
                "INSERT INTO dbo.orderA VALUES (1)",
                "INSERT INTO dbo.Order2 VALUES (1)",
            ),
        ),
        Script(
            name="columns and keys",
            group="schema changes",
            features=("SCH-08", "SCH-12", "EVT-01"),
            restates="TablesWithoutPrimaryKeyIT.shouldProcessFromSnapshot",
            tables=("dbo.shapes", "dbo.unique_key", "dbo.swapped", "dbo.no_key"),
            setup=(
                "CREATE TYPE dbo.phone FROM varchar(20) NOT NULL",
                """CREATE TABLE dbo.shapes (id bigint IDENTITY(1, 1) PRIMARY KEY, name nvarchar(20) NOT NULL,
                price decimal(9, 2) DEFAULT 1.5, net AS price * 2, at datetime2(3), big varchar(max), raw binary(4),
                call dbo.phone, who sysname, flag bit NOT NULL DEFAULT 1, any_value sql_variant, doc xml)""",
                """CREATE TABLE dbo.unique_key (a int NOT NULL, b int NOT NULL, c int,
                CONSTRAINT z_first UNIQUE (b), CONSTRAINT a_second UNIQUE (a))""",
                "CREATE TABLE dbo.swapped (a int NOT NULL, b int NOT NULL, PRIMARY KEY (b, a))",
                "CREATE TABLE dbo.no_key (a int, A2 int)",
            ),
        ),
        Script(
            name="signal table",
            group="schema changes",
            features=("EVT-23",),
            restates="SqlServerConnectorIT.shouldOnlyCaptureTableSchemaForIncluded",
            tables=("dbo.signals",),
            setup=(
                "CREATE TABLE dbo.signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
                captured("signals"),
            ),
            changes=("INSERT INTO dbo.signals VALUES ('1', 'log', '{\"message\": \"hello\"}')",),
        ),
    ),
    readings=(
        Reading(name="all tables", properties=SCHEMAS | _LISTS),
        Reading(name="plain", properties=_LISTS, expected=("no-converter",)),
        Reading(name=_ONLY_CAPTURED, properties=SCHEMAS | _LISTS | _ONLY),
        Reading(
            name="captured schemas only", properties=SCHEMAS | _LISTS | _SCHEMAS_DDL | {"schema.include.list": "dbo"}
        ),
        Reading(
            name="signals and a list in another order",
            properties=SCHEMAS
            | {
                "table.include.list": r"dbo\.orderA,dbo\.taken,dbo\.Order2,dbo\.fence",
                "signal.data.collection": "conf_structure.dbo.signals",
            },
        ),
    ),
)

_MODE = {"snapshot.mode": "initial_only"}
ONCE = Course(
    name="once",
    databases=("conf_once",),
    properties=SCHEMAS | NULLS | _MODE,
    streams=False,
    scripts=(
        Script(
            name="captured table, once",
            group="snapshots",
            features=("SNP-03",),
            restates="SqlServerConnectorIT.shouldNotStreamWhenUsingSnapshotModeInitialOnly",
            tables=("dbo.taken_once",),
            setup=(
                "CREATE TABLE dbo.taken_once (id int PRIMARY KEY, v varchar(10))",
                captured("taken_once"),
                "INSERT INTO dbo.taken_once VALUES (1, 'a'), (2, NULL)",
            ),
        ),
        Script(
            name="table without CDC, once",
            group="snapshots",
            features=("SNP-03",),
            restates="SqlServerConnectorIT.shouldNotStreamWhenUsingSnapshotModeInitialOnly",
            tables=("dbo.plain_once",),
            setup=(
                """CREATE TABLE dbo.plain_once (id int NOT NULL PRIMARY KEY, at datetime2(7), twice AS id * 2,
                stamp rowversion, price decimal(9, 2) NOT NULL DEFAULT 1.5, doc nvarchar(max), raw varbinary(20))""",
                """INSERT INTO dbo.plain_once (id, at, doc, raw) VALUES (1, '2024-05-06 07:08:09.1234567', N'é', 0x01),
                (2, NULL, NULL, NULL)""",
                "INSERT INTO dbo.plain_once (id, price) VALUES (3, 2.25)",
            ),
        ),
        Script(
            name="table without CDC and without a key, once",
            group="snapshots",
            features=("SNP-03",),
            restates="SqlServerConnectorIT.shouldNotStreamWhenUsingSnapshotModeInitialOnly",
            tables=("dbo.heap_once",),
            setup=(
                "CREATE TABLE dbo.heap_once (a int, b varchar(10))",
                "INSERT INTO dbo.heap_once VALUES (1, 'x'), (1, 'x'), (NULL, NULL)",
            ),
        ),
    ),
    readings=(
        Reading(name="snapshot only", features=("SNP-03",)),
        Reading(name="structure of captured tables only", properties=_ONLY, features=("SNP-03", "SCH-11")),
    ),
)
"""`initial_only`, which reads tables without CDC, too."""
