"""`run --seconds` ends with what is still wrong with single tables, and not with what was over before."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.sandbox]


def fail_reads(place: Place, *, times: int) -> None:
    """Let reads of the changes of `orders` be chosen as the victims of deadlocks, which a retry helps."""
    place.sql(
        f"EXEC sandbox.fail_statement @pattern = N'SELECT TOP.*dbo_orders_CT', @number = 1205, @times = {times}",
        "INSERT INTO dbo.orders VALUES (3, N'three')",
    )
    place.settle()


def test_a_run_that_ends_while_a_table_fails_is_code_3(orders: Place, capsys: pytest.CaptureFixture[str]):
    """A retry may help, and none did before the time was over: code 0."""
    orders.configure(retriable_restart_connector_wait_ms="200")
    fail_reads(orders, times=100_000)
    assert orders.command("run", "--seconds", "4") == 3
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"{orders.database}.dbo.orders: " in said
    assert "1205" in said
    orders.sql("EXEC sandbox.clear_faults")
    assert orders.command("run", "--seconds", "4") == 0
    assert orders.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]


def test_a_run_that_ends_after_a_table_failed_and_was_read_is_code_0(orders: Place, capsys: pytest.CaptureFixture[str]):
    orders.configure(retriable_restart_connector_wait_ms="200")
    fail_reads(orders, times=6)
    assert orders.command("run", "--seconds", "6") == 0
    assert "1205" in capsys.readouterr().err
    assert orders.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]


def test_a_run_that_ends_while_a_current_table_cannot_be_updated_is_code_3(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """The error was only logged; a run in Dagster fails with it at its end."""
    place.create("orders", "id int NOT NULL PRIMARY KEY")
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.orders VALUES (1)", "INSERT INTO dbo.people VALUES (1)")
    place.settle()
    place.configure(delta_current_dbo_orders_partition_by="nonsense")
    assert place.command("run", "--seconds", "6") == 3
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"{place.database}.dbo.orders: " in said
    assert "names 'nonsense'" in said
    assert "dbo.people" not in said
    assert place.query("SELECT COUNT(*) AS n FROM t", "people") == [{"n": 1}]
    place.configure()
    assert place.command("run", "--seconds", "6") == 0
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 1}]
