"""The statements which Debezium sends, word for word but for the names of databases and tables [dbz wire]."""

from __future__ import annotations

import pytest

from tests.cdc.client import World

PARAMETERS = """DECLARE @P0 nvarchar(4000) = N'testdb', @P1 nvarchar(4000) = N'testdb', @count int = 500,
@low varbinary(8000) = sys.fn_cdc_get_min_lsn('dbo_orders'), @high varbinary(8000) = sys.fn_cdc_get_max_lsn(),
@zero varbinary(8000) = 0x00000000000000000000;
"""
STATEMENTS = {
    "help": "EXEC [testdb].sys.sp_cdc_help_change_data_capture",
    "database": "SELECT name FROM sys.databases WHERE name =  @P0 ",
    "tables": "EXEC sp_tables '%', NULL, @P0 , '''TABLE'''",
    "max": "SELECT [testdb].sys.fn_cdc_get_max_lsn()",
    "captured columns": (
        "SELECT object_id, column_name FROM [testdb].cdc.captured_columns ORDER BY object_id, column_id"
    ),
    "capture tables": (
        "WITH ordered_change_tables AS (SELECT ROW_NUMBER() OVER (PARTITION BY ct.source_object_id, ct.start_lsn "
        "ORDER BY ct.create_date DESC) AS ct_sequence, ct.* FROM [testdb].cdc.change_tables AS ct) SELECT "
        "OBJECT_SCHEMA_NAME(source_object_id, DB_ID( @P0 )), OBJECT_NAME(source_object_id, DB_ID( @P1 )), "
        "capture_instance, object_id, start_lsn FROM ordered_change_tables WHERE ct_sequence = 1"
    ),
    "edition": "SELECT CAST(SERVERPROPERTY('EngineEdition') as INT)",
    "next lsns": (
        "SELECT MAX(start_lsn) FROM (SELECT TOP ( @count + 1) start_lsn FROM [testdb].cdc.lsn_time_mapping "
        "WHERE start_lsn >=  @low AND tran_id <> 0x00 ORDER BY start_lsn) as next_lsns"
    ),
    "agent": (
        "SELECT CASE WHEN dss.[status]=4 THEN 1 ELSE 0 END AS isRunning FROM [testdb].sys.dm_server_services dss WHERE "
        "dss.[servicename] LIKE N'SQL Server Agent (%';"
    ),
    "increment": "SELECT [testdb].sys.fn_cdc_increment_lsn( @low )",
    "new tables": "SELECT * FROM [testdb].cdc.change_tables WHERE start_lsn BETWEEN  @low AND  @high ",
    "changes": (
        "SELECT [__$start_lsn], [__$seqval], [__$operation], [__$update_mask], [id], [name], "
        "TODATETIMEOFFSET([testdb].sys.fn_cdc_map_lsn_to_time([__$start_lsn]), DATEPART(TZOFFSET, "
        "SYSDATETIMEOFFSET())) FROM "
        "[testdb].cdc.[fn_cdc_get_all_changes_dbo_orders]( @low ,  @high , N'all update old')  WHERE "
        "(([__$start_lsn] =  @low AND [__$seqval] =  @zero AND [__$operation] >  0 ) OR ([__$start_lsn] =  @low AND "
        "[__$seqval] >  @zero ) OR ([__$start_lsn] >  @low )) AND [__$start_lsn] <=  @high "
        "ORDER BY [__$start_lsn] ASC, [__$seqval] ASC, [__$operation] ASC"
    ),
    "scan sessions": "SELECT TOP 1 start_lsn from sys.dm_cdc_log_scan_sessions ORDER BY session_id DESC",
    "jobs": "EXEC sys.sp_cdc_help_jobs",
    "columns": "EXEC sp_columns_100 'orders', 'dbo', 'testdb', '%', 2, 3",
    "pkeys": "EXEC sp_pkeys  'orders' ,  'dbo' ,  'testdb' ",
    "statistics": "EXEC sp_statistics_100  'orders' , 'dbo' , 'testdb' , '%' , 'Y' ,  'Q' ",
    "tracked": "SELECT COUNT(*) FROM sys.tables tb WHERE tb.is_tracked_by_cdc = 1 AND tb.name = 'orders'",
    "count of mappings": "SELECT COUNT(start_lsn) FROM [testdb].cdc.lsn_time_mapping WHERE tran_id <> 0x00",
    "sessions": "SELECT session_id FROM sys.dm_exec_sessions WHERE program_name = APP_NAME()",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_debezium_statement_has_rows(world: World, statement: str) -> None:
    world.execute("CREATE TABLE dbo.orders (id int PRIMARY KEY, name nvarchar(20))")
    world.enable("orders")
    world.execute("INSERT orders VALUES (1, N'a')")
    world.capture()
    assert world.rows((PARAMETERS + statement).replace("testdb", world.database))


def test_debezium_enables_in_one_batch(world: World) -> None:
    """[dbz] its test helper: condition and procedure in one batch, separated by a newline only."""
    for statement in (
        "set implicit_transactions on ",
        (
            f"IF EXISTS(select 1 from sys.databases where name = '{world.database}' AND is_cdc_enabled=0)\n"
            "EXEC sys.sp_cdc_enable_db"
        ),
        "CREATE TABLE dbo.orders (id int PRIMARY KEY)",
        (
            "IF EXISTS(select 1 from sys.tables where name = 'orders' AND is_tracked_by_cdc=0)\n"
            "EXEC sys.sp_cdc_enable_table @source_schema = 'dbo', @source_name = 'orders', @role_name = NULL, "
            "@supports_net_changes = 0"
        ),
        "IF @@TRANCOUNT > 0 COMMIT TRAN",
        "INSERT orders VALUES (1)",
        "IF @@TRANCOUNT > 0 COMMIT TRAN",
    ):
        world.execute(statement, name="debezium")
    world.capture()
    assert world.rows("SELECT id FROM cdc.dbo_orders_CT") == [(1,)]
