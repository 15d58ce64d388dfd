"""Snapshots, ranges and signals of a followed database."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.config import Connector
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.follow.incremental_budget import Clock
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.source.sqlserver import snapshot_reader
from mssql_cdc.source.sqlserver.chunks import Piece
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.values import CaptureHealth
from mssql_cdc_tests.spark.model_source import ModelReader
from mssql_cdc_tests.storm.model_server import ModelServerSession
from mssql_cdc_tests.unit.config.observed.world import World, world

AT = datetime(2026, 1, 1, tzinfo=UTC)
_LAG = timedelta(seconds=45)


def waits(connector: Connector) -> Any:
    """The waits of a first snapshot, each with the number of chunks that were read before."""
    asked: list[tuple[float, int]] = []
    now = 1000.0
    with world(connector) as own:

        def sleep(seconds: float) -> None:
            nonlocal now
            now += seconds
            asked.append((round(seconds, 3), len(own.chunks)))

        with (
            patch("mssql_cdc.capture.snapshot.delays.sleep", sleep),
            patch("mssql_cdc.capture.snapshot.delays.monotonic", lambda: now),
            patch("mssql_cdc.capture.snapshot.chunk_groups.monotonic", lambda: now),
        ):
            own.fill(3)
            own.settle(own.follower())
    return asked


@dataclass(frozen=True)
class _Reader:
    """A reader that says which thread reads."""

    reader: ModelReader
    threads: set[str]

    def read(self) -> Iterator[pa.RecordBatch]:
        self.threads.add(threading.current_thread().name.rpartition("_")[0])
        yield from self.reader.read()


def reading_threads(connector: Connector) -> Any:
    """The threads that read the chunks of a small snapshot: this one, one chunk after another, or those of a pool."""
    threads: set[str] = set()
    with world(connector) as own:
        read = own.server.chunk_reader
        own.server.chunk_reader = lambda *given: _Reader(read(*given), threads)  # type: ignore[assignment,method-assign]
        own.server.disable("notes")  # It is read alone, because it has no key.
        own.fill(12)
        with (
            patch("mssql_cdc.capture.snapshot.take.CHUNK_ROWS", 2),
            patch.object(ModelServerSession, "estimated_rows", _few),
        ):
            own.settle(own.follower())
    return threads


def _few(session: ModelServerSession) -> dict[int, int]:
    return {table.object_id: len(table.rows) for table in session.source.tables.values()}


def range_ends(connector: Connector) -> Any:
    """How many ranges a backlog of a dozen transactions takes, and their ends."""
    with world(connector) as own:
        follower = own.follower()
        own.settle(follower)
        for number in range(12):
            own.change(("orders", number, "late"))
        own.scan(500)
        own.settle(follower)
        return [row.to for row in load_offsets(own.database.layout).history.rows if row.kind == "range"]


def signals_taken(connector: Connector) -> Any:
    """The signals that a step takes out of files in the current folder, which must be a test's own."""
    for left in Path.cwd().iterdir():
        left.unlink()
    for name in ("file-signals.txt", "other"):
        Path(name).write_text(json.dumps({"id": name, "type": "log", "data": {"message": "hello"}}) + "\n")
    taken: list[Any] = []
    with world(connector) as own:
        own.database = replace(own.database, signalled=lambda row: taken.append(row["id"]))
        follower = own.follower()
        own.settle(follower)
        follower.step()
    return taken


def notified(connector: Connector) -> Any:
    """The notifications of a first snapshot that the log has."""
    with world(connector) as own:
        own.settle(own.follower())
        return [line.partition("additionalData")[0] for line in own.lines if "[Notification Service]" in line]


def first_chunks(connector: Connector) -> Any:
    """The statements of a first snapshot."""
    with world(connector) as own:
        own.fill(3)
        own.settle(own.follower())
        return [statement(own, number) for number in range(len(own.chunks))]


def incremental_chunks(connector: Connector) -> Any:
    """The statements for the chunks of an incremental snapshot, in one moment of a source that is 45 s behind."""
    with world(connector) as own:
        follower = own.follower(chunks=IncrementalSnapshots(Clock(lambda: AT, lambda: 1000.0)))
        own.fill(12)
        own.settle(follower)
        own.chunks.clear()
        ask_for_snapshot(own.database, "asked", ["dbo.orders"], channel="test", kind="incremental")
        with patch.object(ModelServerSession, "capture_health", _behind):
            for _ in range(16):
                own.change(("people", 1, "x"))  # So that what was read is passed, and the next groups come.
                own.scan(500)
                follower.step()
        return [statement(own, number) for number in range(len(own.chunks))]


def _behind(_session: ModelServerSession, positions: Any) -> CaptureHealth:
    return CaptureHealth(now=AT, unread=dict.fromkeys(positions, AT - _LAG))


def statement(own: World, number: int) -> Any:
    """The statement of a chunk that was read, and its bounds."""
    wanted, chunk = own.chunks[number]
    sql = snapshot_reader.select_statement(wanted, RowPlan.of(wanted.schema.columns), Piece(""))
    return sql, chunk.lower, chunk.upper


def read_for_new_columns(connector: Connector) -> Any:
    """The tables that are read once more because a new capture instance has a further column."""
    with world(connector) as own:
        follower = own.follower()
        own.fill(3)
        own.settle(follower)
        own.chunks.clear()
        own.enable("orders", more=True)
        for key in (7, 8):
            own.change(("orders", key, "later"))
            own.scan(500)
            follower.step()
        own.settle(follower)
        return {wanted.schema.table_id.name for wanted, _ in own.chunks}
