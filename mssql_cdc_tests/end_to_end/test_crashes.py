"""Killed processes, against a sandbox under load: the next run completes the work, and the check passes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.load import writing

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def background_run(place: Place, *options: str) -> subprocess.Popen[bytes]:
    """`mssql-cdc run` in a separate process."""
    arguments = ["run", "--config", str(place.config), "--warehouse", str(place.warehouse), *options]
    return subprocess.Popen(
        [sys.executable, "-m", "mssql_cdc.cli", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def changes(number: int) -> list[str]:
    """What the application writes in its n-th round: inserts, updates, deletes, key changes."""
    return [
        f"INSERT INTO dbo.orders VALUES ({number + 1}, N'order {number}')",
        f"INSERT INTO dbo.people VALUES ({number + 1}, N'person {number}')",
        f"UPDATE dbo.orders SET name = name + N'!' WHERE id > {number - 4}",
        f"DELETE FROM dbo.people WHERE id = {number - 6}",
        f"UPDATE dbo.orders SET id = -id WHERE id = {number - 8}",
    ]


@contextmanager
def busy(place: Place) -> Iterator[None]:
    """Two tables, and an application that writes to them until the block ends."""
    for table in ("orders", "people"):
        place.create(table, "id int NOT NULL PRIMARY KEY, name nvarchar(200) NULL")
    with writing(place, changes):
        yield


def commits(place: Place) -> int:
    """The number of commits in the change log of the orders."""
    return len(list(Path(place.uri("orders", "changes"), "_delta_log").glob("*.json")))


def kill_after(run: subprocess.Popen[bytes], place: Place, more: int) -> None:
    """Kill the run once it has made this many commits."""
    wanted = commits(place) + more
    try:
        while commits(place) < wanted:
            assert run.poll() is None, "the run ended before it was killed"
            time.sleep(0.02)
    finally:
        run.kill()
        run.wait()


def equal_and_nothing_twice(place: Place, *tables: str) -> None:
    """Assert that the next run catches up with the source and that the lake contains every change once."""
    assert place.catch_up() == 0
    assert place.check() == 0
    for table in tables:
        positions = [row["_pos"] for row in place.query("SELECT _pos FROM t WHERE op <> 'r'", table, "changes")]
        assert len(positions) == len(set(positions)), "a change was written twice"


@pytest.mark.feature("PRE-10", "ERR-06")
def test_runs_killed_under_load_neither_lose_nor_duplicate_changes(place: Place):
    with busy(place):
        # One run dies in its snapshot, which starts right away, the other one while streaming.
        for more in (1, 4):
            kill_after(background_run(place, "--seconds", "600"), place, more)
    equal_and_nothing_twice(place, "orders", "people")


def test_two_concurrent_runs_end_equal_to_the_source(place: Place):
    with busy(place):
        runs = [background_run(place, "--seconds", "15") for _ in range(2)]
        assert [run.wait(240) for run in runs] == [0, 0]
    equal_and_nothing_twice(place, "orders", "people")


@pytest.mark.feature("EVO-01", "EVO-02", "EVO-03")
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


@pytest.mark.sandbox
def test_a_deadlock_victim_retries_without_failing_its_table(place: Place, capsys: pytest.CaptureFixture[str]):
    place.create("t", "id int PRIMARY KEY, note nvarchar(max)")
    place.sql("INSERT dbo.t VALUES (1, N'one'), (2, N'two')")
    place.settle()
    # Only the chunk selects the rows themselves; planning selects counts and bounds.
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
