"""What the tables of change data capture look like: columns, types, indexes, and what enabling writes into them."""

from __future__ import annotations

import pytest

from tests.cdc.client import World
from tests.cdc.rules import CAPTURE, ENABLE_DB, TRACKED, Rule, T, check, enable

COLUMNS = (
    "SELECT c.name, TYPE_NAME(c.user_type_id), c.max_length, c.is_nullable FROM sys.columns c "
    "WHERE c.object_id = OBJECT_ID('{}') ORDER BY c.column_id"
)
INDEX = (
    "SELECT i.is_unique, c.name FROM sys.indexes i JOIN sys.index_columns x ON x.object_id = i.object_id AND "
    "x.index_id = i.index_id JOIN sys.columns c ON c.object_id = x.object_id AND c.column_id = x.column_id "
    "WHERE i.object_id = OBJECT_ID('cdc.dbo_t_CT') AND i.type = {} AND x.is_included_column = 0 ORDER BY x.key_ordinal"
)

RULES = {
    "[doc] lsn_time_mapping has five columns": Rule(
        (ENABLE_DB,),
        COLUMNS.format("cdc.lsn_time_mapping"),
        [
            ("start_lsn", "binary", 10, 0),
            ("tran_begin_time", "datetime", 8, 1),
            ("tran_end_time", "datetime", 8, 1),
            ("tran_id", "varbinary", 10, 1),
            ("tran_begin_lsn", "binary", 10, 1),
        ],
    ),
    "[doc][sys] ddl_history": Rule(
        (ENABLE_DB,),
        "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('cdc.ddl_history') ORDER BY column_id",
        [
            (name,)
            for name in (
                "source_object_id",
                "object_id",
                "required_column_update",
                "ddl_command",
                "ddl_lsn",
                "ddl_time",
            )
        ],
    ),
    "[doc][sys] captured_columns has the masking function last": Rule(
        (ENABLE_DB,),
        "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('cdc.captured_columns') ORDER BY column_id",
        [
            (name,)
            for name in (
                "object_id",
                "column_name",
                "column_id",
                "column_type",
                "column_ordinal",
                "is_computed",
                "masking_function",
            )
        ],
    ),
    "[doc] captured columns keep their type and become nullable": Rule(
        (
            (
                "CREATE TABLE dbo.t (id bigint IDENTITY NOT NULL PRIMARY KEY, n nvarchar(20) NOT NULL, d decimal(9, 3) "
                "NOT NULL, rv rowversion, m money NOT NULL)"
            ),
            ENABLE_DB,
            enable(),
        ),
        COLUMNS.format("cdc.dbo_t_CT").replace(" ORDER BY", " AND c.name NOT LIKE '[_][_]%' ORDER BY"),
        [
            ("id", "bigint", 8, 1),
            ("n", "nvarchar", 40, 1),
            ("d", "decimal", 5, 1),
            ("rv", "binary", 8, 1),
            ("m", "money", 8, 1),
        ],
    ),
    "[doc] the identity property is not captured": Rule(
        ("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY)", ENABLE_DB, enable()),
        "SELECT COUNT(*) FROM sys.identity_columns WHERE object_id = OBJECT_ID('cdc.dbo_t_CT')",
        [(0,)],
    ),
    "[fab] the clustered index orders as documented": Rule(
        TRACKED,
        INDEX.format(1),
        [(1, "__$start_lsn"), (1, "__$command_id"), (1, "__$seqval"), (1, "__$operation")],
    ),
    "[sys] net changes have an index that begins with the key": Rule(
        TRACKED,
        INDEX.format(2),
        [(1, "id"), (1, "__$start_lsn"), (1, "__$command_id"), (1, "__$seqval"), (1, "__$operation")],
    ),
    "[sys] without net changes there is no such index": Rule(
        (T, ENABLE_DB, enable(supports_net_changes="0")), INDEX.format(2), []
    ),
    "[sys] change_tables is also found by instance and by source": Rule(
        (ENABLE_DB,),
        "SELECT i.name, i.is_unique, COL_NAME(x.object_id, x.column_id) FROM sys.indexes i JOIN sys.index_columns x "
        "ON x.object_id = i.object_id AND x.index_id = i.index_id WHERE i.object_id = OBJECT_ID('cdc.change_tables') "
        "AND i.type = 2 ORDER BY i.name",
        [("change_tables_unique_idx", 1, "capture_instance"), ("source_object_id_idx", 0, "source_object_id")],
    ),
    "[sys] index_columns has a primary key": Rule(
        (ENABLE_DB,),
        "SELECT name, type FROM sys.key_constraints WHERE parent_object_id = OBJECT_ID('cdc.index_columns')",
        [("index_columns_clustered_idx", "PK")],
    ),
    "[pub] a trigger of the database notes DDL": Rule(
        (ENABLE_DB,),
        "SELECT name, parent_class_desc, parent_id, type, is_ms_shipped, is_disabled FROM sys.triggers",
        [("tr_MScdc_ddl_event", "DATABASE", 0, "TR", 1, 0)],
    ),
    "[sys] masks of the source are masks of the change table": Rule(
        (
            "CREATE TABLE dbo.t (id int PRIMARY KEY, a varchar(9) MASKED WITH (FUNCTION = 'default()'), b int)",
            "ALTER TABLE dbo.t ALTER COLUMN b ADD MASKED WITH (FUNCTION = 'random(1, 9)')",
            ENABLE_DB,
            enable(),
        ),
        "SELECT c.column_name, c.masking_function, m.masking_function FROM cdc.captured_columns c "
        "LEFT JOIN sys.masked_columns m ON m.object_id = c.object_id AND m.name = c.column_name ORDER BY 1",
        [("a", "default()", "default()"), ("b", "random(1, 9)", "random(1, 9)"), ("id", None, None)],
    ),
    "[sys] what fails while the instance is made is told by 22832": Rule(
        (T, ENABLE_DB, "CREATE TABLE cdc.taken_CT (a int)"),
        enable(capture_instance="N'taken'"),
        22832,
        text="Could not update the metadata that indicates table [dbo].[t] is enabled for Change Data Capture.",
    ),
    "[doc] contained databases have no change data capture": Rule(
        (
            "EXEC sp_configure 'contained database authentication', 1; RECONFIGURE",
            "ALTER DATABASE CURRENT SET CONTAINMENT = PARTIAL",
        ),
        ENABLE_DB,
        12839,
    ),
    "[doc] and databases with it are not contained": Rule(
        ("EXEC sp_configure 'contained database authentication', 1; RECONFIGURE", ENABLE_DB),
        "ALTER DATABASE CURRENT SET CONTAINMENT = PARTIAL",
        12838,
    ),
    "[doc] delayed durability comes not behind it either": Rule(
        (ENABLE_DB,), "ALTER DATABASE CURRENT SET DELAYED_DURABILITY = ALLOWED", 22892
    ),
    "[doc] the user cdc owns a schema": Rule((ENABLE_DB,), "DROP USER cdc", 15138),
    "[fab] placeholders want arguments like the functions they stand for": Rule(
        (ENABLE_DB,),
        "SELECT * FROM cdc.[fn_cdc_get_all_changes_ ... ]()",
        313,
        text="An insufficient number of arguments were supplied for the procedure or function "
        "cdc.fn_cdc_get_all_changes_ ... .",
    ),
    "[doc] index_columns lists the key by position": Rule(
        (
            "CREATE TABLE dbo.t (a int NOT NULL, b int NOT NULL, c int, PRIMARY KEY (b, a))",
            ENABLE_DB,
            enable(),
        ),
        "SELECT OBJECT_NAME(object_id), column_name, index_ordinal, column_id FROM cdc.index_columns ORDER BY 3",
        [("dbo_t_CT", "b", 1, 2), ("dbo_t_CT", "a", 2, 1)],
    ),
    "[doc] a unique index may take the key's place": Rule(
        (
            T,
            "CREATE UNIQUE INDEX ux ON dbo.t (id, a)",
            "ALTER TABLE dbo.t ALTER COLUMN a int NULL",
            ENABLE_DB,
            "DROP INDEX ux ON dbo.t",
            "CREATE UNIQUE INDEX ux ON dbo.t (id)",
            enable(index_name="N'ux'"),
        ),
        "SELECT index_name, supports_net_changes FROM cdc.change_tables",
        [("ux", 1)],
    ),
    "[doc] a filegroup is kept": Rule(
        (T, ENABLE_DB, enable(filegroup_name="N'PRIMARY'")),
        "SELECT filegroup_name FROM cdc.change_tables",
        [("PRIMARY",)],
    ),
    "[doc] an unknown filegroup is refused": Rule((T, ENABLE_DB), enable(filegroup_name="N'nowhere'"), 22973),
    "[?] clustered column stores are refused": Rule(
        ("CREATE TABLE dbo.t (id int NOT NULL)", "CREATE CLUSTERED COLUMNSTORE INDEX cci ON dbo.t", ENABLE_DB),
        enable(),
        35353,
    ),
    "[doc] views are no tables": Rule((T, "CREATE VIEW dbo.v AS SELECT id FROM dbo.t", ENABLE_DB), enable("v"), 22931),
    "[doc] fifteen key columns are too many for net changes": Rule(
        (
            (
                f"CREATE TABLE dbo.t ({', '.join(f'c{n} int NOT NULL' for n in range(15))}, "
                f"PRIMARY KEY ({', '.join(f'c{n}' for n in range(15))}))"
            ),
            ENABLE_DB,
        ),
        enable(supports_net_changes="1"),
        22865,
    ),
    "[doc] an empty role name is refused": Rule((T, ENABLE_DB), enable(role_name="N''"), 22907),
    "[doc] a user's name is no role": Rule(
        (T, ENABLE_DB, "CREATE USER u WITHOUT LOGIN"), enable(role_name="N'u'"), 22938
    ),
    "[doc] a disabled index is refused": Rule(
        (T, "CREATE UNIQUE INDEX ux ON dbo.t (id)", "ALTER INDEX ux ON dbo.t DISABLE", ENABLE_DB),
        enable(index_name="N'ux'"),
        22980,
    ),
    "[doc] a column named twice is refused": Rule((T, ENABLE_DB), enable(captured_column_list="N'id, id'"), 22942),
    "[sys] system databases are refused": Rule(("USE msdb",), ENABLE_DB, 22989),
    "[sys] delayed durability is refused": Rule(
        ("ALTER DATABASE CURRENT SET DELAYED_DURABILITY = ALLOWED",), ENABLE_DB, 22891
    ),
    "[doc] extended handling of DDL needs its feature": Rule(
        (T, ENABLE_DB), enable(enable_extended_ddl_handling="1"), 22874
    ),
    "[sys] the jobs' procedures are named by the change table": Rule(
        TRACKED,
        "SELECT REPLACE(name, CAST(OBJECT_ID('cdc.dbo_t_CT') AS nvarchar(20)), 'N') FROM sys.procedures "
        "WHERE name LIKE '%' + CAST(OBJECT_ID('cdc.dbo_t_CT') AS nvarchar(20)) ORDER BY 1",
        [("sp_batchinsert_N",), ("sp_insdel_N",), ("sp_upd_N",)],
    ),
    "[doc] instance names compare as the database compares": Rule(
        (T, ENABLE_DB, enable(capture_instance="N'One'"), "INSERT t VALUES (1, 1, 1)", CAPTURE),
        "SELECT COUNT(*) FROM cdc.fn_cdc_get_all_changes_ONE("
        "sys.fn_cdc_get_min_lsn('ONE'), sys.fn_cdc_get_max_lsn(), 'all')",
        [(1,)],
    ),
    "[doc] sparse columns are captured": Rule(
        (
            "CREATE TABLE dbo.t (id int PRIMARY KEY, s int SPARSE NULL)",
            ENABLE_DB,
            enable(),
            "INSERT t VALUES (1, 5)",
            CAPTURE,
        ),
        "SELECT id, s FROM cdc.dbo_t_CT",
        [(1, 5)],
    ),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_tables_of_change_data_capture(world: World, rule: Rule) -> None:
    check(world, rule)


def test_net_changes_without_clr_say_so(world: World) -> None:
    """[doc] 22969, a message; masks are then not evaluated [?]."""
    world.require_messages()
    world.execute("EXEC sp_configure 'clr enabled', 0; RECONFIGURE")
    world.execute(T)
    world.enable()
    messages = world.enable_table("t").messages
    (text,) = [message.text for message in messages if "CLR" in message.text]
    assert text.startswith("Update mask evaluation will be disabled in net_changes_function")


def test_dropping_a_database_drops_its_jobs(world: World) -> None:
    """[doc] nothing of it stays behind in msdb."""
    other = f"{world.database}_other"
    world.execute(f"CREATE DATABASE [{other}]")
    for statement in (f"USE [{other}]", ENABLE_DB, "CREATE TABLE dbo.t (id int PRIMARY KEY)", enable(), "USE master"):
        world.execute(statement, name="other")
    number = world.value(f"SELECT DB_ID('{other}')")
    jobs = f"SELECT COUNT(*) FROM msdb.dbo.cdc_jobs WHERE database_id = {number}"
    assert world.value(jobs) == 2
    world.execute(f"ALTER DATABASE [{other}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE")
    world.execute(f"DROP DATABASE [{other}]")
    assert world.value(jobs) == 0


def test_the_job_table_does_not_exist_before_the_first_job(local_world: World) -> None:
    """[fab] it comes with the first job of the server, whatever database that is of."""
    local_world.execute(ENABLE_DB)
    assert local_world.error("SELECT * FROM msdb.dbo.cdc_jobs").number == 208


def test_sessions_that_were_thrown_out_use_no_database_any_more(world: World) -> None:
    """[doc] after SINGLE_USER WITH ROLLBACK IMMEDIATE the database can be dropped at once."""
    other = f"{world.database}_other"
    world.execute(f"CREATE DATABASE [{other}]")
    world.execute(f"USE [{other}]", name="victim")
    world.execute(f"ALTER DATABASE [{other}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE")
    world.execute(f"DROP DATABASE [{other}]")
    assert world.rows(f"SELECT name FROM sys.databases WHERE name = '{other}'") == []
