"""Enabling and disabling: what appears and what goes."""

from __future__ import annotations

import pytest

from tests.cdc.client import LocalWorld, World
from tests.cdc.statements import TABLE, disable, enable


def test_enable_db_creates_the_documented_objects(world: World) -> None:
    """[fab][sys] metadata tables and placeholder functions, all shipped by Microsoft."""
    world.enable()
    names = world.rows("SELECT name, is_ms_shipped FROM sys.objects WHERE SCHEMA_NAME(schema_id) = 'cdc' ORDER BY name")
    expected = {
        "captured_columns",
        "change_tables",
        "ddl_history",
        "index_columns",
        "lsn_time_mapping",
        "fn_cdc_get_all_changes_...",
        "fn_cdc_get_all_changes_ ... ",
        "fn_cdc_get_net_changes_...",
        "fn_cdc_get_net_changes_ ... ",
    }
    assert {name for name, _ in names} >= expected
    assert {shipped for _, shipped in names} == {1}
    assert world.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") == 1
    assert world.value("SELECT COUNT(*) FROM sys.database_principals WHERE name = 'cdc'") == 1


def test_enable_table_creates_change_table_and_functions(world: World) -> None:
    """[fab] only the functions of the instance count as the user's."""
    world.execute(TABLE)
    world.enable("t")
    rows = world.rows("SELECT name, type, is_ms_shipped FROM sys.objects WHERE name LIKE '%dbo[_]t%' ORDER BY name")
    assert [row for row in rows if row[1].strip() in ("U", "IF")] == [
        ("dbo_t_CT", "U ", 1),
        ("fn_cdc_get_all_changes_dbo_t", "IF", 0),
        ("fn_cdc_get_net_changes_dbo_t", "IF", 0),
    ]
    assert world.value("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'") == 1


def test_enable_table_starts_jobs_and_says_so(world: World) -> None:
    """[fab] the first table brings capture and cleanup."""
    world.require_messages()
    world.execute(TABLE)
    world.enable()
    messages = world.enable_table("t", supports_net_changes="0").messages
    assert [message.text for message in messages] == [
        f"Job 'cdc.{world.database}_capture' started successfully.",
        f"Job 'cdc.{world.database}_cleanup' started successfully.",
    ]


def test_enable_table_without_agent_succeeds_with_four_messages(local_world: LocalWorld) -> None:
    """[fab] enabling succeeds, jobs do not start."""
    world = local_world
    world.execute(TABLE)
    world.enable()
    world.execute("EXEC sandbox.agent_stop")
    messages = world.enable_table("t", supports_net_changes="0").messages
    text = "SQLServerAgent is not currently running so it cannot be notified of this action."
    assert [message.text for message in messages] == [text] * 4
    assert world.value("SELECT COUNT(*) FROM msdb.dbo.cdc_jobs") == 2


def test_change_tables_row_has_the_documented_columns_in_order(world: World) -> None:
    """[doc][sys] clients read this table by position."""
    world.execute(TABLE)
    world.enable("t")
    answer = world.execute("SELECT * FROM cdc.change_tables")
    assert answer.names == [
        [
            "object_id",
            "version",
            "source_object_id",
            "capture_instance",
            "start_lsn",
            "end_lsn",
            "supports_net_changes",
            "has_drop_pending",
            "role_name",
            "index_name",
            "filegroup_name",
            "create_date",
            "partition_switch",
        ]
    ]
    ((object_id, version, source_id, instance, start, end, net, pending, role, index, group, _, switch),) = answer.sets[
        0
    ]
    assert object_id == world.value("SELECT OBJECT_ID('cdc.dbo_t_CT')")
    assert source_id == world.value("SELECT OBJECT_ID('dbo.t')")
    assert (version, instance, end, net, pending, role, index, group, switch) == (
        0, "dbo_t", None, 1, 0, None, "PK_t", None, 1,
    )  # fmt: skip
    assert len(start) == 10


def test_captured_columns_refer_to_the_change_table(world: World) -> None:
    """[sys][dbz] object_id is the change table's, ordinals count captured columns."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int, b nvarchar(20), c AS id + 1)")
    world.enable("t", captured_column_list="N'id, b, c'")
    rows = world.rows(
        "SELECT OBJECT_NAME(object_id), column_name, column_id, column_type, column_ordinal, is_computed "
        "FROM cdc.captured_columns ORDER BY column_ordinal"
    )
    assert rows == [
        ("dbo_t_CT", "id", 1, "int", 1, 0),
        ("dbo_t_CT", "b", 3, "nvarchar", 2, 0),
        ("dbo_t_CT", "c", 4, "int", 3, 1),
    ]


DEFAULT_NET = {"[doc] with key": ("id int PRIMARY KEY", 1, "PK"), "[doc] without key": ("id int", 0, None)}


@pytest.mark.parametrize(("definition", "net", "index"), DEFAULT_NET.values(), ids=DEFAULT_NET)
def test_net_changes_default_follows_the_primary_key(
    world: World, definition: str, net: int, index: str | None
) -> None:
    world.execute(f"CREATE TABLE dbo.t ({definition})")
    world.enable("t")
    ((supported, name),) = world.rows("SELECT supports_net_changes, index_name FROM cdc.change_tables")
    assert (supported, name and name[:2]) == (net, index)


def test_index_name_is_kept_with_net_changes_off(world: World) -> None:
    """[sys] the primary key's name, even with net changes off."""
    world.execute(TABLE)
    world.enable("t", supports_net_changes="0")
    assert world.rows("SELECT supports_net_changes, index_name FROM cdc.change_tables") == [(0, "PK_t")]


def test_role_is_created_when_missing(world: World) -> None:
    """[doc] the gating role."""
    world.execute(TABLE)
    world.enable("t", role_name="N'gate'")
    assert world.value("SELECT type FROM sys.database_principals WHERE name = 'gate'") == "R"


def test_disable_table_drops_what_enabling_made(world: World) -> None:
    """[doc] change table, functions, metadata, tracking, and the jobs with the last table."""
    world.execute(TABLE)
    world.enable("t")
    world.execute(disable("all"))
    assert world.rows("SELECT * FROM cdc.change_tables") == []
    assert world.rows("SELECT * FROM cdc.captured_columns") == []
    assert world.value("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'") == 0
    assert world.value("SELECT OBJECT_ID('cdc.dbo_t_CT')") is None
    assert world.value("SELECT COUNT(*) FROM msdb.dbo.cdc_jobs WHERE database_id = DB_ID()") == 0
    world.execute("TRUNCATE TABLE dbo.t")


def test_disable_one_of_two_instances_keeps_tracking(world: World) -> None:
    world.execute(TABLE)
    world.enable("t")
    world.enable_table("t", capture_instance="N'second'")
    world.execute(disable("dbo_t"))
    world.execute("INSERT t VALUES (1, 1)")
    world.capture()
    assert world.changes("second", "id") == [(1,)]
    assert world.value("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'") == 1


def test_disable_db_drops_everything(world: World) -> None:
    """[doc] schema, user, jobs; not gating roles."""
    world.execute(TABLE)
    world.enable("t", role_name="N'gate'")
    world.execute("EXEC sys.sp_cdc_disable_db")
    assert world.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") == 0
    assert world.value("SELECT COUNT(*) FROM sys.schemas WHERE name = 'cdc'") == 0
    assert world.value("SELECT COUNT(*) FROM sys.database_principals WHERE name = 'gate'") == 1
    assert world.value("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'") == 0
    world.execute("INSERT t VALUES (1, 1)")
    world.enable("t")
    world.capture()
    assert world.changes("dbo_t") == []


def test_enabling_is_undone_with_its_transaction(world: World) -> None:
    """[?] the procedures are ordinary procedures: a rollback takes everything back."""
    world.execute(TABLE)
    world.enable()
    world.execute(f"BEGIN TRAN {enable()} ROLLBACK")
    assert world.rows("SELECT * FROM cdc.change_tables") == []
    assert world.value("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'") == 0
    world.enable("t")


def test_help_change_data_capture_has_fifteen_columns(world: World) -> None:
    """[doc] one row per instance, lists in brackets."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, [odd]]name] int)")
    world.enable("t")
    answer = world.execute("EXEC sys.sp_cdc_help_change_data_capture")
    assert len(answer.names[0]) == 15
    (row,) = answer.sets[0]
    assert row[:3] == ("dbo", "t", "dbo_t")
    assert row[-2:] == ("[id]", "[id], [odd]]name]")


def test_help_change_data_capture_hides_instances_from_strangers(world: World) -> None:
    """[doc] limited to what the caller may select."""
    world.execute(TABLE)
    world.enable("t", role_name="N'gate'")
    world.add_user("reader", "db_datareader")
    assert world.rows("EXEC sys.sp_cdc_help_change_data_capture", login="reader") == []
    world.execute("ALTER ROLE gate ADD MEMBER reader")
    assert len(world.rows("EXEC sys.sp_cdc_help_change_data_capture", login="reader")) == 1


def test_get_captured_columns_describes_types(world: World) -> None:
    """[doc]."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, name nvarchar(20), price decimal(10,2), at datetime2(3))")
    world.enable("t")
    rows = world.rows("EXEC sys.sp_cdc_get_captured_columns @capture_instance = N'dbo_t'")
    assert [row[3:] for row in rows] == [
        ("id", 1, 1, "int", None, 10, 10, 0, None),
        ("name", 2, 2, "nvarchar", 20, None, None, None, None),
        ("price", 3, 3, "decimal", None, 10, 10, 2, None),
        ("at", 4, 4, "datetime2", None, None, None, None, 3),
    ]


def test_get_captured_columns_of_an_unknown_instance_is_22981(world: World) -> None:
    world.enable()
    assert world.error("EXEC sys.sp_cdc_get_captured_columns @capture_instance = N'x'").number == 22981
