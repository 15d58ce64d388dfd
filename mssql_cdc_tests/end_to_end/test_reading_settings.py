"""Settings of reading against a source: what is locked, how changes are read, in pages and fetches of which size."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable

from mssql_cdc.config import load_connector
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.end_to_end.kit import Place


def statements(place: Place, pattern: str) -> list[str]:
    """The texts that the server has logged and that contain the pattern."""
    rows = place.control.rows("SELECT text FROM sandbox.statements", doing="reading the log of statements")
    return [row[0] for row in rows if row[0] and pattern in row[0]]


def fill(place: Place) -> None:
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two'), (3, N'three')")
    place.settle()
    place.sql("EXEC sandbox.statement_log")


@pytest.mark.sandbox
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-14", "SNP-15")
def test_exclusive_isolation_locks_tables_with_a_key_until_they_are_read(place: Place):
    place.configure(snapshot_isolation_mode="exclusive", snapshot_max_threads="1", snapshot_fetch_size="2")
    fill(place)
    assert place.catch_up() == 0
    assert [text for text in statements(place, "TABLOCK, HOLDLOCK") if "[orders]" in text]
    assert place.check() == 0
    place.sql("DELETE FROM dbo.orders WHERE id = 1")
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.sandbox
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-16")
def test_a_snapshot_that_may_not_lock_refuses_tables_without_a_key_alone(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    place.configure(snapshot_locking_mode="none")
    place.create("notes", "what nvarchar(50) NULL")
    fill(place)
    assert place.command("run", "--until-caught-up", "--timeout", "60") == 2
    said = capsys.readouterr().err
    assert "snapshot.locking.mode=none" in said
    assert "dbo.notes" in said
    assert not statements(place, "TABLOCK")
    assert len(place.query("SELECT op FROM t", "orders", "changes")) == 3


@pytest.mark.sandbox
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("STR-05")
@pytest.mark.parametrize(("mode", "function"), [("function", True), ("direct", False)])
def test_changes_are_read_as_the_query_mode_says(place: Place, mode: str, *, function: bool):
    place.configure(data_query_mode=mode, query_fetch_size="1")
    fill(place)
    assert place.catch_up() == 0
    place.sql("UPDATE dbo.orders SET name = N'zwei' WHERE id = 2", "DELETE FROM dbo.orders WHERE id = 3")
    assert place.catch_up() == 0
    assert bool(statements(place, "fn_cdc_get_all_changes_dbo_orders")) is function
    assert [row["op"] for row in place.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")] == [*"rrrud"]
    assert place.check() == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("STR-05", "EVO-02")
@pytest.mark.parametrize("mode", ["direct", "function"])
def test_changes_around_a_dropped_column_are_read_until_a_new_instance_takes_over(place: Place, mode: str):
    """A function returns the column as well: the advice to make a new instance did not mend a read of the old one."""
    place.configure(data_query_mode=mode)
    fill(place)
    assert place.catch_up() == 0
    place.sql(
        "UPDATE dbo.orders SET name = N'zwei' WHERE id = 2",
        "ALTER TABLE dbo.orders DROP COLUMN name",
        "INSERT INTO dbo.orders VALUES (4)",
    )
    place.enable("orders", instance="orders_2")
    place.sql("INSERT INTO dbo.orders VALUES (5)")
    place.settle()
    assert place.catch_up() == 0
    found = place.query("SELECT op, after['id'] AS id, after['name'] AS name FROM t ORDER BY _pos", "orders", "changes")
    assert [(row["op"], row["id"], row["name"]) for row in found[3:]] == [
        ("u", 2, "zwei"), ("c", 4, None), ("c", 5, None)
    ]  # fmt: skip
    place.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'orders', "
        "@capture_instance = N'dbo_orders'",
        "DELETE FROM dbo.orders WHERE id = 1",
    )
    place.settle()
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("STR-03")
@pytest.mark.parametrize("mode", ["direct", "function"])
def test_a_range_that_several_tasks_share_is_one_commit_of_all_its_rows(
    place: Place, mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("mssql_cdc.capture.range.ROWS_PER_TASK", 4)
    place.configure(data_query_mode=mode)
    fill(place)
    assert place.catch_up() == 0
    before = DeltaTable(place.uri("orders", "changes")).version()
    place.sql(
        "UPDATE dbo.orders SET name = CONCAT(name, N'!')",
        *(f"INSERT INTO dbo.orders VALUES ({number}, N'more')" for number in range(4, 10)),
        "DELETE FROM dbo.orders WHERE id < 3",
    )
    place.settle()
    capsys.readouterr()
    assert place.catch_up() == 0
    assert "reading 14 change rows of 1 tables in 4 tasks" in capsys.readouterr().err
    assert DeltaTable(place.uri("orders", "changes")).version() == before + 1
    found = place.query("SELECT op, COALESCE(after, before)['id'] AS id FROM t ORDER BY _pos", "orders", "changes")
    assert [row["op"] for row in found] == [*"rrruuuccccccdd"]
    assert [row["id"] for row in found] == [1, 2, 3, 1, 2, 3, *range(4, 10), 1, 2]
    assert place.check() == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("HB-03")
def test_a_heartbeat_statement_that_fails_ends_the_connector_and_names_itself(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    fill(place)
    place.configure(heartbeat_interval_ms="1", heartbeat_action_query="INSERT INTO dbo.orders VALUES (1, N'twice')")
    assert place.command("run", "--until-caught-up", "--timeout", "60") == 3
    assert "running heartbeat.action.query" in capsys.readouterr().err


@pytest.mark.sandbox
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-22")
def test_columns_that_filters_hide_are_not_read(place: Place):
    place.configure(column_exclude_list="dbo.orders.secret,dbo.orders.picture")
    place.create("orders", "id int NOT NULL PRIMARY KEY, secret nvarchar(50) NULL, picture varbinary(max) NULL, n int")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'whispered', 0x01, 7), (2, NULL, NULL, 8)")
    place.settle()
    place.sql("EXEC sandbox.statement_log")
    assert place.catch_up() == 0
    read = [text for text in statements(place, "FROM [dbo].[orders]") if "ORDER BY" in text or "AS [c0_0]" in text]
    assert read
    assert not [text for text in read if "[secret]" in text or "[picture]" in text]
    assert place.query("SELECT id, n FROM t ORDER BY id", "orders") == [{"id": 1, "n": 7}, {"id": 2, "n": 8}]
    place.sql("UPDATE dbo.orders SET secret = N'shouted', n = 9 WHERE id = 1")
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.sandbox
@pytest.mark.spark
@pytest.mark.slow
def test_columns_that_filters_hide_are_not_read_by_a_repair(place: Place, spark: Any):
    place.configure(column_exclude_list="dbo.orders.secret")
    place.create("orders", "id int NOT NULL PRIMARY KEY, secret nvarchar(50) NULL, n int")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'whispered', 7), (2, NULL, 8)")
    place.settle()
    assert place.catch_up() == 0
    spark.sql(f"UPDATE delta.`{place.uri('orders')}` SET n = 9 WHERE id = 1").collect()
    place.sql("EXEC sandbox.statement_log")
    assert place.command("check", "--repair") == 0
    read = [text for text in statements(place, "FROM [dbo].[orders] AS t") if "AS [c0_0]" in text]
    assert read
    assert not [text for text in read if "[secret]" in text]
    assert place.check() == 0


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-17")
@pytest.mark.parametrize("key", ["", ", id int NOT NULL PRIMARY KEY DEFAULT 1"])
def test_a_snapshot_waits_for_a_lock_as_long_as_it_may(place: Place, capsys: pytest.CaptureFixture[str], key: str):
    place.configure(
        snapshot_lock_timeout_ms="50",
        database_query_timeout_ms="5000",
        retriable_restart_connector_wait_ms="100",
        errors_max_retries="1",
    )
    place.create("notes", f"what nvarchar(50) NULL{key}")
    place.sql("INSERT INTO dbo.notes (what) VALUES (N'one')")
    place.settle()
    with control(load_connector(place.config).connection, place.database, autocommit=False) as writer:
        writer.execute("UPDATE dbo.notes SET what = N'two'", doing="holding a lock")
        assert place.command("run", "--until-caught-up", "--timeout", "20") == 3  # Tried again until then.
        assert "Lock request time out period exceeded" in capsys.readouterr().err
        writer.rollback()
    assert place.catch_up() == 0
    assert place.query("SELECT after.what AS what FROM t", "notes", "changes") == [{"what": "one"}]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-33")
def test_the_log_tells_the_rows_and_chunks_of_a_snapshot(place: Place, capsys: pytest.CaptureFixture[str]):
    place.create("orders", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.orders VALUES (1), (2), (3), (4), (5)")
    place.settle()
    with (
        patch("mssql_cdc.capture.snapshot.take.CHUNK_ROWS", 2),
        patch("mssql_cdc.capture.snapshot.take.GROUP_CHUNKS", 1),
    ):
        assert place.catch_up() == 0
    lines = [line[9:] for line in capsys.readouterr().err.splitlines() if "snapshot of" in line]
    name = f"{place.database}.dbo.orders"
    assert lines == [
        f"snapshot of {name}: {rows} rows, {chunks} chunks"
        for rows, chunks in ((2, "1 of about 3"), (4, "2 of about 3"), (5, "3 of 3"))
    ]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-30")
def test_a_snapshot_waits_before_it_reads_and_its_tables_before_they_stream(place: Place):
    place.configure(snapshot_delay_ms="7000", streaming_delay_ms="9000")
    place.create("orders", "id int NOT NULL PRIMARY KEY")
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.orders VALUES (1)", "INSERT INTO dbo.people VALUES (1)")
    place.settle()
    waits: list[tuple[float, list[str]]] = []
    now = 1000.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        waits.append((seconds, [table for table in ("orders", "people") if is_begun(place, table)]))

    with (
        patch("mssql_cdc.capture.snapshot.delays.sleep", sleep),
        patch("mssql_cdc.capture.snapshot.delays.monotonic", lambda: now),
        patch("mssql_cdc.capture.snapshot.chunk_groups.monotonic", lambda: now),
    ):
        assert place.catch_up() == 0
        assert waits == [(7.0, []), (9.0, ["orders", "people"])]
        place.sql("INSERT INTO dbo.orders VALUES (2)")
        assert place.catch_up() == 0
    assert len(waits) == 2
    assert place.check() == 0


def is_begun(place: Place, table: str) -> bool:
    """Whether the table has rows in the lake, and does not stream."""
    layout = Layout(str(place.warehouse), "shop", place.database)
    entry = load_offsets(layout).entries.get(f"{place.database}.dbo.{table}")
    return entry is not None and entry.status == "snapshot" and DeltaTable.is_deltatable(place.uri(table, "changes"))
