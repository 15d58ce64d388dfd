"""Restores to an earlier point and failovers: what a consumer of changes must notice."""

from __future__ import annotations

import pytest

from tests.cdc.client import LocalWorld

FORK = "SELECT recovery_fork_guid FROM sys.database_recovery_status WHERE database_id = DB_ID()"
NEWEST = "SELECT TOP 1 start_lsn, tran_id, tran_begin_lsn FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC"


@pytest.fixture
def world(local_world: LocalWorld) -> LocalWorld:
    """A tracked table with one captured row, and a restore point."""
    local_world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a nvarchar(20), rv rowversion)")
    local_world.enable("t")
    local_world.stop_capture()
    insert(local_world, 1)
    local_world.execute("EXEC sandbox.restore_point")
    return local_world


def insert(world: LocalWorld, number: int) -> None:
    world.execute(f"INSERT t (id, a) VALUES ({number}, N'{number}')")
    world.capture()


def test_restore_brings_rows_and_capture_back(world: LocalWorld) -> None:
    """[doc] a restore on the same server keeps change data capture, as it was then."""
    insert(world, 2)
    world.execute("UPDATE t SET a = N'new' WHERE id = 1")
    world.execute("EXEC sandbox.restore_database")
    assert world.rows("SELECT id, a FROM t") == [(1, "1")]
    assert world.changes("dbo_t", "id") == [(1,)]
    assert world.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") == 1
    insert(world, 3)
    assert world.changes("dbo_t", "id") == [(1,), (3,)]


def test_restored_database_gives_lsns_out_again_with_other_content(world: LocalWorld) -> None:
    """[doc] a new recovery fork: the same LSN may name another transaction."""
    fork = world.value(FORK)
    insert(world, 2)
    ((before, _, _),) = world.rows(NEWEST)
    world.execute("EXEC sandbox.restore_database")
    world.wait(3600)
    insert(world, 3)
    ((after, _, _),) = world.rows(NEWEST)
    assert after == before
    assert world.value(f"SELECT id FROM cdc.dbo_t_CT WHERE __$start_lsn = 0x{after.hex()}") == 3
    assert world.value(FORK) != fork


def test_definitions_are_restored_too(world: LocalWorld) -> None:
    world.execute("ALTER TABLE t ADD b int; CREATE TABLE dbo.u (id int PRIMARY KEY)")
    world.execute("CREATE UNIQUE INDEX ux ON t (a)")
    world.enable_table("t", capture_instance="N'second'")
    world.execute("EXEC sandbox.restore_database")
    assert world.value("SELECT OBJECT_ID('dbo.u')") is None
    assert world.rows("SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t')") == [("id",), ("a",), ("rv",)]
    assert world.rows("SELECT capture_instance FROM cdc.change_tables") == [("dbo_t",)]
    world.execute("INSERT t (id, a) VALUES (2, N'1')")
    world.capture()
    assert len(world.changes("dbo_t")) == 2


def test_what_was_dropped_comes_back(world: LocalWorld) -> None:
    world.execute("DROP TABLE t; EXEC sys.sp_cdc_disable_db")
    world.execute("EXEC sandbox.restore_database")
    assert world.rows("SELECT id FROM t") == [(1,)]
    insert(world, 2)
    assert world.changes("dbo_t", "id") == [(1,), (2,)]


def test_keys_hold_after_a_restore(world: LocalWorld) -> None:
    insert(world, 2)
    world.execute("EXEC sandbox.restore_database")
    assert world.error("INSERT t (id) VALUES (1)").number == 2627
    world.execute("INSERT t (id) VALUES (2)")
    assert world.rows("SELECT id FROM t WHERE id = 2") == [(2,)]


def test_a_point_serves_any_number_of_restores(world: LocalWorld) -> None:
    for _ in range(3):
        insert(world, 2)
        world.execute("EXEC sandbox.restore_database")
        assert world.rows("SELECT id FROM t") == [(1,)]


def test_restore_elsewhere_loses_change_data_capture(world: LocalWorld) -> None:
    """[doc] without KEEP_CDC, under another name or on another server, it is disabled and its metadata is gone."""
    world.execute("EXEC sandbox.restore_database @keep_cdc = 0")
    assert world.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") == 0
    assert world.value("SELECT COUNT(*) FROM sys.schemas WHERE name = 'cdc'") == 0
    assert world.rows("SELECT id, a FROM t") == [(1, "1")]


def test_restore_ends_other_sessions_and_their_transactions(world: LocalWorld) -> None:
    world.execute("BEGIN TRAN; INSERT t (id) VALUES (9)", name="other")
    other = world.session(name="other")
    world.execute("EXEC sandbox.restore_database")
    assert other.killed
    assert world.rows("SELECT id FROM t") == [(1,)]


@pytest.mark.parametrize(
    ("statement", "number"),
    [("EXEC sandbox.restore_database @point = N'no'", 50000), ("BEGIN TRAN; EXEC sandbox.restore_database", 3021)],
)
def test_restore_refuses_what_it_cannot_do(world: LocalWorld, statement: str, number: int) -> None:
    assert world.error(statement).number == number


def test_failover_without_loss_keeps_everything_but_the_jobs(world: LocalWorld) -> None:
    """[doc] jobs belong to the server: they are to be made on each replica."""
    world.execute("EXEC sandbox.agent_start")
    insert(world, 2)
    fork = world.value(FORK)
    world.execute("EXEC sandbox.failover @server_name = N'OTHER'")
    assert world.value("SELECT @@SERVERNAME") == "OTHER"
    assert world.value("SELECT COUNT(*) FROM msdb.dbo.cdc_jobs") == 0
    assert world.value(FORK) == fork
    assert world.rows("SELECT * FROM sys.dm_cdc_log_scan_sessions") == []
    world.execute("INSERT t (id) VALUES (3)")
    world.pass_time(60)
    assert world.changes("dbo_t", "id") == [(1,), (2,)]
    world.execute("EXEC sys.sp_cdc_add_job N'capture'")
    world.pass_time(6)
    assert world.changes("dbo_t", "id") == [(1,), (2,), (3,)]


def test_forced_failover_loses_what_had_not_arrived(world: LocalWorld) -> None:
    """[doc] a new recovery fork, as after a restore."""
    fork = world.value(FORK)
    insert(world, 2)
    world.execute("EXEC sandbox.failover @point = N'default', @with_jobs = 1")
    assert world.rows("SELECT id FROM t") == [(1,)]
    assert world.value(FORK) != fork
    assert world.value("SELECT COUNT(*) FROM msdb.dbo.cdc_jobs") == 2


CACHES = {
    "int": ("int IDENTITY", 1000),
    "bigint": ("bigint IDENTITY", 10_000),
    "smallint": ("smallint IDENTITY", 100),
    "backwards": ("int IDENTITY(-1, -2)", -2001),
}


@pytest.mark.parametrize(("definition", "last"), CACHES.values(), ids=CACHES)
def test_failover_loses_reserved_identity_values(local_world: LocalWorld, definition: str, last: int) -> None:
    """[doc] gaps after a failover; [?] how many values are reserved for which type."""
    world = local_world
    world.execute(f"CREATE TABLE dbo.n (id {definition} PRIMARY KEY, a int)")
    world.execute("INSERT n (a) VALUES (1); INSERT n (a) VALUES (1)")
    world.execute("EXEC sandbox.failover")
    world.execute("INSERT n (a) VALUES (2)")
    step = 1 if last > 0 else -2
    assert world.value("SELECT id FROM n WHERE a = 2") == (last + step if last > 0 else -2001)


def test_huge_transaction_is_one_commit(world: LocalWorld) -> None:
    world.execute(
        "CREATE TABLE dbo.h (id int PRIMARY KEY, n nvarchar(10), d datetime2, g uniqueidentifier, i int IDENTITY)"
    )
    world.enable_table("h")
    assert world.rows("EXEC sandbox.huge_transaction @table = N'dbo.h', @rows = 5000, @first = 7") == [(5000,)]
    world.capture()
    assert world.rows(
        "SELECT COUNT(*), COUNT(DISTINCT __$start_lsn), MIN(id), MAX(id), MAX(__$command_id) FROM cdc.dbo_h_CT"
    ) == [(5000, 1, 7, 5006, 5000)]


def test_huge_transaction_fails_as_a_whole(world: LocalWorld) -> None:
    assert world.error("EXEC sandbox.huge_transaction @table = N'dbo.no'").number == 208
    world.execute("CREATE TABLE dbo.h (id int PRIMARY KEY); INSERT h VALUES (3000)")
    assert world.error("EXEC sandbox.huge_transaction @table = N'dbo.h', @rows = 4000").number == 2627
    assert world.rows("SELECT id FROM h") == [(3000,)]
