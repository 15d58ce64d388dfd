"""What is reported when: windows that begin, end, change, are late or were missed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

from mssql_cdc.defs import book as book_module
from mssql_cdc.defs.book import Book
from mssql_cdc.defs.judge import Judge
from mssql_cdc.defs.recorder import Event
from mssql_cdc.errors import (
    DeadlockError,
    OvertakenError,
    SourceUnavailableError,
    StaleReaderError,
    StaleStructureError,
)
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.run.known_lags import Captured
from mssql_cdc.source.values import CaptureHealth
from mssql_cdc_tests.dagster.kit import Location, metadata
from mssql_cdc_tests.dagster.watching import HOUR, Watch, Written, overtake, watched

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def watch(streaming: Location, spark: Any) -> Watch:
    return watched(streaming, spark)


def test_a_quiet_table_is_reported_when_a_window_begins_and_when_it_ends(watch):
    watch.settle()
    watch.book.turn()
    ((first, found),) = watch.windows("orders")
    assert (first, found["dagster/partition_row_count"], found["mssql_cdc/complete"]) == (watch.key(), 0, False)
    watch.ahead = timedelta(minutes=29)
    watch.step()
    watch.book.turn()
    assert watch.windows("orders") == [], "nothing has changed"
    watch.ahead = timedelta(minutes=31)
    watch.step()
    watch.book.turn()
    assert [key for key, _ in watch.windows("orders")] == [watch.key()], "what is not captured yet may still come"
    watch.ahead = timedelta(minutes=33)
    watch.step()
    watch.book.turn()
    checks = [event for event in watch.written.events if isinstance(event, dg.AssetCheckEvaluation)]
    assert {(event.partition, event.passed) for event in checks} == {(first, True)}
    assert [(key, found["mssql_cdc/complete"]) for key, found in watch.windows("orders")] == [(first, True)]


def test_a_window_that_changes_is_reported_once_a_minute_with_all_its_rows(watch):
    shop = watch.location.shop
    watch.settle()
    watch.book.turn()
    watch.windows("orders")
    for number in range(2):
        shop.run(f"INSERT INTO dbo.orders VALUES ({number}, N'one')")
        shop.scan()
        watch.step()
        watch.book.turn()
        assert watch.windows("orders") == []
    watch.ahead = timedelta(seconds=60)
    watch.book.turn()
    (found,) = [found for _, found in watch.windows("orders")]
    assert (found["dagster/partition_row_count"], found["mssql_cdc/inserts"]) == (2, 2)
    watch.ahead = timedelta(seconds=90)
    watch.book.turn()
    assert watch.windows("orders") == []


def test_rows_are_counted_in_the_window_of_their_commit_time(watch):
    shop = watch.location.shop
    watch.settle()
    watch.book.turn()
    watch.windows("orders")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "EXEC sandbox.advance_clock @seconds = 3600")
    shop.run("INSERT INTO dbo.orders VALUES (2, N'two'), (3, N'three')")
    shop.scan()
    done = watch.step()
    assert done.range is not None
    watch.ahead = HOUR + timedelta(minutes=5)
    watch.settle()
    watch.book.finish()
    rows = {key: found["dagster/partition_row_count"] for key, found in watch.windows("orders")}
    assert rows[watch.key(1)] == 1
    assert rows[watch.key()] == 2


def test_a_loop_that_hangs_sends_no_heartbeat_and_reads_no_window(watch):
    watch.settle()
    watch.book.turn()
    watch.written.take()
    watch.ahead = 2 * HOUR
    watch.book.turn()
    events = watch.written.take()
    assert [event for event in events if isinstance(event, dg.AssetMaterialization)] == []
    watch.step()
    watch.book.turn()
    events = watch.written.take()
    materialized = {event.asset_key for event in events if isinstance(event, dg.AssetMaterialization)}
    assert watch.location.key("orders") in materialized


def test_windows_that_were_missed_are_reported_by_the_next_run(watch):
    shop = watch.location.shop
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    shop.scan()
    watch.settle()
    watch.ahead = 3 * HOUR
    again = Book(watch.location.setup, watch.book.database, watch.written, clock=watch.book.clock)
    again.add(watch.step())
    again.turn()
    found = {key: one["dagster/partition_row_count"] for key, one in watch.windows("orders")}
    assert found == {watch.key(3): 1, watch.key(2): 0, watch.key(1): 0, watch.key(): 0}
    third = Book(watch.location.setup, watch.book.database, watch.written, clock=watch.book.clock)
    third.add(watch.step())
    third.turn()
    assert [key for key, _ in watch.windows("orders")] == [watch.key()]


@dataclass
class Slow(Written):
    """Counts events without storing them; each takes 20 ms of a watch's clock."""

    watch: Watch | None = None

    def write(self, event: Event, *, of_run: bool = True) -> None:  # noqa: ARG002 (a test has no run)
        assert self.watch is not None
        self.watch.ahead += timedelta(milliseconds=20)
        self.events.append(event)


def test_windows_that_were_missed_for_weeks_hold_nothing_up(watch):
    """A new instance, or new tables, owe thousands: the heartbeat and the present are told first, and the run ends."""
    watch.settle()
    watch.ahead = timedelta(minutes=5)
    location = watch.location.reloaded(since=watch.book.clock() - timedelta(days=60))
    written = Slow(watch.written.instance, watch=watch)
    book = Book(location.setup, watch.book.database, written, clock=watch.book.clock)
    book.add(watch.step())
    book.turn()
    events = [event for event in written.take() if isinstance(event, dg.AssetMaterialization)]
    windows = [event for event in events if event.partition is not None]
    tables = len(location.tables)
    assert location.setup.heartbeat_key in [event.asset_key for event in events[: 3 * tables + 1]]
    assert {event.partition for event in windows[:tables]} == {watch.key()}, "the current window comes first"
    assert tables < len(windows) <= tables + 100
    book.turn()
    again = [event.partition for event in written.take() if isinstance(event, dg.AssetMaterialization)]
    assert 0 < len(again) <= 100
    assert watch.key() not in again, "only what is owed is left to be told"
    book.finish()
    assert len(written.take()) <= 20 * tables + 1_000
    assert any(account.owed for account in book.accounts.tables.values()), "the next run owes them"


def test_a_window_that_was_reported_before_its_end_comes_before_missing_ones(watch):
    """A run that ends early must not leave a window behind that shows too few rows and is not owed any more."""
    watch.settle()
    watch.book.turn()
    first = watch.key()
    watch.written.take()
    watch.ahead = 30 * 24 * HOUR
    book = Book(watch.location.setup, watch.book.database, watch.written, clock=watch.book.clock)
    book.add(watch.step())
    book.turn()
    assert watch.windows("orders")[0][0] == first


def test_the_heartbeat_goes_on_once_a_minute_when_nothing_changes_and_not_while_late(watch):
    watch.settle()
    watch.book.turn()
    assert beats(watch) == 1
    for seconds, expected in ((30, 0), (61, 1), (90, 0), (125, 1)):
        watch.ahead = timedelta(seconds=seconds)
        watch.step()
        watch.book.turn()
        assert beats(watch) == expected, seconds
    watch.location.shop.run("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 300")
    watch.ahead = timedelta(seconds=300)
    watch.step()
    watch.book.turn()
    assert beats(watch) == 0
    watch.location.shop.run("EXEC sandbox.agent_start")
    watch.location.shop.scan()
    watch.settle()
    watch.book.turn()
    assert beats(watch) == 1


def test_a_window_is_not_complete_while_capture_works_off_a_backlog(watch):
    """Capture stood still for an hour. Its sessions end far from the log's end, and between two there is no row."""
    shop = watch.location.shop
    watch.settle()
    watch.book.turn()
    watch.windows("orders")
    for number, seconds in ((1, 40 * 60), (2, 40 * 60)):
        shop.run(f"EXEC sandbox.advance_clock @seconds = {seconds}", f"INSERT INTO dbo.orders VALUES ({number}, N'x')")
    shop.run("EXEC sandbox.advance_clock @seconds = 3000", "EXEC sys.sp_cdc_scan @maxtrans = 1, @maxscans = 1")
    watch.ahead = timedelta(minutes=130)
    watch.settle()
    watch.book.turn()
    assert watch.key(1) not in [key for key, _ in watch.windows("orders")], "its second row is not captured yet"
    assert watch.book.progress.through is not None
    assert watch.book.progress.through <= watch.book.clock() - timedelta(minutes=89), "the row that was captured last"
    shop.scan()
    watch.ahead += timedelta(minutes=3)
    shop.run("EXEC sandbox.advance_clock @seconds = 180", "EXEC sys.sp_cdc_scan")
    watch.settle()
    watch.ahead += timedelta(minutes=1)
    watch.settle()
    watch.book.turn()
    found = {key: one for key, one in watch.windows("orders") if one["mssql_cdc/complete"]}
    assert found[watch.key(1)]["dagster/partition_row_count"] == 2


def test_a_window_is_not_complete_before_capture_scans_from_its_schedule(watch):
    """Between two scans of a job that runs once an hour nothing is wrong, and nothing is known."""
    shop = watch.location.shop
    watch.settle()
    watch.book.turn()
    watch.windows("orders")
    shop.run("EXEC sys.sp_cdc_change_job @job_type = N'capture', @continuous = 0, @pollinginterval = 0")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "EXEC sandbox.advance_clock @seconds = 2400")
    watch.ahead = timedelta(minutes=40)
    watch.step()
    watch.book.turn()
    assert [key for key, one in watch.windows("orders") if one["mssql_cdc/complete"]] == []
    assert watch.book.progress.through < watch.book.clock() - timedelta(minutes=39)
    assert watch.location.checks("orders")[0] is True, "the job does what it is asked for"
    shop.scan()
    watch.settle()
    shop.run("EXEC sandbox.advance_clock @seconds = 60")
    watch.ahead += timedelta(minutes=1)
    watch.step()
    watch.book.turn()
    found = {key: one["dagster/partition_row_count"] for key, one in watch.windows("orders")}
    assert found[watch.key(1)] == 1


def test_an_idle_step_says_nothing_of_what_was_captured_after_it_began(watch):
    """The book would ask of a scan that the step has not seen."""
    watch.settle()
    through = watch.book.progress.through
    watch.ahead = timedelta(minutes=10)
    before = watch.book.clock() - timedelta(minutes=4)
    done = watch.follower.attempt()
    watch.location.shop.run("EXEC sandbox.advance_clock @seconds = 600", "EXEC sys.sp_cdc_scan")
    watch.book.add(done, Captured(before, None))
    assert watch.book.progress.through == through
    watch.book.add(done, Captured(before, before))
    assert watch.book.progress.through == before


@pytest.mark.parametrize("scanned", [0, 1])
def test_a_window_by_hand_is_not_complete_before_capture_has_scanned_after_it(watch, scanned):
    """A commit of 10:59:59 is captured at 11:00:04; the operator asked at 11:00:02."""
    watch.settle()
    window = watch.location.setup.windows.start(watch.book.clock())
    end = window + HOUR
    book = Book(watch.location.setup, watch.book.database, watch.written, only=set(), bound=end, clock=watch.book.clock)
    watch.ahead = end - watch.book.clock() + timedelta(seconds=3)
    now = book.clock()
    book.reached(CaptureHealth(now, scanned=now - timedelta(seconds=scanned)))
    assert not book.progress.has_ended(window)
    now += timedelta(minutes=2)
    book.reached(CaptureHealth(now, scanned=now - timedelta(seconds=scanned)))
    assert book.progress.has_ended(window) is bool(scanned), "what a scan that goes on has passed is not known"


def beats(watch: Watch) -> int:
    """The heartbeats since the last call."""
    events = [event for event in watch.written.take() if isinstance(event, dg.AssetMaterialization)]
    return sum(event.asset_key == watch.location.setup.heartbeat_key for event in events)


def test_a_capture_that_stands_still_leaves_windows_missing_and_warns(watch):
    shop = watch.location.shop
    watch.settle()
    watch.book.turn()
    watch.windows("orders")
    shop.run("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 300")
    watch.ahead = HOUR
    watch.step()
    watch.book.turn()
    events = watch.written.take()
    assert not [event for event in events if isinstance(event, dg.AssetMaterialization)]
    checks = [event for event in events if isinstance(event, dg.AssetCheckEvaluation)]
    assert {(event.passed, event.severity.value) for event in checks} == {(False, "WARN")}
    assert {"Agent is not running" in str(event.metadata["mssql_cdc/problem"].value) for event in checks} == {True}
    lags = late_lags(events)
    assert set(lags) >= {watch.location.key("orders"), watch.location.current("orders")}
    assert min(lags.values()) >= 240
    shop.run("EXEC sandbox.advance_clock @seconds = 60")
    watch.ahead = HOUR + timedelta(minutes=1)
    watch.book.turn()
    assert min(late_lags(watch.written.take()).values()) >= min(lags.values()) + 60, "the lag does not grow"
    shop.run("EXEC sandbox.agent_start")
    shop.scan()
    watch.settle()
    watch.book.turn()
    assert watch.location.checks("orders")[0] is True
    assert watch.key() in [key for key, _ in watch.windows("orders")]


def late_lags(events: list[Event]) -> dict[dg.AssetKey, float]:
    """The lags of tables of which nothing was read, by asset."""
    found = [event for event in events if isinstance(event, dg.AssetObservation)]
    return {event.asset_key: float(str(event.metadata["mssql_cdc/lag_seconds"].value)) for event in found}


def test_a_source_that_does_not_answer_warns_and_its_lags_grow(watch, monkeypatch):
    watch.settle()
    watch.book.turn()
    watch.written.take()
    source = watch.book.database.source
    port = source.connector.connection.port
    object.__setattr__(source.connector.connection, "port", 1)
    source.kept.clear()  # The connection that it has would go on answering.
    try:
        watch.ahead = timedelta(minutes=20)
        assert watch.follower.attempt() is None
        watch.book.unavailable(watch.follower.failure)
        watch.book.turn()
    finally:
        object.__setattr__(source.connector.connection, "port", port)
    events = watch.written.take()
    assert watch.location.checks("orders")[0] is False
    assert min(late_lags(events).values()) >= 20 * 60 - 1
    assert not [event for event in events if isinstance(event, dg.AssetMaterialization)]


def test_a_fence_is_no_reason_to_warn(watch):
    """Another run was faster, as is normal: each table's check warned that the source did not answer."""
    watch.settle()
    watch.book.turn()
    watch.written.take()
    watch.book.unavailable(OvertakenError("another run has committed"))
    assert watch.written.take() == []
    assert watch.book.progress.late is None


@pytest.mark.parametrize("kind", [DeadlockError, StaleReaderError, StaleStructureError])
def test_a_source_that_answers_is_not_said_to_be_silent(watch, kind):
    watch.settle()
    watch.book.unavailable(kind("the reason"))
    passed, severity, text = watch.location.verdict("orders")
    assert (passed, severity, text) == (False, "WARN", "late: the last step is repeated: the reason")


def test_a_table_that_another_run_has_read_is_neither_late_nor_held_back(watch, monkeypatch):
    """A run and its successor overlap: the one that loses a table kept the fence as its error until the next range."""
    shop = watch.location.shop
    watch.settle()
    watch.book.turn()
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    shop.scan()
    (orders,) = (one.table_id for one in watch.location.tables if one.table_id.name == "orders")
    overtake(monkeypatch, watch.location.database(), [orders])
    watch.written.take()
    done = watch.step()
    assert [type(error) for error in done.failed.values()] == [OvertakenError]
    assert watch.book.states.errors == {}
    assert [one for one in watch.written.take() if isinstance(one, dg.AssetCheckEvaluation)] == []
    watch.settle()
    watch.ahead = timedelta(minutes=2)
    watch.book.turn()
    assert watch.location.logged("orders")["mssql_cdc/inserts"] == 1


def test_tables_that_exchange_names_are_reported_with_their_own_rows(watch):
    """Windows and rows of the one were counted in the folder of the other."""
    shop = watch.location.shop
    shop.run("INSERT INTO dbo.people VALUES (1, N'Ann')")
    shop.scan()
    watch.settle()
    watch.book.turn()
    watch.windows("orders")
    shop.run(
        "EXEC sp_rename N'dbo.orders', N'people_'",
        "EXEC sp_rename N'dbo.people', N'orders'",
        "EXEC sp_rename N'dbo.people_', N'people'",
        "INSERT INTO dbo.people VALUES (11, N'x'), (12, N'x'), (13, N'x')",
    )
    shop.scan()
    watch.settle()
    watch.ahead = timedelta(minutes=2)
    watch.settle()
    watch.book.turn()
    rows = {name: watch.location.logged(name)["dagster/partition_row_count"] for name in ("orders", "people")}
    assert rows == {"orders": 1, "people": 3}
    currents = {
        name: metadata(watch.location.materializations(watch.location.current(name))[0])["dagster/row_count"]
        for name in ("orders", "people")
    }
    assert currents == {"orders": 1, "people": 3}


def test_a_table_that_cannot_be_read_is_not_green_while_the_others_are(watch):
    shop = watch.location.shop
    watch.settle()
    watch.book.turn()
    watch.windows("orders")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    shop.scan()
    shop.run("EXEC sandbox.fail_statement @pattern = N'SELECT TOP.*dbo_orders_CT', @number = 208, @times = 1000")
    watch.step()
    shop.run("EXEC sandbox.clear_faults")
    watch.ahead = timedelta(minutes=10)
    watch.book.turn()
    assert watch.location.checks("orders")[0] is False
    assert watch.location.checks("people")[0] is True
    assert watch.windows("orders") == []
    assert watch.location.logged("people")["mssql_cdc/inserts"] == 1


def test_a_current_table_of_which_no_row_has_come_is_reported(watch):
    """`snapshot.mode=no_data`: without changes there is no table in the lake, and nothing is left to be done."""
    watch.settle()
    watch.step()
    watch.ahead = timedelta(minutes=5)
    watch.step()
    watch.book.turn()
    (event, *_) = watch.location.materializations(watch.location.current("orders"))
    assert metadata(event)["dagster/row_count"] == 0
    assert "no row has come yet" in metadata(event)["mssql_cdc/note"]
    watch.location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    watch.location.shop.scan()
    watch.settle()
    watch.ahead += timedelta(minutes=5)
    watch.book.turn()
    (event, *_) = watch.location.materializations(watch.location.current("orders"))
    assert metadata(event)["dagster/row_count"] == 1
    assert "mssql_cdc/note" not in metadata(event)


def test_a_source_table_is_reported_when_first_seen_and_when_its_structure_changes(watch):
    shop, key = watch.location.shop, watch.location.names.source_key
    (orders,) = (table.table_id for table in watch.location.tables if table.table_id.name == "orders")
    watch.settle()
    watch.step()
    assert len(watch.location.materializations(key(orders))) == 1
    shop.run("ALTER TABLE dbo.orders ADD note int NULL")
    shop.enable("orders", "orders_2")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one', 7)")
    shop.scan()
    for _ in range(3):
        watch.step()
    found = [metadata(event)["mssql_cdc/structure"] for event in reversed(watch.location.materializations(key(orders)))]
    assert found[0] == "version 1, dbo_orders"
    assert found[-1] == "version 2, dbo_orders, orders_2"


def test_a_later_run_asks_once_for_all_source_tables_and_reports_no_known_one(watch, monkeypatch):
    source_key = watch.location.names.source_key
    keys = {source_key(table.table_id) for table in watch.location.tables}
    watch.settle()
    watch.step()
    asked, real = list[set[dg.AssetKey]](), dg.DagsterInstance.get_asset_records

    def counted(instance: dg.DagsterInstance, wanted: Any = None) -> Any:
        asked.append(set(wanted))
        return real(instance, wanted)

    monkeypatch.setattr(dg.DagsterInstance, "get_asset_records", counted)
    again = Book(watch.location.setup, watch.book.database, watch.written, clock=watch.book.clock)
    for _ in range(2):
        again.add(watch.step())
    assert asked == [keys]
    assert [len(watch.location.materializations(key)) for key in keys] == [1] * len(keys)


def test_a_lost_table_is_red_and_its_windows_stay_missing(watch):
    shop = watch.location.shop
    watch.settle()
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "WAITFOR DELAY '00:00:00.050'")
    shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    end = shop.scan().text.replace(":", "")
    shop.run(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', 0x{end}, 100")
    watch.written.take()
    watch.settle()
    watch.book.turn()
    database = watch.book.database
    statuses = {name: e.status for name, e in load_offsets(database.layout, database.storage).entries.items()}
    assert statuses[f"{shop.catalog}.dbo.orders"] == "lost"
    assert watch.location.checks("orders")[0] is False
    assert watch.windows("orders") == []
    assert watch.location.materializations(watch.location.key("people"))


def test_a_step_judges_only_the_tables_whose_state_it_may_have_changed(watch, monkeypatch):
    """With many tables, a verdict on each after each step takes time from the thread that captures."""
    judged: list[str] = []
    watch.settle()
    watch.book.turn()
    verdict = Judge.verdict
    monkeypatch.setattr(Judge, "verdict", lambda judge, table: (judged.append(table.name), verdict(judge, table))[1])
    watch.step()
    assert judged == [], "nothing has changed"
    shop = watch.location.shop
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    shop.scan()
    watch.settle()
    assert "orders" in judged
    everyone = len(watch.location.setup.names.tables)
    judged.clear()
    watch.book.unavailable(SourceUnavailableError("it is gone"))
    assert len(judged) == everyone, "all are late"
    watch.step()
    assert len(judged) == 2 * everyone, "none is late any more"


def test_the_rows_of_a_current_table_are_those_that_its_log_tells(watch, monkeypatch):
    """Counting with a query opens the table; its log has the number, less what deletion vectors delete."""
    shop, asked = watch.location.shop, []
    monkeypatch.setattr(book_module, "row_count", lambda *arguments: asked.append(arguments))
    shop.run("INSERT INTO dbo.orders SELECT value, N'x' FROM GENERATE_SERIES(1, 200)")
    shop.scan()
    watch.settle()
    shop.run("DELETE FROM dbo.orders WHERE id <= 3", "UPDATE dbo.orders SET name = N'y' WHERE id = 4")
    shop.scan()
    watch.settle()
    watch.written.take()
    watch.book.currents()
    key = watch.location.current("orders")
    (event,) = [one for one in watch.written.take() if one.asset_key == key]
    assert metadata(event)["dagster/row_count"] == 197
    assert asked == []


def test_a_current_table_is_materialized_as_of_a_commit_time_and_with_its_lag(watch):
    shop, before = watch.location.shop, watch.book.clock()
    shop.run("INSERT INTO dbo.orders VALUES (1001, N'x')")
    shop.scan()
    watch.settle()
    watch.written.take()
    watch.book.currents()
    (event,) = [one for one in watch.written.take() if one.asset_key == watch.location.current("orders")]
    found = metadata(event)
    assert 0 <= found["mssql_cdc/as_of"] - before.timestamp() < 60
    assert 0 <= found["mssql_cdc/lag_seconds"] < 60
