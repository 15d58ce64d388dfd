"""Types and marks of what change data capture leaves in the catalogue, and what its functions and reports show."""

from __future__ import annotations

import pytest

from tests.cdc.client import World
from tests.cdc.rules import CAPTURE, ENABLE_DB, TRACKED, Rule, T, check, enable

TYPES = (
    "SELECT c.name, TYPE_NAME(c.user_type_id), c.max_length, c.is_nullable FROM {0}sys.columns c "
    "WHERE c.object_id = OBJECT_ID('{1}') ORDER BY c.column_id"
)
RESULT = (
    "SELECT name, system_type_name, is_nullable FROM sys.dm_exec_describe_first_result_set(N'{}', NULL, 0) "
    "ORDER BY column_ordinal"
)
CALL = "SELECT * FROM cdc.fn_cdc_get_{}_changes_dbo_t(0x01, 0x02, N''all'')"
INSTANCE = "SELECT capture_instance, supports_net_changes, index_name FROM cdc.change_tables"

HELP_TABLE = (
    "CREATE TABLE #h (source_schema sysname, source_table sysname, capture_instance sysname, object_id int, "
    "source_object_id int, start_lsn binary(10), end_lsn binary(10), net bit, pending bit, role sysname NULL, "
    "index_name sysname NULL, filegroup sysname NULL, create_date datetime, index_columns nvarchar(max), "
    "captured nvarchar(max))"
)

RULES = {
    "[doc][sys] change_tables": Rule(
        (ENABLE_DB,),
        TYPES.format("", "cdc.change_tables"),
        [
            ("object_id", "int", 4, 0), ("version", "int", 4, 1), ("source_object_id", "int", 4, 1),
            ("capture_instance", "sysname", 256, 0), ("start_lsn", "binary", 10, 1), ("end_lsn", "binary", 10, 1),
            ("supports_net_changes", "bit", 1, 1), ("has_drop_pending", "bit", 1, 1), ("role_name", "sysname", 256, 1),
            ("index_name", "sysname", 256, 1), ("filegroup_name", "sysname", 256, 1), ("create_date", "datetime", 8, 1),
            ("partition_switch", "bit", 1, 0),
        ],
    ),
    "[doc][sys] captured_columns": Rule(
        (ENABLE_DB,),
        TYPES.format("", "cdc.captured_columns"),
        [
            ("object_id", "int", 4, 0), ("column_name", "sysname", 256, 0), ("column_id", "int", 4, 1),
            ("column_type", "sysname", 256, 0), ("column_ordinal", "int", 4, 0), ("is_computed", "bit", 1, 1),
            ("masking_function", "nvarchar", 8000, 1),
        ],
    ),
    "[doc][sys] index_columns": Rule(
        (ENABLE_DB,),
        TYPES.format("", "cdc.index_columns"),
        [
            ("object_id", "int", 4, 0), ("column_name", "sysname", 256, 0), ("index_ordinal", "tinyint", 1, 0),
            ("column_id", "int", 4, 0),
        ],
    ),
    "[doc][sys] ddl_history": Rule(
        (ENABLE_DB,),
        TYPES.format("", "cdc.ddl_history"),
        [
            ("source_object_id", "int", 4, 1), ("object_id", "int", 4, 0), ("required_column_update", "bit", 1, 1),
            ("ddl_command", "nvarchar", -1, 1), ("ddl_lsn", "binary", 10, 0), ("ddl_time", "datetime", 8, 1),
        ],
    ),
    "[sys] systranschemas": Rule(
        (ENABLE_DB,),
        TYPES.format("", "dbo.systranschemas"),
        [("tabid", "int", 4, 0), ("startlsn", "binary", 10, 0), ("endlsn", "binary", 10, 0), ("typeid", "int", 4, 0)],
    ),
    "[doc][pub] the job table": Rule(
        TRACKED,
        TYPES.format("msdb.", "msdb.dbo.cdc_jobs"),
        [
            ("database_id", "int", 4, 0), ("job_type", "nvarchar", 40, 0), ("job_id", "uniqueidentifier", 16, 1),
            ("maxtrans", "int", 4, 1), ("maxscans", "int", 4, 1), ("continuous", "bit", 1, 1),
            ("pollinginterval", "bigint", 8, 1), ("retention", "bigint", 8, 1), ("threshold", "bigint", 8, 1),
        ],
    ),
    "[sys] the index of net changes carries the mask": Rule(
        TRACKED,
        "SELECT i.name, COL_NAME(x.object_id, x.column_id) FROM sys.indexes i JOIN sys.index_columns x "
        "ON x.object_id = i.object_id AND x.index_id = i.index_id WHERE i.object_id = OBJECT_ID('cdc.dbo_t_CT') "
        "AND x.is_included_column = 1",
        [("dbo_t_CT_idx", "__$update_mask")],
    ),
    "[fab] captured columns are marked, others not": Rule(
        (T, ENABLE_DB, enable(captured_column_list="N'id, b'")),
        "SELECT name, is_replicated FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t') ORDER BY column_id",
        [("id", 1), ("a", 0), ("b", 1)],
    ),
    "[fab] a column that is not captured may get another name": Rule(
        (
            T,
            ENABLE_DB,
            enable(captured_column_list="N'id, b'"),
            "EXEC sp_rename 'dbo.t.a', 'c', 'COLUMN'",
            "INSERT t VALUES (1, 2, 3)",
            CAPTURE,
        ),
        "SELECT id, b FROM cdc.dbo_t_CT",
        [(1, 3)],
    ),
    "[doc] marks go with the last instance": Rule(
        (*TRACKED, "EXEC sys.sp_cdc_disable_table N'dbo', N't', N'all'"),
        "SELECT SUM(CAST(is_replicated AS int)) FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t')",
        [(0,)],
    ),
    "[doc] all changes: columns": Rule(
        TRACKED,
        RESULT.format(CALL.format("all")),
        [
            ("__$start_lsn", "binary(10)", 0), ("__$seqval", "binary(10)", 0), ("__$operation", "int", 0),
            ("__$update_mask", "varbinary(128)", 1), ("id", "int", 1), ("a", "int", 1), ("b", "int", 1),
        ],
    ),
    "[doc] net changes: columns": Rule(
        TRACKED,
        "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('cdc.fn_cdc_get_net_changes_dbo_t') "
        "ORDER BY column_id",
        [("__$start_lsn",), ("__$operation",), ("__$update_mask",), ("id",), ("a",), ("b",)],
    ),
    "[sys] the key's name is kept without net changes too": Rule(
        (T, ENABLE_DB, enable(supports_net_changes="0")), INSTANCE, [("dbo_t", 0, "PK_t")]
    ),
    "[doc] without a key there are no net changes": Rule(
        ("CREATE TABLE dbo.t (id int)", ENABLE_DB, enable()), INSTANCE, [("dbo_t", 0, None)]
    ),
    "[sys] names of instances lose their trailing blanks": Rule(
        (T, ENABLE_DB, enable(capture_instance="N'one  '")), INSTANCE, [("one", 1, "PK_t")]
    ),
    "[doc] names in the column list may be quoted": Rule(
        ('CREATE TABLE dbo.t (id int PRIMARY KEY, [a, b] int, [c"] int)', ENABLE_DB,
         enable(captured_column_list="N'id, [a, b], \"c\"\"\"'")),
        "SELECT column_name FROM cdc.captured_columns ORDER BY column_ordinal",
        [("id",), ("a, b",), ('c"',)],
    ),
    "[doc] ordinals follow the table, not the list": Rule(
        (T, ENABLE_DB, enable(captured_column_list="N'b, a, id'")),
        "SELECT column_name, column_ordinal, column_id FROM cdc.captured_columns ORDER BY column_ordinal",
        [("id", 1, 1), ("a", 2, 2), ("b", 3, 3)],
    ),
    "[doc] a missing gating role is made": Rule(
        (T, ENABLE_DB, enable(role_name="N'gate'")),
        "SELECT type_desc, is_fixed_role FROM sys.database_principals WHERE name = 'gate'",
        [("DATABASE_ROLE", 0)],
    ),
    "[doc] computed columns are captured as NULL, and marked": Rule(
        (
            "CREATE TABLE dbo.t (id int PRIMARY KEY, a int, c AS a + 1)",
            ENABLE_DB,
            enable(),
            "INSERT t (id, a) VALUES (1, 1)",
            CAPTURE,
        ),
        "SELECT t.id, t.c, t.__$update_mask, m.is_computed FROM cdc.dbo_t_CT t JOIN cdc.captured_columns m "
        "ON m.column_name = 'c'",
        [(1, None, "07", 1)],
    ),
    "[fab] over all tables an instance without index shows the last one's list": Rule(
        (
            *TRACKED,
            "CREATE TABLE dbo.u (a int)",
            enable("u"),
            HELP_TABLE,
            "INSERT #h EXEC sys.sp_cdc_help_change_data_capture",
        ),
        "SELECT capture_instance, index_name, index_columns, captured FROM #h ORDER BY 1",
        [("dbo_t", "PK_t", "[id]", "[id], [a], [b]"), ("dbo_u", None, "[id]", "[a]")],
    ),
    "[doc] asked for one table it does not": Rule(
        (
            *TRACKED,
            "CREATE TABLE dbo.u (a int)",
            enable("u"),
            HELP_TABLE,
            "INSERT #h EXEC sys.sp_cdc_help_change_data_capture N'dbo', N'u'",
        ),
        "SELECT index_columns FROM #h",
        [(None,)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_metadata_of_change_data_capture(world: World, rule: Rule) -> None:
    check(world, rule)
