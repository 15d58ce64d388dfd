"""A steady stream of changes, and how long each transaction took from its commit at the source to its delivery."""

from __future__ import annotations

import json
import random
import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import pyarrow.compute as pc
import pyarrow.parquet as pq

from mssql_cdc_tests.benchmarks.server import Server

PACE = 2_000
"""Changes a second."""
EACH = 20
"""Changes of a transaction."""
ROWS = 10_000
"""Rows of the table that changes."""
TICK = 0.002
"""A `datetime` of SQL Server is exact to 3.3 ms, a record of Debezium shows whole milliseconds."""


@dataclass(frozen=True, slots=True)
class Span:
    """From one Unix time to another."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Delivery:
    """At this Unix time, everything was delivered that had been committed until `newest`."""

    at: float
    newest: float


@dataclass
class Writer:
    """Updates rows of a table at a steady pace, in a thread, until the block ends.

    Attributes:
        server: The sandbox.
        database: The database.
        table: The table, with `ROWS` rows.
        begun: When each transaction began.
        error: What ended the thread.
    """

    server: Server
    database: str
    table: str
    begun: list[float] = field(default_factory=list[float])
    error: Exception | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Writer:
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(30)

    def check(self) -> None:
        """Raise an error if the thread has ended."""
        if self.error is not None:
            raise RuntimeError("the changes of the stream could not be made") from self.error

    def pace(self, spans: Sequence[Span]) -> float:
        """The changes a second that it made in these spans."""
        made = sum(EACH for one in spans for at in self.begun if one.since <= at < one.until)
        return made / sum(one.until - one.since for one in spans)

    def _run(self) -> None:
        chance, begun, number = random.Random(1), time.monotonic(), 0
        try:
            with self.server.connect(self.database) as connection:
                while not self._stop.wait(max(0.0, begun + number * EACH / PACE - time.monotonic())):
                    first = chance.randint(1, ROWS - EACH)
                    self.begun.append(time.time())
                    connection.execute(
                        f"UPDATE dbo.{self.table} SET quantity = quantity + 1 "
                        f"WHERE id BETWEEN {first} AND {first + EACH - 1}"
                    )
                    number += 1
        except Exception as error:  # noqa: BLE001 (kept for the main thread)
            self.error = error


@dataclass
class LogDeliveries:
    """The deliveries into a change log, read again and again: only new commits are looked at.

    Attributes:
        folder: The change log.
        found: The deliveries, oldest first.
    """

    folder: Path
    found: list[Delivery] = field(default_factory=list[Delivery])
    _seen: int = 0

    def read(self) -> Sequence[Delivery]:
        """The deliveries until now; a commit is one when its file is there."""
        while (commit := self.folder / "_delta_log" / f"{self._seen:020}.json").exists():
            at, actions = commit.stat().st_mtime, [json.loads(line) for line in commit.read_text().splitlines()]
            files = [one["add"]["path"] for one in actions if "add" in one and one["add"]["dataChange"]]
            times = [pc.max(pq.read_table(self.folder / file, columns=["_commit_ts"])[0]).as_py() for file in files]
            newest = max((time for time in times if time is not None), default=None)
            if newest is not None:
                self.found.append(Delivery(at, max(newest.timestamp(), self.found[-1].newest if self.found else 0.0)))
            self._seen += 1
        return self.found


def commits(server: Server, database: str, *, but: str) -> list[float]:
    """The commits of all transactions that CDC captured, as Unix times.

    Args:
        server: The sandbox.
        database: The database.
        but: The captured table whose transactions do not count.
    """
    with server.connect(database) as connection:
        others = {bytes(lsn) for (lsn,) in connection.execute(f"SELECT __$start_lsn FROM cdc.dbo_{but}_CT").fetchall()}
        found = connection.execute(
            "SELECT start_lsn, tran_end_time FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00"
        ).fetchall()
    return sorted(_unix(at) for lsn, at in found if bytes(lsn) not in others)


def lags(commits: Sequence[float], deliveries: Sequence[Delivery], spans: Sequence[Span]) -> list[float]:
    """How long each transaction took to its delivery, in seconds, sorted.

    Args:
        commits: The commits.
        deliveries: The deliveries, oldest first, until behind the last of these commits.
        spans: Only transactions that were committed in them count.
    """
    newest = [one.newest + TICK for one in deliveries]
    chosen = [at for at in commits if any(span.since <= at < span.until for span in spans)]
    return sorted(deliveries[bisect_left(newest, at)].at - at for at in chosen)


def _unix(at: datetime) -> float:
    return at.replace(tzinfo=UTC).timestamp()
