"""A connector over a modelled server, followed step by step; its lake is in memory, or Delta tables in a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mssql_cdc.capture.database import Database
from mssql_cdc.config import Connector
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.plan.decisions import Wait
from mssql_cdc.run.follower import Follower
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.values import Chunk
from mssql_cdc_tests.spark.model_source import ModelReader
from mssql_cdc_tests.storm.model import ModelWorld, here

_MOST_STEPS = 60
_IDLE_STEPS = 3
"""A step may wait for the next scan; so many in a row do not."""


class World(ModelWorld):
    """The storm's model with the connector that is looked at; `lines` is its log, `chunks` what it read."""

    def __init__(self, connector: Connector, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self.lines: list[str] = []
        self.chunks: list[tuple[ChunkRead, Chunk]] = []
        session: Any = None
        self.database = Database.of(
            connector,
            "shop",
            spark=lambda: session,
            source=self.database.source,
            warehouse=str(folder),
            log=self.lines.append,
        )
        read = self.server.chunk_reader

        def chunk_reader(catalog: str, wanted: ChunkRead) -> ModelReader:
            return read(catalog, replace(wanted, chunks=self._noted(wanted)))

        self.server.chunk_reader = chunk_reader  # type: ignore[method-assign]

    def _noted(self, wanted: ChunkRead) -> Iterator[Chunk]:
        for chunk in wanted.chunks:
            self.chunks.append((wanted, chunk))
            yield chunk

    def fill(self, rows: int) -> None:
        """Commit rows of a table in one transaction, and capture them."""
        self.change(*(("orders", key, f"order {key}") for key in range(rows)))
        self.scan(500)

    def follower(self, *, chunks: IncrementalSnapshots | None = None, merge: bool = False) -> Follower:
        """Follow the database.

        Args:
            chunks: Reads incremental snapshots.
            merge: Also update current tables.
        """
        return Follower(self.database, merge=merge, ready=True, chunks=chunks or IncrementalSnapshots())

    def settle(self, follower: Follower) -> None:
        """Take steps until there is nothing to do."""
        idle = 0
        for _ in range(_MOST_STEPS):
            self.scan(500)
            done = follower.step()
            idle = idle + 1 if isinstance(done.decision, Wait) and done.idle else 0
            if idle == _IDLE_STEPS:
                return
        raise AssertionError(f"There is always something to do: {self.lines[-5:]}")


@contextmanager
def world(connector: Connector) -> Iterator[World]:
    """A world with a lake in memory."""
    with tempfile.TemporaryDirectory() as folder:
        made = World(connector, Path(folder))
        with made.open():
            yield made


@contextmanager
def lake_world(connector: Connector) -> Iterator[World]:
    """A world with Delta tables in a folder; tasks run in this process."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("mssql_cdc.capture.range.run_tasks", here),
        patch("mssql_cdc.capture.snapshot.chunk_groups.run_tasks", here),
    ):
        yield World(connector, Path(folder))
