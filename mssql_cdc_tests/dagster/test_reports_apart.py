"""A table whose change log cannot be read: its check says so, those behind it are reported, an operator's run fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mssql_cdc_tests.dagster.kit import Location, failures, metadata
from mssql_cdc_tests.dagster.watching import watched

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
UNREADABLE = "the table could not be reported: "


@pytest.fixture
def filled(streaming: Location) -> Location:
    """Both tables have a row in the lake."""
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    streaming.settle()
    return streaming


@contextmanager
def unreadable(location: Location, name: str) -> Iterator[None]:
    """Take the files of a change log away, but not its log."""
    folder = Path(location.database().layout.root) / "dbo" / name / "changes"
    found = [file for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts]
    assert found
    for file in found:
        file.rename(file.with_suffix(".away"))
    try:
        yield
    finally:
        for file in found:
            file.with_suffix(".away").rename(file)


def test_a_window_by_hand_of_an_unreadable_change_log_fails_and_the_others_are_reported(filled: Location):
    before = {name: len(filled.materializations(filled.key(name))) for name in ("orders", "people")}
    with unreadable(filled, "orders"):
        done = filled.materialize(filled.key("orders"), filled.key("people"), partition=filled.window)
    assert not done.success
    assert "1 table could not be reported: " in failures(done)[0]
    assert "dbo.orders: " in failures(done)[0]
    assert len(filled.materializations(filled.key("orders"))) == before["orders"]
    assert len(filled.materializations(filled.key("people"))) == before["people"] + 1
    passed, severity, problem = filled.verdict("orders")
    assert (passed, severity, problem.startswith(UNREADABLE)) == (False, "ERROR", True)
    assert filled.checks("people")[0] is True


def test_a_snapshot_by_hand_of_an_unreadable_change_log_fails_and_the_others_are_reported(filled: Location):
    tags = {"dagster/asset_partition_range_start": "dbo.orders", "dagster/asset_partition_range_end": "dbo.people"}
    with unreadable(filled, "orders"):
        done = filled.materialize(filled.snapshots, tags=tags)
    assert not done.success
    assert "dbo.orders: " in failures(done)[0]
    read = [event.partition for event in filled.materializations(filled.snapshots)]
    assert read[0] == "dbo.people"
    assert filled.logged("people")["mssql_cdc/reads"] == 1
    passed, severity, problem = filled.verdict("orders")
    assert (passed, severity) == (False, "ERROR")
    assert problem.startswith("the snapshot could not be reported: ")
    assert filled.checks("people")[0] is True


@pytest.mark.parametrize("owed", [False, True], ids=["due", "owed"])
def test_a_stream_reports_an_unreadable_change_log_when_it_can_and_the_others_at_once(
    streaming: Location,
    spark: Any,
    owed: bool,  # noqa: FBT001
):
    """Each minute's report ended at the table."""
    watch = watched(streaming, spark)
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    streaming.shop.scan()
    watch.settle()
    watch.book.turn()
    watch.written.take()
    watch.ahead = timedelta(minutes=2)
    for account in watch.book.accounts.tables.values():
        account.counts.clear()
        (account.owed if owed else account.due).add(watch.location.setup.windows.start(watch.book.clock()))
    with unreadable(streaming, "orders"):
        with pytest.raises(dg.Failure, match=r"1 table could not be reported: \S+dbo\.orders: "):
            watch.book.turn()
        assert [key for key, _ in watch.windows("people")] == [watch.key()]
        passed, severity, problem = watch.location.verdict("orders")
        assert (passed, severity, problem.startswith(UNREADABLE)) == (False, "ERROR", True)
        watch.ahead = timedelta(minutes=4)
        watch.step()
        watch.book.turn()
        assert watch.location.verdict("orders")[2] == problem, "it is said once"
        evaluated = len(watch.location.evaluations("orders"))
    watch.ahead = timedelta(minutes=6)
    watch.book.turn()
    assert watch.location.checks("orders")[0] is True
    assert len(watch.location.evaluations("orders")) == evaluated + 1
    assert metadata(watch.location.materializations(watch.location.key("orders"))[0])["mssql_cdc/complete"] is False
