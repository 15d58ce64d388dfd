"""Processes that are killed, against a sandbox under load: whoever comes next finishes, and the check is equal."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def background_run(place: Place, *options: str) -> subprocess.Popen[bytes]:
    """`mssql-cdc run` in a process of its own."""
    arguments = ["run", "--config", str(place.config), "--warehouse", str(place.warehouse), *options]
    return subprocess.Popen(
        [sys.executable, "-m", "mssql_cdc.cli", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def write_rows(place: Place, stop: threading.Event) -> None:
    """An application that goes on writing: inserts, updates, deletes, key changes."""
    number = 0
    while not stop.is_set():
        number += 1
        place.sql(
            f"INSERT INTO dbo.orders VALUES ({number}, N'order {number}')",
            f"INSERT INTO dbo.people VALUES ({number}, N'person {number}')",
            f"UPDATE dbo.orders SET name = name + N'!' WHERE id > {number - 5}",
            f"DELETE FROM dbo.people WHERE id = {number - 7}",
            f"UPDATE dbo.orders SET id = -id WHERE id = {number - 9}",
        )
        time.sleep(0.02)


def test_runs_killed_under_load_lose_and_double_nothing(place: Place):
    for table in ("orders", "people"):
        place.create(table, "id int NOT NULL PRIMARY KEY, name nvarchar(200) NULL")
    stop = threading.Event()
    writer = threading.Thread(target=write_rows, args=(place, stop))
    writer.start()
    try:
        # One dies somewhere around the snapshot, one while streaming; the times only say about where.
        for seconds in (9, 14):
            run = background_run(place, "--seconds", "60")
            time.sleep(seconds)
            run.kill()
            run.wait()
    finally:
        stop.set()
        writer.join()
    assert place.catch_up() == 0
    assert place.check() == 0
    for table in ("orders", "people"):
        streamed = place.query("SELECT _pos FROM t WHERE op <> 'r'", table, "changes")
        positions = [row["_pos"] for row in streamed]
        assert len(positions) == len(set(positions)), "a change was written twice"


def test_two_runs_at_once_end_equal(place: Place):
    for table in ("orders", "people"):
        place.create(table, "id int NOT NULL PRIMARY KEY, name nvarchar(200) NULL")
    stop = threading.Event()
    writer = threading.Thread(target=write_rows, args=(place, stop))
    writer.start()
    runs = [background_run(place, "--seconds", "15") for _ in range(2)]
    assert [run.wait(120) for run in runs] == [0, 0]
    stop.set()
    writer.join()
    assert place.catch_up() == 0
    assert place.check() == 0
    positions = [row["_pos"] for row in place.query("SELECT _pos FROM t WHERE op <> 'r'", "orders", "changes")]
    assert len(positions) == len(set(positions)), "a change was written twice"


@pytest.mark.feature("EVO-01", "EVO-02")
def test_second_capture_instance_while_streaming(place: Place):
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("INSERT INTO dbo.orders VALUES (2, N'two')", "ALTER TABLE dbo.orders ADD extra int NULL")
    place.enable("orders", instance="orders_2")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three', 33)", "UPDATE dbo.orders SET extra = 11 WHERE id = 1")
    assert place.catch_up() == 0
    rows = place.query("SELECT id, extra FROM t ORDER BY id", "orders")
    assert [(row["id"], row["extra"]) for row in rows] == [(1, 11), (2, None), (3, 33)]
    assert place.check() == 0


@pytest.mark.feature("SNP-12")
def test_cleanup_that_overtakes_us_is_data_loss_and_a_snapshot_mends_it(place: Place):
    place.configure(signal_data_collection=f"{place.database}.dbo.signals")
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.create("signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("DELETE FROM dbo.orders WHERE id = 1")
    # The mark moves down to the first commit of the same clock tick.
    time.sleep(0.1)
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.settle()
    place.sql(
        "DECLARE @to binary(10) = sys.fn_cdc_get_max_lsn(); "
        "EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_orders', @low_water_mark = @to"
    )
    assert place.catch_up() == 4
    assert place.catch_up() == 4
    data = f'{{"type": "blocking", "data-collections": ["{place.database}.dbo.orders"]}}'
    place.sql(f"INSERT INTO dbo.signals VALUES ('mend', 'execute-snapshot', '{data}')")
    assert place.catch_up() == 0
    assert place.check() == 0


def test_a_deadlock_victim_reads_again_without_failing_its_table(place: Place, capsys: pytest.CaptureFixture[str]):
    place.create("t", "id int PRIMARY KEY, note nvarchar(max)")
    place.sql("INSERT dbo.t VALUES (1, N'one'), (2, N'two')")
    place.settle()
    # Only the chunk asks for the rows themselves; planning asks for counts and bounds.
    place.sql(
        r"EXEC sandbox.fail_statement @pattern = N'note.*FROM \[dbo\]\.\[t\]', @number = 1205, @nth = 1, @times = 2"
    )
    try:
        assert place.catch_up() == 0
    finally:
        place.sql("EXEC sandbox.clear_faults")
    said = capsys.readouterr().err
    assert "2 rows, 1 of 1 chunks" in said
    assert "deadlock" not in said
    assert place.check() == 0
