"""A snapshot that the connector requests for itself is requested again if it has not read its table (D24)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental import state
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.requests import REQUESTED, SignalRow, ask_for_snapshot, note_signal
from mssql_cdc.follow.added_columns import CHANNEL
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.run.follower import Follower
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc_tests.spark.model_lake import same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelReader, ModelSource
from mssql_cdc_tests.spark.test_incremental_waits import reads, scanned
from mssql_cdc_tests.spark.test_snapshot_thread import steps

pytestmark = pytest.mark.spark


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A range requests again at once what was not read."""
    monkeypatch.setattr(state, "FIRST_PAUSE", timedelta(0))


@contextmanager
def damaged(source: ModelSource) -> Iterator[None]:
    """Chunks cannot be read, changes can."""
    read = source.chunk_reader

    def chunk_reader(catalog: str, wanted: ChunkRead) -> ModelReader:
        return replace(read(catalog, wanted), fault="its pages are damaged")

    with patch.object(source, "chunk_reader", chunk_reader):
        yield


def asked(database: Database) -> list[str]:
    rows = small_table(database.layout, "signals", database.storage).rows()
    return [row["id"] for row in rows if row["channel"] == CHANNEL]


def switch(database: Database, source: ModelSource) -> None:
    """`orders` goes on in a capture instance with a further column."""
    write_some(source)
    settled(database, source)
    source.switch("orders")
    source.put("orders", 9, "nine", extra=9)


@pytest.mark.feature("EVO-09")
@pytest.mark.usefixtures("impatient")
def test_a_table_that_could_not_be_read_is_requested_again(database: Database, source: ModelSource):
    switch(database, source)
    before = reads(database, "orders")
    with damaged(source):
        settled(database, source)
    assert scanned(database) == [("orders", "SQL_EXCEPTION")]
    for key in (10, 11):
        source.put("orders", key, "more", extra=1)
        settled(database, source)
    assert scanned(database) == [("orders", "SQL_EXCEPTION"), ("orders", "SUCCEEDED")]
    assert len(asked(database)) == 2
    assert reads(database, "orders") > before
    same(database, source)


@pytest.mark.feature("EVO-09")
def test_a_table_that_could_not_be_read_is_not_requested_again_at_once(database: Database, source: ModelSource):
    switch(database, source)
    with damaged(source):
        for key in (10, 11):
            settled(database, source)
            source.put("orders", key, "more", extra=1)
    settled(database, source)
    assert scanned(database) == [("orders", "SQL_EXCEPTION")]
    assert len(asked(database)) == 1


@pytest.mark.usefixtures("impatient")
def test_a_request_that_was_stopped_is_not_repeated(database: Database, source: ModelSource):
    switch(database, source)
    source.capture()
    source.put("orders", 10, "ten", extra=1)  # The rows wait until it is captured.
    follower = Follower(database, merge=False, chunks=IncrementalSnapshots())
    steps(follower, lambda: load(database).state.has_staged)
    note_signal(database, SignalRow("stop", "stop-snapshot", None), "test", REQUESTED, "")
    steps(follower, lambda: not load(database).state.is_running)
    settled(database, source)
    source.put("orders", 11, "eleven", extra=1)
    settled(database, source)
    assert scanned(database) == []
    assert len(asked(database)) == 1


@pytest.mark.usefixtures("impatient")
def test_a_table_without_a_key_is_told_once_although_a_snapshot_of_it_fails(database: Database, source: ModelSource):
    source.tables["orders"].keys = ()
    switch(database, source)
    settled(database, source)
    ask_for_snapshot(database, "mine", ["shop.dbo.orders"], channel="test", kind="incremental")
    for key in (10, 11):
        source.put("orders", key, "more", extra=1)
        settled(database, source)
    assert scanned(database) == [("orders", "NO_PRIMARY_KEY")]
    assert len(asked(database)) == 1
