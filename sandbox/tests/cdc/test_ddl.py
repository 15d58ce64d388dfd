"""DDL on tracked tables: what the change table and the DDL history show of it."""

from __future__ import annotations

from tests.cdc.client import World

TABLE = "CREATE TABLE dbo.t (id int PRIMARY KEY, a varchar(10), b int)"
HISTORY = "SELECT OBJECT_NAME(object_id), required_column_update, ddl_command FROM cdc.ddl_history ORDER BY ddl_lsn"


def prepared(world: World) -> None:
    world.execute(TABLE)
    world.enable("t")
    world.stop_capture()
    world.execute("INSERT t VALUES (1, 'one', 1)")


def test_added_column_is_never_captured(world: World) -> None:
    """[doc] the change table is unchanged, a history row says so."""
    prepared(world)
    world.execute("ALTER TABLE dbo.t ADD c int")
    world.execute("INSERT t VALUES (2, 'two', 2, 2)")
    world.execute("UPDATE t SET c = 5, b = 7 WHERE id = 2")
    world.capture()
    rows = world.changes("dbo_t", "__$operation, __$update_mask, id, a, b")
    assert [(row[0], row[1].hex(), *row[2:]) for row in rows] == [
        (2, "07", 1, "one", 1),
        (2, "07", 2, "two", 2),
        (3, "04", 2, "two", 2),
        (4, "04", 2, "two", 7),
    ]
    assert world.rows(HISTORY) == [("dbo_t_CT", 0, "ALTER TABLE dbo.t ADD c int")]


def test_dropped_column_stays_and_is_null(world: World) -> None:
    """[doc] rows from before keep their value, whenever they are captured."""
    prepared(world)
    world.execute("ALTER TABLE dbo.t DROP COLUMN a")
    world.execute("INSERT t VALUES (2, 2)")
    world.capture()
    assert world.changes("dbo_t", "id, a, b") == [(1, "one", 1), (2, None, 2)]
    assert world.rows(HISTORY) == [("dbo_t_CT", 0, "ALTER TABLE dbo.t DROP COLUMN a")]


def test_altered_type_follows_with_the_capture_job(world: World) -> None:
    """[doc] the change table is altered later, by the job; captured_columns too."""
    prepared(world)
    world.execute("ALTER TABLE dbo.t ALTER COLUMN b bigint")
    world.execute("INSERT t VALUES (2, 'two', 5000000000)")
    columns = (
        "SELECT TYPE_NAME(system_type_id) FROM sys.columns WHERE object_id = OBJECT_ID('cdc.dbo_t_CT') AND name = 'b'"
    )
    assert world.value(columns) == "int"
    world.capture()
    assert world.value(columns) == "bigint"
    assert world.value("SELECT column_type FROM cdc.captured_columns WHERE column_name = 'b'") == "bigint"
    assert world.changes("dbo_t", "id, b") == [(1, 1), (2, 5_000_000_000)]
    assert [row[:2] for row in world.rows(HISTORY)] == [("dbo_t_CT", 1)]


def test_a_type_that_captured_values_do_not_fit_is_an_error_of_the_scan(world: World) -> None:
    """[doc] 22976 behind the reason, in sys.dm_cdc_errors; the change table keeps its type, capture goes on."""
    prepared(world)
    world.execute("DELETE t")
    world.capture()
    world.execute("ALTER TABLE dbo.t ALTER COLUMN a varchar(2)")
    world.execute("INSERT t VALUES (2, 'ab', 2)")
    world.capture()
    assert [row[0] for row in world.rows("SELECT error_number FROM sys.dm_cdc_errors")] == [2628, 22976]
    kept = "SELECT max_length FROM sys.columns WHERE object_id = OBJECT_ID('cdc.dbo_t_CT') AND name = 'a'"
    assert world.value(kept) == 10
    assert world.changes("dbo_t", "id, a")[-1] == (2, "ab")


def test_nullability_is_invisible(world: World) -> None:
    """[doc]."""
    prepared(world)
    world.execute("ALTER TABLE dbo.t ALTER COLUMN b int NOT NULL")
    world.capture()
    assert [row[:2] for row in world.rows(HISTORY)] == [("dbo_t_CT", 0)]


def test_ddl_history_lags_the_change_rows(world: World) -> None:
    """[fab] it is filled by a later pass."""
    prepared(world)
    world.execute("ALTER TABLE dbo.t ADD c int")
    world.execute("EXEC sys.sp_cdc_scan @maxscans = 1")
    assert len(world.changes("dbo_t")) == 1
    assert world.rows(HISTORY) == []
    world.execute("EXEC sys.sp_cdc_scan @maxscans = 1")
    assert len(world.rows(HISTORY)) == 1


def test_ddl_history_has_a_row_per_instance_and_is_backfilled(world: World) -> None:
    """[fab] older DDL is entered for a newer instance too."""
    prepared(world)
    world.execute("ALTER TABLE dbo.t ADD c int")
    world.capture()
    world.enable_table("t", capture_instance="N'second'")
    assert sorted(row[0] for row in world.rows(HISTORY)) == ["dbo_t_CT", "second_CT"]
    answer = world.execute("EXEC sys.sp_cdc_get_ddl_history @capture_instance = N'second'")
    assert answer.names[0][:4] == ["source_schema", "source_table", "capture_instance", "required_column_update"]
    assert len(answer.sets[0]) == 1


def test_second_instance_has_the_new_column_and_both_capture(world: World) -> None:
    """[doc] the usual way to evolve a schema."""
    prepared(world)
    world.execute("ALTER TABLE dbo.t ADD c int")
    world.enable_table("t", capture_instance="N'second'")
    world.execute("INSERT t VALUES (2, 'two', 2, 2)")
    world.capture()
    assert world.changes("dbo_t", "id") == [(1,), (2,)]
    assert world.changes("second", "id, c") == [(2, 2)]


def test_renamed_table_keeps_its_instance(world: World) -> None:
    """[doc] source_object_id follows, the instance's name stays."""
    prepared(world)
    world.execute("EXEC sp_rename 'dbo.t', 'renamed'")
    world.execute("INSERT renamed VALUES (2, 'two', 2)")
    world.capture()
    assert len(world.changes("dbo_t")) == 2
    assert world.value("SELECT OBJECT_NAME(source_object_id) FROM cdc.change_tables") == "renamed"


def test_dropped_table_takes_its_instance_along(world: World) -> None:
    """[doc] DROP TABLE is allowed; metadata goes too."""
    prepared(world)
    world.execute("DROP TABLE dbo.t")
    world.capture()
    assert world.rows("SELECT * FROM cdc.change_tables") == []
    assert world.value("SELECT OBJECT_ID('cdc.dbo_t_CT')") is None


def test_key_of_a_tracked_table_cannot_be_dropped(world: World) -> None:
    """[doc] 22979 for the constraint, 22983 for the chosen index."""
    world.execute("CREATE TABLE dbo.t (id int NOT NULL, CONSTRAINT PK_t PRIMARY KEY (id))")
    world.enable("t")
    assert world.error("ALTER TABLE dbo.t DROP CONSTRAINT PK_t").number == 22979
