"""An incremental snapshot of a table that was given up waits until that streams again, behind all others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.notifications import INCREMENTAL
from mssql_cdc.capture.requests import REQUESTED, SignalRow, ask_for_snapshot, note_signal
from mssql_cdc.errors import SourceError
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lsn import LsnRange
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import catch_up
from mssql_cdc.source.values import CaptureInstance
from mssql_cdc_tests.spark.model_lake import changes, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelReader, ModelSource
from mssql_cdc_tests.spark.test_snapshot_thread import steps

pytestmark = pytest.mark.spark


def reads(database: Database, table: str) -> int:
    return [op for op, _, _ in changes(database, table)].count("r")


def ask(database: Database, *tables: str) -> None:
    names = [f"shop.dbo.{table}" for table in tables]
    ask_for_snapshot(database, "again", names, channel="test", kind="incremental")


def scanned(database: Database) -> list[tuple[str, str]]:
    """The tables whose snapshots have ended, with their statuses, in order."""
    rows = small_table(database.layout, "notifications", database.storage).rows()
    own = [row for row in rows if row["aggregate_type"] == INCREMENTAL and row["type"] == "TABLE_SCAN_COMPLETED"]
    found = [dict(row["additional_data"]) for row in sorted(own, key=lambda row: (row["_batch"], row["timestamp_ms"]))]
    return [(one["scanned_collection"].rpartition(".")[2], one["status"]) for one in found]


def give_up(database: Database, source: ModelSource, table: str) -> None:
    """A change of the table cannot be read, so that a run gives the table up."""
    source.faults[table] = "the disk is full"
    source.put(table, 5, "unreadable")
    source.capture()
    with pytest.raises(SourceError):
        catch_up([database], timeout=60)
    entry = database.offsets().entry(f"shop.dbo.{table}")
    assert entry is not None
    assert entry.status == "failed"


def test_a_table_that_was_given_up_is_read_after_the_others_once_it_streams_again(
    database: Database, source: ModelSource
):
    write_some(source)
    settled(database, source)
    before = {table: reads(database, table) for table in ("orders", "people")}
    give_up(database, source, "orders")
    ask(database, "orders", "people")
    with pytest.raises(SourceError, match="the disk is full"):
        catch_up([database], timeout=60)
    assert scanned(database) == [("people", "SUCCEEDED")]
    assert reads(database, "orders") == before["orders"]
    assert not load(database).is_due, "a run that nothing can be read in would be requested again and again"
    source.faults.clear()
    settled(database, source)
    assert scanned(database) == [("people", "SUCCEEDED"), ("orders", "SUCCEEDED")]
    assert reads(database, "orders") > before["orders"]
    same(database, source)


def test_a_table_that_is_given_up_while_it_is_read_makes_room_for_the_others(
    database: Database, source: ModelSource, monkeypatch: pytest.MonkeyPatch
):
    write_some(source)
    settled(database, source)
    follower = Follower(database, merge=False, chunks=IncrementalSnapshots())
    source.put("orders", 5, "unreadable")  # The stream has to pass it before the rows are emitted.
    ask(database, "orders")
    steps(follower, lambda: load(database).state.has_staged)
    changes_of = source.change_reader

    def change_reader(catalog: str, instance: CaptureInstance, wanted: LsnRange, **more: object) -> ModelReader:
        found = changes_of(catalog, instance, wanted, **more)
        return replace(found, fault="the disk is full") if instance.schema.table_id.name == "orders" else found

    monkeypatch.setattr(source, "change_reader", change_reader)
    source.capture()
    with pytest.raises(SourceError):
        catch_up([database], timeout=60)
    assert [table.name for table in load(database).state.tables] == ["orders"]
    assert scanned(database) == []
    ask(database, "people")
    with pytest.raises(SourceError):
        catch_up([database], timeout=60)
    assert scanned(database) == [("people", "SUCCEEDED")]
    monkeypatch.undo()
    settled(database, source)
    assert scanned(database) == [("people", "SUCCEEDED"), ("orders", "SUCCEEDED")]
    same(database, source)


def test_a_snapshot_that_waits_for_its_table_can_be_stopped(database: Database, source: ModelSource):
    write_some(source)
    settled(database, source)
    give_up(database, source, "orders")
    ask(database, "orders")
    with pytest.raises(SourceError):
        catch_up([database], timeout=60)
    assert load(database).state.is_running
    note_signal(database, SignalRow("stop", "stop-snapshot", None), "test", REQUESTED, "")
    with pytest.raises(SourceError):
        catch_up([database], timeout=60)
    assert not load(database).state.is_running
