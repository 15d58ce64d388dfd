"""Schemas that change while Debezium streams: second capture instances, new and dropped tables."""

from __future__ import annotations

from mssql_cdc_tests.conformance.workload import READ, RESTART, SCHEMAS, WAIT, Course, Reading, Script, Step, captured

READINGS = (
    Reading(
        name="live",
        properties=SCHEMAS | {"provide.transaction.metadata": "true"},
        is_live=True,
        expected=("schema-change-position",),
    ),
    Reading(
        name="direct",
        properties=SCHEMAS | {"data.query.mode": "direct"},
        is_live=True,
        expected=("schema-change-position",),
    ),
)


def second_instance(table: str) -> tuple[Step, ...]:
    """A second capture instance; the capture job must see it before the next rows.

    `READ` stands before it: of instances that begin in one poll, Debezium tells late (`simultaneous-changes`).
    """
    return captured(table, capture_instance=f"N'dbo_{table}_v2'"), WAIT


def one_table(
    name: str,
    table: str,
    *,
    test: str,
    columns: str,
    setup: str,
    changes: tuple[Step, ...],
    features: tuple[str, ...] = (),
) -> Script:
    return Script(
        name=name,
        group="schema evolution",
        features=features,
        restates=f"SqlServerChangeTableSetIT.{test}",
        tables=(f"dbo.{table}",),
        setup=(f"CREATE TABLE dbo.{table} ({columns})", captured(table), setup),
        changes=changes,
    )


TABLE = "id int PRIMARY KEY, a varchar(10), b int"
SCRIPTS = (
    one_table(
        "add column",
        "ev_add",
        test="addColumnToTableEndOfBatchWithoutLsnLimit",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_add VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_add VALUES (2, 'b', 2)",
            "ALTER TABLE dbo.ev_add ADD c varchar(20) DEFAULT 'new'",
            "INSERT INTO dbo.ev_add (id, a, c) VALUES (3, 'c', 'hidden')",
            *second_instance("ev_add"),
            "INSERT INTO dbo.ev_add (id, a, c) VALUES (4, 'd', 'seen')",
            "UPDATE dbo.ev_add SET c = 'x' WHERE id = 1",
        ),
    ),
    one_table(
        "add column in a batch",
        "ev_batch",
        test="addColumnToTableMiddleOfBatchWithoutLsnLimit",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_batch VALUES (1, 'a', 1)",
        changes=(
            READ,
            *(f"INSERT INTO dbo.ev_batch VALUES ({i}, 'b', 2)" for i in range(10, 16)),
            "ALTER TABLE dbo.ev_batch ADD c int NOT NULL DEFAULT 3",
            captured("ev_batch", capture_instance="N'dbo_ev_batch_v2'"),
            *(f"INSERT INTO dbo.ev_batch VALUES ({i}, 'b', 2, {i})" for i in range(20, 26)),
            READ,
        ),
    ),
    one_table(
        "remove column",
        "ev_drop",
        test="removeColumnFromTable",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_drop VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_drop VALUES (2, 'b', 2)",
            "ALTER TABLE dbo.ev_drop DROP COLUMN b",
            *second_instance("ev_drop"),
            "INSERT INTO dbo.ev_drop VALUES (3, 'c')",
            "DELETE FROM dbo.ev_drop WHERE id = 1",
        ),
    ),
    one_table(
        "remove column, same instance",
        "ev_gone",
        test="removeColumnFromTableWithoutChangingCapture",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_gone VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_gone VALUES (2, 'b', 2)",
            WAIT,
            "ALTER TABLE dbo.ev_gone DROP COLUMN b",
            "INSERT INTO dbo.ev_gone VALUES (3, 'c')",
            "UPDATE dbo.ev_gone SET a = 'd' WHERE id = 1",
        ),
    ),
    one_table(
        "change type",
        "ev_type",
        test="changeColumn",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_type VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_type VALUES (2, 'b', 2)",
            READ,
            "ALTER TABLE dbo.ev_type ALTER COLUMN b bigint",
            *second_instance("ev_type"),
            "INSERT INTO dbo.ev_type VALUES (3, 'c', 99999999999)",
        ),
    ),
    one_table(
        "type that Delta cannot widen to",
        "ev_other_type",
        test="changeColumn",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_other_type VALUES (1, 'a', 1)",
        features=("EVO-03",),
        changes=(
            "INSERT INTO dbo.ev_other_type VALUES (2, 'b', 2)",
            READ,
            "ALTER TABLE dbo.ev_other_type ALTER COLUMN b varchar(20)",
            *second_instance("ev_other_type"),
            "INSERT INTO dbo.ev_other_type VALUES (3, 'c', 'three')",
            "UPDATE dbo.ev_other_type SET b = 'two' WHERE id = 2",
            "UPDATE dbo.ev_other_type SET a = 'A' WHERE id = 1",
            "DELETE FROM dbo.ev_other_type WHERE id = 1",
        ),
    ),
    one_table(
        "column dropped and added with another type",
        "ev_added_again",
        test="removeColumnFromTable",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_added_again VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_added_again VALUES (2, 'b', 2)",
            READ,
            "ALTER TABLE dbo.ev_added_again DROP COLUMN b",
            "ALTER TABLE dbo.ev_added_again ADD b decimal(9, 2)",
            *second_instance("ev_added_again"),
            "INSERT INTO dbo.ev_added_again VALUES (3, 'c', 3.25)",
            "UPDATE dbo.ev_added_again SET b = 2.5 WHERE id = 2",
            "DELETE FROM dbo.ev_added_again WHERE id = 1",
        ),
    ),
    one_table(
        "add default",
        "ev_default",
        test="addDefaultValue",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_default VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_default VALUES (2, 'b', 2)",
            READ,
            "ALTER TABLE dbo.ev_default ADD CONSTRAINT df_b DEFAULT 9 FOR b",
            *second_instance("ev_default"),
            "INSERT INTO dbo.ev_default (id) VALUES (3)",
            "INSERT INTO dbo.ev_default VALUES (4, NULL, NULL)",
        ),
    ),
    one_table(
        "alter default",
        "ev_default2",
        test="alterDefaultValue",
        columns="id int PRIMARY KEY, b int CONSTRAINT df_b2 DEFAULT 1",
        setup="INSERT INTO dbo.ev_default2 VALUES (1, 1)",
        changes=(
            READ,
            "ALTER TABLE dbo.ev_default2 DROP CONSTRAINT df_b2",
            "ALTER TABLE dbo.ev_default2 ADD CONSTRAINT df_b3 DEFAULT 2 FOR b",
            *second_instance("ev_default2"),
            "INSERT INTO dbo.ev_default2 (id) VALUES (3)",
            "INSERT INTO dbo.ev_default2 VALUES (4, NULL)",
        ),
    ),
    one_table(
        "longer text",
        "ev_longer",
        test="changeColumn",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_longer VALUES (1, 'a', 1)",
        changes=(
            READ,
            "ALTER TABLE dbo.ev_longer ALTER COLUMN a varchar(50)",
            *second_instance("ev_longer"),
            "INSERT INTO dbo.ev_longer VALUES (3, REPLICATE('x', 50), 3)",
        ),
    ),
    one_table(
        "nullability",
        "ev_nulls",
        test="changeColumn",
        columns="id int PRIMARY KEY, a varchar(10), b int NOT NULL",
        setup="INSERT INTO dbo.ev_nulls VALUES (1, 'a', 1)",
        features=("EVO-07",),
        changes=(
            "INSERT INTO dbo.ev_nulls VALUES (2, 'b', 2)",
            READ,
            "ALTER TABLE dbo.ev_nulls ALTER COLUMN a varchar(10) NOT NULL",
            "ALTER TABLE dbo.ev_nulls ALTER COLUMN b int NULL",
            "INSERT INTO dbo.ev_nulls VALUES (3, 'c', 3)",
            *second_instance("ev_nulls"),
            "INSERT INTO dbo.ev_nulls VALUES (4, 'd', NULL)",
        ),
    ),
    one_table(
        "second instance that changes nothing",
        "ev_same",
        test="readHistoryAfterRestart",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_same VALUES (1, 'a', 1)",
        features=("SCH-10",),
        changes=(
            "INSERT INTO dbo.ev_same VALUES (2, 'b', 2)",
            READ,
            *second_instance("ev_same"),
            "INSERT INTO dbo.ev_same VALUES (3, 'c', 3)",
            "UPDATE dbo.ev_same SET b = 4 WHERE id = 1",
        ),
    ),
    one_table(
        "rows all the while",
        "ev_parallel",
        test="addColumnToTableWithParallelWrites",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_parallel VALUES (1, 'a', 1)",
        changes=(
            READ,
            *(f"INSERT INTO dbo.ev_parallel (id, a) VALUES ({i}, 'b')" for i in range(10, 30)),
            "ALTER TABLE dbo.ev_parallel ADD c int DEFAULT 7",
            *(f"INSERT INTO dbo.ev_parallel (id, a) VALUES ({i}, 'b')" for i in range(30, 50)),
            captured("ev_parallel", capture_instance="N'dbo_ev_parallel_v2'"),
            *(f"INSERT INTO dbo.ev_parallel (id, a) VALUES ({i}, 'b')" for i in range(50, 70)),
            READ,
        ),
    ),
    one_table(
        "start again behind a change",
        "ev_again",
        test="readHistoryAfterRestart",
        columns=TABLE,
        setup="INSERT INTO dbo.ev_again VALUES (1, 'a', 1)",
        changes=(
            "ALTER TABLE dbo.ev_again ADD c int",
            *second_instance("ev_again"),
            "INSERT INTO dbo.ev_again VALUES (2, 'b', 2, 2)",
            RESTART,
            "INSERT INTO dbo.ev_again VALUES (3, 'c', 3, 3)",
            "UPDATE dbo.ev_again SET c = 1 WHERE id = 1",
        ),
    ),
    Script(
        name="table no longer captured",
        group="schema evolution",
        restates="SqlServerChangeTableSetIT.removeTable",
        tables=("dbo.ev_removed",),
        setup=(
            "CREATE TABLE dbo.ev_removed (id int PRIMARY KEY, v varchar(10))",
            captured("ev_removed"),
            "INSERT INTO dbo.ev_removed VALUES (1, 'a')",
        ),
        changes=("UPDATE dbo.ev_removed SET v = 'b'", WAIT),
    ),
)
EVOLUTION = Course(
    name="evolution",
    databases=("conf_evolution",),
    scripts=SCRIPTS,
    readings=READINGS,
    properties={"schema.history.internal.store.only.captured.tables.ddl": "true"},
)
