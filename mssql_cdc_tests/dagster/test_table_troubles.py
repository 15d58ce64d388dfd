"""A continuous run in which one table is in trouble: the run and the other tables go on."""

from __future__ import annotations

import threading
import time

import dagster as dg
import pytest
from deltalake import DeltaTable

from mssql_cdc_tests.dagster.kit import Location, failures
from mssql_cdc_tests.dagster.sensing import ask

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def rows(location: Location, name: str, kind: str) -> int:
    uri = location.database().layout.root + f"/dbo/{name}/{kind}"
    return DeltaTable(uri).to_pyarrow_dataset().count_rows() if DeltaTable.is_deltatable(uri) else 0


def until(condition) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_current_table_that_cannot_be_updated_does_not_end_the_run(streaming):
    location = streaming.reloaded(
        dagster_max_run_seconds=15, poll_interval_ms=50, delta_current_dbo_orders_partition_by="nonsense"
    )
    shop = location.shop
    shop.run("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")

    def go_on() -> None:
        until(lambda: rows(location, "people", "current"))  # The update of `orders` has failed at the same time.
        shop.run("INSERT INTO dbo.orders VALUES (2, N'two')", "INSERT INTO dbo.people VALUES (2, N'Bob')")

    request = ask(location)
    writer = threading.Thread(target=go_on)
    writer.start()
    done = location.run(request)
    writer.join()
    assert rows(location, "people", "current") == 2, "the run ended with the trouble of another table"
    assert rows(location, "orders", "changes") == 2
    assert not done.success
    (failure,) = failures(done)
    assert "names 'nonsense'" in failure
    passed, severity, problem = location.verdict("orders")
    assert (passed, severity) == (False, "ERROR")
    assert "the current table is not updated" in problem
    assert "names 'nonsense'" in problem
    assert location.checks("people")[0] is True


def test_a_table_that_cannot_be_read_does_not_end_the_run(streaming):
    location = streaming.reloaded(dagster_max_run_seconds=15, poll_interval_ms=50)
    shop = location.shop
    shop.run("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    shop.run("EXEC sandbox.fail_statement @pattern = N'SELECT TOP.*dbo_orders_CT', @number = 208, @times = 1000")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")

    def go_on() -> None:
        until(lambda: rows(location, "people", "changes"))
        shop.run("INSERT INTO dbo.people VALUES (2, N'Bob')")

    request = ask(location)
    writer = threading.Thread(target=go_on)
    writer.start()
    done = location.run(request)
    writer.join()
    shop.run("EXEC sandbox.clear_faults")
    assert rows(location, "people", "changes") == 2, "the run ended with the trouble of another table"
    assert rows(location, "people", "current") == 2
    assert not done.success
    (failure,) = failures(done)
    assert "dbo.orders" in failure
    assert "dbo.people" not in failure
    assert location.checks("orders")[0] is False
    assert location.checks("people")[0] is True


@pytest.mark.parametrize("more", [{}, {"signal_data_collection": "dbo.signals"}], ids=["alone", "signals"])
def test_filters_that_exclude_every_table_of_the_lake_are_a_red_tick_until_they_are_corrected(
    streaming, more: dict[str, str]
):
    """The sensor skipped green; a signal table, which every filter lets through, is no table to capture."""
    columns = "id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048)"
    streaming.shop.create("signals", columns, capture=bool(more))
    location = streaming.reloaded(**more)
    location.settle()
    mistaken = location.reloaded(table_include_list="dbo.order", **more)
    mistaken.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    mistaken.shop.scan()
    for _ in range(2):
        with pytest.raises(dg.Failure, match=r"table\.include\.list exclude every table that is enabled for CDC"):
            mistaken.tick()
    location = mistaken.reloaded(table_include_list="dbo.orders", **more)
    location.settle()
    assert rows(location, "orders", "changes") == 1
