"""`mssql-cdc status`: lags as numbers, statuses and exit codes, with and without the source."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def look(place: Place, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the facts of each table by its name."""
    capsys.readouterr()
    code = place.command("status", "--json")
    return code, {one["table"].split(".")[-1]: one for one in json.loads(capsys.readouterr().out)}


@pytest.mark.sandbox
@pytest.mark.feature("DEP-01")
def test_lags_are_zero_when_caught_up_and_grow_from_the_oldest_missing_change(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    code, found = look(orders, capsys)
    one = found["orders"]
    assert (code, one["status"], one["log_lag_seconds"], one["current_lag_seconds"]) == (0, "streaming", 0, 0)
    assert (one["rows_in_5_minutes"], one["open_gaps"], one["source_error"]) == (2, 0, None)
    assert one["newest_commit"] is not None
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    first = look(orders, capsys)[1]["orders"]
    orders.sql("WAITFOR DELAY '00:00:01'", "INSERT INTO dbo.orders VALUES (4, N'four')")
    orders.settle()
    second = look(orders, capsys)[1]["orders"]
    assert second["log_lag_seconds"] >= first["log_lag_seconds"] + 1, "a newer change reduced the lag of the older one"
    assert second["current_lag_seconds"] == second["log_lag_seconds"]
    assert orders.catch_up() == 0
    last = look(orders, capsys)[1]["orders"]
    assert (last["log_lag_seconds"], last["current_lag_seconds"], last["rows_in_5_minutes"]) == (0, 0, 4)
    assert last["newest_commit"] > one["newest_commit"]


@pytest.mark.sandbox
def test_the_lag_of_a_current_table_is_larger_than_that_of_its_log_until_it_is_merged(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    orders.configure(delta_current_interval="3600")
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    assert orders.command("run", "--seconds", "3") == 0
    one = look(orders, capsys)[1]["orders"]
    assert one["log_lag_seconds"] == 0
    assert one["current_lag_seconds"] >= 1


@pytest.mark.sandbox
def test_a_capture_job_that_stands_still_makes_the_lags_grow_and_ends_with_code_3(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    orders.sql("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 300")
    try:
        code, found = look(orders, capsys)
        one = found["orders"]
        assert code == 3
        assert one["log_lag_seconds"] >= 300
        assert one["current_lag_seconds"] >= 300
        assert "Agent is not running" in one["capture_problem"]
        assert orders.command("status") == 3
        shown = capsys.readouterr()
        assert "5 min" in shown.out
        assert "Agent is not running" in shown.out
    finally:
        orders.sql("EXEC sandbox.agent_start")


def test_a_table_that_is_captured_later_is_new(orders: Place, capsys: pytest.CaptureFixture[str]):
    orders.create("later", "id int NOT NULL PRIMARY KEY")
    orders.settle()
    code, found = look(orders, capsys)
    assert (code, found["later"]["status"], found["later"]["log_lag_seconds"]) == (0, "new", None)


@pytest.mark.sandbox
def test_a_lost_table_ends_with_code_4(orders: Place, capsys: pytest.CaptureFixture[str]):
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')", "WAITFOR DELAY '00:00:00.050'")
    orders.sql("INSERT INTO dbo.orders VALUES (4, N'four')")
    orders.settle()
    orders.sql(
        "DECLARE @end binary(10) = sys.fn_cdc_get_max_lsn(); "
        "EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', @end, 100"
    )
    assert orders.catch_up() == 4
    code, found = look(orders, capsys)
    one = found["orders"]
    assert (code, one["status"], one["open_gaps"]) == (4, "lost", 1)
    assert "CDC cleanup removed changes" in one["detail"]
    assert one["log_lag_seconds"] > 0


def test_a_source_that_does_not_answer_leaves_the_lake_visible_and_ends_with_code_3(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    orders.configure(database_port="1", driver_loginTimeout="1")
    capsys.readouterr()
    assert orders.command("status") == 3
    shown = capsys.readouterr()
    line = next(line for line in shown.out.splitlines() if ".orders" in line)
    assert line.split()[1] == "streaming"
    assert line.count("–") == 2
    assert "source unreachable" in shown.out
    code, found = look(orders, capsys)
    assert (code, found["orders"]["log_lag_seconds"]) == (3, None)
    assert found["orders"]["newest_commit"] is not None


def test_watching_refreshes_until_it_is_interrupted(orders: Place):
    arguments = ["--config", str(orders.config), "--warehouse", str(orders.warehouse), "--watch", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mssql_cdc.cli", "status", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    looks = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    assert [[one["status"] for one in look] for look in looks] == [["streaming"], ["streaming"]]


def test_incremental_snapshots_pauses_and_signals_that_wait_are_shown(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    assert orders.command("snapshot", "--incremental", "--tables", "dbo.orders,dbo.o.*") == 0
    one = look(orders, capsys)[1]["orders"]
    assert (one["incremental_snapshot"], len(one["open_signals"])) == (None, 1)
    assert orders.command("snapshot", "--pause") == 0
    assert orders.catch_up() == 0
    one = look(orders, capsys)[1]["orders"]
    assert (one["incremental_snapshots_paused"], one["open_signals"]) == (True, [])
    assert one["incremental_snapshot"] == "incremental snapshot: waits for its turn (paused)"
    assert orders.command("snapshot", "--table", "dbo.orders") == 0
    capsys.readouterr()
    orders.command("status")
    shown = capsys.readouterr().out
    assert "signals that have not taken effect: " in shown
    assert orders.command("snapshot", "--resume") == 0
    assert orders.catch_up() == 0
    one = look(orders, capsys)[1]["orders"]
    found = [one[name] for name in ("incremental_snapshot", "incremental_snapshots_paused", "open_signals")]
    assert found == [None, False, []]


@pytest.mark.sandbox
@pytest.mark.parametrize(("mode", "code"), [("initial", 4), ("when_needed", 3)])
def test_a_restored_source_is_said_with_the_code_that_the_next_run_stands_for(
    orders: Place, capsys: pytest.CaptureFixture[str], mode: str, code: int
):
    """It ended with 0, and its lags were those of a log that is gone."""
    orders.sql("EXEC sandbox.restore_point", "INSERT dbo.orders VALUES (3, N'three')")
    orders.settle()
    assert orders.catch_up() == 0
    orders.sql("EXEC sandbox.restore_database")
    orders.settle()
    orders.configure(snapshot_mode=mode)
    ended, found = look(orders, capsys)
    assert ended == code
    assert "the source was restored or failed over" in found["orders"]["source_restored"]
    assert orders.command("status") == code
    assert "the source was restored or failed over" in capsys.readouterr().out
    assert orders.catch_up() == {3: 0, 4: 4}[code]
