"""Tables that are new, renamed or captured anew while Debezium streams, and values that it cannot convert."""

from __future__ import annotations

from dataclasses import replace

from mssql_cdc_tests.conformance.courses.evolution import EVOLUTION, READINGS, TABLE, one_table, second_instance
from mssql_cdc_tests.conformance.workload import READ, RESTART, SCHEMAS, Course, Script, captured

LOST = 4
"""How this connector ends if a table lost changes; it goes on with the others."""
# Without rows, no record ends the snapshot: a heartbeat does.
_NO_DATA = replace(
    READINGS[0],
    name="no data",
    properties={**READINGS[0].properties, "snapshot.mode": "no_data"},
    theirs={"heartbeat.interval.ms": "3600000"},
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
            *(f"CREATE TABLE dbo.{table} ({TABLE})" for table in both),
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
                f"CREATE TABLE dbo.ev_column ({TABLE})",
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
                *second_instance("ev_column"),
                "INSERT INTO dbo.ev_column VALUES (3, 'c', 3)",
                "UPDATE dbo.ev_column SET renamed = 'A' WHERE id = 1",
            ),
        ),
        one_table(
            "table beside it",
            "ev_beside",
            test="removeTable",
            columns=TABLE,
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
        one_table(
            "table beside a failing one",
            "fa_beside",
            test="removeTable",
            columns=TABLE,
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
