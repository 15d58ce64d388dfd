"""Schemas that change while Debezium streams: second capture instances, new and dropped tables."""

from __future__ import annotations

from dataclasses import replace

from mssql_cdc_tests.conformance.workload import READ, RESTART, SCHEMAS, WAIT, Course, Reading, Script, Step, captured

LOST = 4
"""How this connector ends if a table lost changes; it goes on with the others."""
_LIVE = {"provide.transaction.metadata": "true"}
READINGS = (
    Reading(
        name="live",
        properties=SCHEMAS | _LIVE,
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


# Without rows, no record ends the snapshot: a heartbeat does.
_NO_DATA = replace(
    READINGS[0],
    name="no data",
    properties=READINGS[0].properties | {"snapshot.mode": "no_data"},
    theirs={"heartbeat.interval.ms": "3600000"},
)


def _second(table: str) -> tuple[Step, ...]:
    """A second capture instance; the capture job must see it before the next rows."""
    return captured(table, capture_instance=f"N'dbo_{table}_v2'"), WAIT


def _script(
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


_TABLE = "id int PRIMARY KEY, a varchar(10), b int"
SCRIPTS = (
    _script(
        "add column",
        "ev_add",
        test="addColumnToTableEndOfBatchWithoutLsnLimit",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_add VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_add VALUES (2, 'b', 2)",
            "ALTER TABLE dbo.ev_add ADD c varchar(20) DEFAULT 'new'",
            "INSERT INTO dbo.ev_add (id, a, c) VALUES (3, 'c', 'hidden')",
            *_second("ev_add"),
            "INSERT INTO dbo.ev_add (id, a, c) VALUES (4, 'd', 'seen')",
            "UPDATE dbo.ev_add SET c = 'x' WHERE id = 1",
        ),
    ),
    _script(
        "add column in a batch",
        "ev_batch",
        test="addColumnToTableMiddleOfBatchWithoutLsnLimit",
        columns=_TABLE,
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
    _script(
        "remove column",
        "ev_drop",
        test="removeColumnFromTable",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_drop VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_drop VALUES (2, 'b', 2)",
            "ALTER TABLE dbo.ev_drop DROP COLUMN b",
            *_second("ev_drop"),
            "INSERT INTO dbo.ev_drop VALUES (3, 'c')",
            "DELETE FROM dbo.ev_drop WHERE id = 1",
        ),
    ),
    _script(
        "remove column, same instance",
        "ev_gone",
        test="removeColumnFromTableWithoutChangingCapture",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_gone VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_gone VALUES (2, 'b', 2)",
            WAIT,
            "ALTER TABLE dbo.ev_gone DROP COLUMN b",
            "INSERT INTO dbo.ev_gone VALUES (3, 'c')",
            "UPDATE dbo.ev_gone SET a = 'd' WHERE id = 1",
        ),
    ),
    _script(
        "change type",
        "ev_type",
        test="changeColumn",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_type VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_type VALUES (2, 'b', 2)",
            READ,
            "ALTER TABLE dbo.ev_type ALTER COLUMN b bigint",
            *_second("ev_type"),
            "INSERT INTO dbo.ev_type VALUES (3, 'c', 99999999999)",
        ),
    ),
    _script(
        "type that Delta cannot widen to",
        "ev_other_type",
        test="changeColumn",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_other_type VALUES (1, 'a', 1)",
        features=("EVO-03",),
        changes=(
            "INSERT INTO dbo.ev_other_type VALUES (2, 'b', 2)",
            READ,
            "ALTER TABLE dbo.ev_other_type ALTER COLUMN b varchar(20)",
            *_second("ev_other_type"),
            "INSERT INTO dbo.ev_other_type VALUES (3, 'c', 'three')",
            "UPDATE dbo.ev_other_type SET b = 'two' WHERE id = 2",
            "UPDATE dbo.ev_other_type SET a = 'A' WHERE id = 1",
            "DELETE FROM dbo.ev_other_type WHERE id = 1",
        ),
    ),
    _script(
        "column dropped and added with another type",
        "ev_added_again",
        test="removeColumnFromTable",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_added_again VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_added_again VALUES (2, 'b', 2)",
            READ,
            "ALTER TABLE dbo.ev_added_again DROP COLUMN b",
            "ALTER TABLE dbo.ev_added_again ADD b decimal(9, 2)",
            *_second("ev_added_again"),
            "INSERT INTO dbo.ev_added_again VALUES (3, 'c', 3.25)",
            "UPDATE dbo.ev_added_again SET b = 2.5 WHERE id = 2",
            "DELETE FROM dbo.ev_added_again WHERE id = 1",
        ),
    ),
    _script(
        "add default",
        "ev_default",
        test="addDefaultValue",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_default VALUES (1, 'a', 1)",
        changes=(
            "INSERT INTO dbo.ev_default VALUES (2, 'b', 2)",
            "ALTER TABLE dbo.ev_default ADD CONSTRAINT df_b DEFAULT 9 FOR b",
            *_second("ev_default"),
            "INSERT INTO dbo.ev_default (id) VALUES (3)",
            "INSERT INTO dbo.ev_default VALUES (4, NULL, NULL)",
        ),
    ),
    _script(
        "alter default",
        "ev_default2",
        test="alterDefaultValue",
        columns="id int PRIMARY KEY, b int CONSTRAINT df_b2 DEFAULT 1",
        setup="INSERT INTO dbo.ev_default2 VALUES (1, 1)",
        changes=(
            "ALTER TABLE dbo.ev_default2 DROP CONSTRAINT df_b2",
            "ALTER TABLE dbo.ev_default2 ADD CONSTRAINT df_b3 DEFAULT 2 FOR b",
            *_second("ev_default2"),
            "INSERT INTO dbo.ev_default2 (id) VALUES (3)",
            "INSERT INTO dbo.ev_default2 VALUES (4, NULL)",
        ),
    ),
    _script(
        "longer text",
        "ev_longer",
        test="changeColumn",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_longer VALUES (1, 'a', 1)",
        changes=(
            "ALTER TABLE dbo.ev_longer ALTER COLUMN a varchar(50)",
            *_second("ev_longer"),
            "INSERT INTO dbo.ev_longer VALUES (3, REPLICATE('x', 50), 3)",
        ),
    ),
    _script(
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
            *_second("ev_nulls"),
            "INSERT INTO dbo.ev_nulls VALUES (4, 'd', NULL)",
        ),
    ),
    _script(
        "second instance that changes nothing",
        "ev_same",
        test="readHistoryAfterRestart",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_same VALUES (1, 'a', 1)",
        features=("SCH-10",),
        changes=(
            "INSERT INTO dbo.ev_same VALUES (2, 'b', 2)",
            READ,
            *_second("ev_same"),
            "INSERT INTO dbo.ev_same VALUES (3, 'c', 3)",
            "UPDATE dbo.ev_same SET b = 4 WHERE id = 1",
        ),
    ),
    _script(
        "rows all the while",
        "ev_parallel",
        test="addColumnToTableWithParallelWrites",
        columns=_TABLE,
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
    _script(
        "start again behind a change",
        "ev_again",
        test="readHistoryAfterRestart",
        columns=_TABLE,
        setup="INSERT INTO dbo.ev_again VALUES (1, 'a', 1)",
        changes=(
            "ALTER TABLE dbo.ev_again ADD c int",
            *_second("ev_again"),
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


_AT_ONCE = {"ev_first": {"*": ("simultaneous-changes",)}}
"""Debezium takes the second table first: an accident of how Java hashes names."""


def _at_once(first: str, second: str) -> Script:
    """Two tables get their second instances in one scan of the log, the first table's earlier."""
    both = (first, second)
    return Script(
        name=f"{first} before {second}",
        group="schema evolution",
        restates="SqlServerChangeTableSetIT.addColumnToTableMiddleOfBatchWithLsnLimit",
        tables=tuple(f"dbo.{table}" for table in both),
        expected=_AT_ONCE.get(first, {}),
        setup=(
            *(f"CREATE TABLE dbo.{table} ({_TABLE})" for table in both),
            *map(captured, both),
            *(f"INSERT INTO dbo.{table} VALUES (1, 'a', 1)" for table in both),
        ),
        changes=(
            *(f"INSERT INTO dbo.{table} VALUES (2, 'b', 2)" for table in both),
            READ,
            "EXEC sys.sp_cdc_stop_job @job_type = N'capture'",
            *(f"ALTER TABLE dbo.{table} ADD c int" for table in both),
            captured(first, capture_instance=f"N'dbo_{first}_v2'"),
            f"INSERT INTO dbo.{first} VALUES (3, 'c', 3, 3)",
            captured(second, capture_instance=f"N'dbo_{second}_v2'"),
            *(f"INSERT INTO dbo.{table} VALUES (4, 'd', 4, 4)" for table in both),
            "BEGIN TRAN " + " ".join(f"UPDATE dbo.{table} SET c = 9" for table in both) + " COMMIT",
            "EXEC sys.sp_cdc_start_job @job_type = N'capture'",
            READ,
        ),
    )


MOVED = Course(
    name="moved",
    databases=("conf_moved",),
    scripts=(
        Script(
            name="table captured while Debezium streams",
            group="schema evolution",
            restates="SqlServerChangeTableSetIT.addTable",
            tables=("dbo.ev_new",),
            expected={"live": ("new-table",), "direct": ("new-table",)},
            setup=(),
            changes=(
                "CREATE TABLE dbo.ev_new (id int PRIMARY KEY, v varchar(10))",
                "INSERT INTO dbo.ev_new VALUES (1, 'a'), (2, 'b')",
                captured("ev_new"),
                READ,
                "UPDATE dbo.ev_new SET v = 'c'",
                "INSERT INTO dbo.ev_new VALUES (3, 'd')",
                "DELETE FROM dbo.ev_new WHERE id = 2",
            ),
        ),
        Script(
            name="renamed table",
            group="schema evolution",
            restates="SqlServerConnectorIT.shouldStreamToOldTableAfterRename",
            tables=("dbo.ev_name", "dbo.ev_other_name"),
            expected={"*": ("renamed-table",)},
            setup=(
                "CREATE TABLE dbo.ev_name (id int PRIMARY KEY, v varchar(10))",
                captured("ev_name"),
                "INSERT INTO dbo.ev_name VALUES (1, 'a')",
            ),
            changes=(
                "INSERT INTO dbo.ev_name VALUES (2, 'b')",
                READ,
                "EXEC sp_rename 'dbo.ev_name', 'ev_other_name'",
                "INSERT INTO dbo.ev_other_name VALUES (3, 'c')",
                "UPDATE dbo.ev_other_name SET v = 'd' WHERE id = 1",
                RESTART,
                "INSERT INTO dbo.ev_other_name VALUES (4, 'e')",
            ),
        ),
        _at_once("ev_first", "ev_second"),
        _at_once("ev_a", "ev_b"),
    ),
    readings=(*READINGS, _NO_DATA),
    properties=EVOLUTION.properties,
    is_ordered=False,
)
"""Tables that are new or renamed, and several second instances at once."""
DROPPED = Course(
    name="dropped instance",
    databases=("conf_dropped",),
    scripts=(
        Script(
            name="renamed column",
            group="schema evolution",
            restates="SqlServerChangeTableSetIT.renameColumn",
            tables=("dbo.ev_column",),
            setup=(
                f"CREATE TABLE dbo.ev_column ({_TABLE})",
                captured("ev_column"),
                "INSERT INTO dbo.ev_column VALUES (1, 'a', 1)",
            ),
            expected={"*": ("dropped-instance",)},
            changes=(
                "INSERT INTO dbo.ev_column VALUES (2, 'b', 2)",
                READ,
                """EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'ev_column',
                @capture_instance = N'dbo_ev_column'""",
                "EXEC sp_rename 'dbo.ev_column.a', 'renamed', 'COLUMN'",
                *_second("ev_column"),
                "INSERT INTO dbo.ev_column VALUES (3, 'c', 3)",
                "UPDATE dbo.ev_column SET renamed = 'A' WHERE id = 1",
            ),
        ),
        _script(
            "table beside it",
            "ev_beside",
            test="removeTable",
            columns=_TABLE,
            setup="INSERT INTO dbo.ev_beside VALUES (1, 'a', 1)",
            changes=("UPDATE dbo.ev_beside SET a = 'b'",),
        ),
    ),
    readings=READINGS,
    properties=EVOLUTION.properties,
    is_ordered=False,
    ours_ends_with=LOST,
)
"""A captured column can be renamed only where nobody captures it: between two capture instances is a gap."""
_CHANGED_TYPE = {"*": ("failed-conversion",)}
FAILING = Course(
    name="failing values",
    databases=("conf_failing",),
    scripts=(
        Script(
            name="type that changes under the instance",
            group="failures",
            restates="EventProcessingFailureHandlingIT.warn",
            tables=("dbo.fa_changed",),
            expected=_CHANGED_TYPE,
            setup=(
                "CREATE TABLE dbo.fa_changed (id int PRIMARY KEY, v bigint NOT NULL)",
                captured("fa_changed"),
                "INSERT INTO dbo.fa_changed VALUES (1, 1)",
            ),
            changes=(
                "INSERT INTO dbo.fa_changed VALUES (2, 2)",
                READ,
                "ALTER TABLE dbo.fa_changed ALTER COLUMN v varchar(30)",
                "INSERT INTO dbo.fa_changed VALUES (3, '3')",
                "INSERT INTO dbo.fa_changed VALUES (4, 'b')",
                "UPDATE dbo.fa_changed SET v = 'c' WHERE id = 1",
                "UPDATE dbo.fa_changed SET v = '5' WHERE id = 3",
            ),
        ),
        Script(
            name="nullable type that changes under the instance",
            group="failures",
            restates="EventProcessingFailureHandlingIT.ignore",
            tables=("dbo.fa_null",),
            expected=_CHANGED_TYPE,
            setup=(
                "CREATE TABLE dbo.fa_null (id int PRIMARY KEY, v int NULL)",
                captured("fa_null"),
                "INSERT INTO dbo.fa_null VALUES (1, 1)",
            ),
            changes=(
                "ALTER TABLE dbo.fa_null ALTER COLUMN v varchar(30)",
                "INSERT INTO dbo.fa_null VALUES (4, 'b')",
            ),
        ),
        _script(
            "table beside a failing one",
            "fa_beside",
            test="removeTable",
            columns=_TABLE,
            setup="INSERT INTO dbo.fa_beside VALUES (1, 'a', 1)",
            changes=("UPDATE dbo.fa_beside SET a = 'b'",),
        ),
    ),
    is_ordered=False,
    readings=tuple(
        replace(
            READINGS[0], name=mode, expected=(), properties=SCHEMAS | {"event.processing.failure.handling.mode": mode}
        )
        for mode in ("warn", "skip")
    ),
    properties=EVOLUTION.properties,
)
"""Values that Debezium cannot convert: the column's type changes, and it goes on with the one that it knows."""
