"""A readable secondary: an older, consistent state of the whole database for connections with the read-only intent."""

from __future__ import annotations

import pytest

from mssql_sandbox.engine.log import lsn_number
from tests.cdc.client import LocalWorld

READER = "readonly"


@pytest.fixture
def world(local_world: LocalWorld) -> LocalWorld:
    """A tracked table with one captured row."""
    local_world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    local_world.enable("t")
    local_world.stop_capture()
    insert(local_world, 1)
    return local_world


def insert(world: LocalWorld, number: int) -> None:
    world.execute(f"INSERT t VALUES ({number}, 0)")
    world.capture()


def seen(world: LocalWorld, table: str = "t") -> list[int]:
    return [row[0] for row in world.rows(f"SELECT id FROM {table} ORDER BY id", name=READER)]


def test_without_a_secondary_the_intent_means_nothing(world: LocalWorld) -> None:
    """[doc] a server without availability group serves everybody itself."""
    world.execute("UPDATE t SET a = 5", name=READER)
    assert world.value("SELECT a FROM t", name=READER) == 5
    assert world.value("SELECT sys.fn_hadr_is_primary_replica(DB_NAME())", name=READER) is None


def test_a_frozen_secondary_shows_the_moment_in_which_it_stopped(world: LocalWorld) -> None:
    world.execute("EXEC sandbox.replica_freeze")
    insert(world, 2)
    assert seen(world) == [1]
    assert seen(world, "cdc.dbo_t_CT") == [1]
    assert world.rows("SELECT COUNT(*) FROM t") == [(2,)]


def test_a_secondary_follows_at_its_distance(world: LocalWorld) -> None:
    world.execute("EXEC sandbox.replica_lag @seconds = 30")
    insert(world, 2)
    world.wait(20)
    insert(world, 3)
    world.wait(11)
    assert seen(world) == [1, 2]
    world.wait(20)
    assert seen(world) == [1, 2, 3]


def test_rows_and_capture_of_a_secondary_agree(world: LocalWorld) -> None:
    """The functions answer for the same moment as the tables: a later LSN is unknown there."""
    world.execute("EXEC sandbox.replica_freeze")
    before = world.value("SELECT sys.fn_cdc_get_max_lsn()", name=READER)
    insert(world, 2)
    newest = world.value("SELECT sys.fn_cdc_get_max_lsn()")
    assert world.value("SELECT sys.fn_cdc_get_max_lsn()", name=READER) == before < newest
    assert world.rows(f"SELECT 1 FROM cdc.lsn_time_mapping WHERE start_lsn = 0x{newest.hex()}", name=READER) == []
    failure = world.send(
        f"SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), 0x{newest.hex()}, N'all')",
        name=READER,
    )
    assert failure.errors == [313]


def test_cleanup_of_the_primary_reaches_the_secondary_late(world: LocalWorld) -> None:
    world.execute("EXEC sandbox.replica_freeze")
    low = world.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')")
    world.wait(86_400)
    insert(world, 2)
    world.execute("EXEC sandbox.cleanup_now @retention = 5")
    assert world.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')", name=READER) == low
    assert world.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')") > low
    assert seen(world, "cdc.dbo_t_CT") == [1]


@pytest.mark.parametrize("level", ["READ UNCOMMITTED", "READ COMMITTED", "SERIALIZABLE"])
def test_every_isolation_level_is_a_snapshot_on_a_secondary(world: LocalWorld, level: str) -> None:
    """[doc] mapped to snapshot isolation, whether the database allows it or not; readers take no locks."""
    world.execute("EXEC sandbox.replica_lag")
    world.execute(f"SET TRANSACTION ISOLATION LEVEL {level}; BEGIN TRAN; SELECT * FROM t", name=READER)
    world.execute("BEGIN TRAN; UPDATE t SET a = 9", name="writer")
    insert(world, 2)
    assert world.rows("SELECT id, a FROM t", name=READER) == [(1, 0)]
    world.execute("COMMIT", name="writer")
    assert world.rows("SELECT id, a FROM t", name=READER) == [(1, 0)]
    world.execute("COMMIT", name=READER)
    assert world.rows("SELECT id, a FROM t ORDER BY id", name=READER) == [(1, 9), (2, 0)]


WRITES = {
    "insert": "INSERT t VALUES (5, 5)",
    "update": "UPDATE t SET a = 1",
    "delete": "DELETE t",
    "definition": "CREATE TABLE dbo.n (id int)",
    "capture instance": "EXEC sys.sp_cdc_enable_table N'dbo', N't', N'more', @role_name = NULL",
}


@pytest.mark.parametrize("statement", WRITES.values(), ids=WRITES)
def test_a_secondary_is_read_only(world: LocalWorld, statement: str) -> None:
    """[doc] 3906, and DATABASEPROPERTYEX says so."""
    world.execute("EXEC sandbox.replica_freeze")
    failure = world.error(statement, name=READER)
    assert (failure.number, failure.text) == (
        3906,
        'Failed to update database "testdb" because the database is read-only.',
    )
    assert world.value("SELECT DATABASEPROPERTYEX(DB_NAME(), 'Updateability')", name=READER)[1] == "READ_ONLY"
    assert world.value("SELECT DATABASEPROPERTYEX(DB_NAME(), 'Updateability')")[1] == "READ_WRITE"
    assert world.rows("SELECT sys.fn_hadr_is_primary_replica(DB_NAME())", name=READER) == [(0,)]
    assert world.rows("SELECT sys.fn_hadr_is_primary_replica(DB_NAME())") == [(1,)]


def test_temporary_tables_work_on_a_secondary(world: LocalWorld) -> None:
    """[doc] tempdb belongs to the replica."""
    world.execute("EXEC sandbox.replica_freeze")
    world.execute("CREATE TABLE #t (id int); INSERT #t VALUES (7)", name=READER)
    assert seen(world, "#t") == [7]


def test_the_history_of_scans_is_the_primarys(world: LocalWorld) -> None:
    """[dbz] it is of no use on a secondary."""
    world.execute("EXEC sandbox.replica_freeze")
    assert world.rows("SELECT * FROM sys.dm_cdc_log_scan_sessions", name=READER) == []
    assert world.rows("SELECT * FROM sys.dm_cdc_log_scan_sessions") != []


def test_the_primary_knows_how_far_behind_the_secondary_is(world: LocalWorld) -> None:
    """[doc] a row for each database on each replica, and on a secondary for its own ones; no rows without a group."""
    state = "SELECT is_local, is_primary_replica, secondary_lag_seconds FROM sys.dm_hadr_database_replica_states"
    state += " WHERE database_id = DB_ID() ORDER BY is_local DESC"
    assert world.rows(state) == []
    world.execute("EXEC sandbox.replica_lag @seconds = 30")
    assert world.rows(state) == [(1, 1, None), (0, 0, 0)]
    insert(world, 2)
    world.wait(20)
    assert world.rows(state) == [(1, 1, None), (0, 0, 20)]
    assert world.rows(state, name=READER) == [(1, 0, None)]
    world.wait(11)
    assert world.rows(state) == [(1, 1, None), (0, 0, 0)]


def test_a_secondary_shows_the_end_of_its_own_log_as_that_of_a_replica(world: LocalWorld) -> None:
    """[doc] sys.dm_db_log_stats has three columns there; last_hardened_lsn is the start of the block behind its end."""
    end = "SELECT log_end_lsn FROM sys.dm_db_log_stats(DB_ID())"
    hardened = "SELECT last_hardened_lsn FROM sys.dm_hadr_database_replica_states WHERE database_id = DB_ID()"
    world.execute("EXEC sandbox.replica_freeze")
    assert world.rows(end, name=READER) == [(None,)]
    assert world.rows("SELECT recovery_model FROM sys.dm_db_log_stats(DB_ID())", name=READER) == [("FULL",)]
    before = world.value(hardened, name=READER)
    insert(world, 2)
    assert world.value(hardened, name=READER) > before, "it is on its disk, although it is not redone"
    world.execute("EXEC sandbox.replica_disconnect")
    held = world.value(hardened, name=READER)
    insert(world, 3)
    assert world.value(hardened, name=READER) == held
    world.execute("EXEC sandbox.replica_lag")
    world.capture()
    after = world.value(hardened, name=READER)
    newest = lsn_number(int.from_bytes(world.value("SELECT sys.fn_cdc_get_max_lsn()", name=READER), "big"))
    assert held < newest < after
    assert world.rows(f"{hardened} AND is_local = 0") == [(after,)], "the primary knows it, too"
    assert world.rows(f"{hardened} AND is_local = 1") == [(None,)]


def test_capture_reads_no_further_than_the_secondarys_copy_of_the_log(world: LocalWorld) -> None:
    """[doc] the log reader waits for all secondaries; [?] its scans count as empty ones, and write dummy rows."""
    empty = "SELECT TOP 1 empty_scan_count FROM sys.dm_cdc_log_scan_sessions ORDER BY session_id DESC"
    world.execute("EXEC sandbox.replica_lag")
    insert(world, 2)
    world.execute("EXEC sandbox.replica_disconnect")
    insert(world, 3)
    assert world.rows("SELECT id FROM cdc.dbo_t_CT ORDER BY id") == [(1,), (2,)]
    before = world.value(empty)
    world.execute("CREATE TABLE dbo.untracked (id int)")
    world.wait(400)
    world.capture()
    assert world.value(empty) == before + 1
    dummy = world.rows("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping WHERE tran_id = 0x00")[0][0]
    world.execute("EXEC sandbox.replica_lag")
    world.capture()
    assert world.rows("SELECT id FROM cdc.dbo_t_CT ORDER BY id") == [(1,), (2,), (3,)]
    assert world.rows("SELECT 1 FROM cdc.dbo_t_CT WHERE id = 3 AND __$start_lsn < 0x" + dummy.hex()) == [(1,)]


def test_members_of_a_group_have_the_ids_of_replica_and_group(world: LocalWorld) -> None:
    """[doc] NULL where the database is in no group; each replica shows its own id."""
    ids = "SELECT replica_id, group_database_id FROM sys.databases WHERE name = DB_NAME()"
    assert world.rows(ids) == [(None, None)]
    world.execute("EXEC sandbox.replica_lag")
    ((primary, database),) = world.rows(ids)
    ((secondary, same),) = world.rows(ids, name=READER)
    assert primary != secondary
    assert database == same
    assert world.rows("SELECT replica_id FROM sys.databases WHERE name = 'master'") == [(None,)]


def test_a_read_only_database_takes_no_writes(world: LocalWorld) -> None:
    """[doc] ALTER DATABASE SET READ_ONLY: 3906 for everybody."""
    world.execute("ALTER DATABASE testdb SET READ_ONLY")
    assert world.error("INSERT t VALUES (5, 5)").number == 3906
    world.execute("ALTER DATABASE testdb SET READ_WRITE")
    world.execute("INSERT t VALUES (5, 5)")
