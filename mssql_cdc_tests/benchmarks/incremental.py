"""An incremental snapshot of a large table beside a stream into another one: its rate, and what it does to the stream.

Both connectors get the same signals, chunk size and stream, one after another: first the stream alone, then a snapshot
of another table, which warms up, then the snapshots that count.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.read import row_count
from mssql_cdc.schema import TableId
from mssql_cdc_tests.benchmarks import measure
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.debezium_incremental import ObservedEngine
from mssql_cdc_tests.benchmarks.measure import Figure, rate
from mssql_cdc_tests.benchmarks.rates import oracle
from mssql_cdc_tests.benchmarks.server import Server, create_database
from mssql_cdc_tests.benchmarks.start import command
from mssql_cdc_tests.benchmarks.stream_lag import (
    PACE,
    ROWS,
    TICK,
    Delivery,
    LogDeliveries,
    Span,
    Writer,
    commits,
    lags,
)

T = TypeVar("T")
NAME = "incremental"
START_SECONDS, PATIENCE = 300.0, 3600.0
LONG = 240.0
"""Debezium has one snapshot if it takes longer than so many seconds."""
SIGNALS = "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL"


@dataclass(frozen=True, slots=True)
class Found:
    """What was seen of one connector.

    Attributes:
        seconds: How long each snapshot took.
        without: The lags of the stream while it was alone, sorted.
        beside: Its lags while the snapshots ran, sorted.
        pace: The changes a second while they ran.
    """

    seconds: Sequence[float]
    without: Sequence[float]
    beside: Sequence[float]
    pace: float


@dataclass(frozen=True, slots=True)
class Course:
    """What both connectors go through; `writer` makes the stream."""

    bench: Bench
    server: Server
    writer: Writer
    who: str

    def run(
        self,
        finished: Callable[[str, int], float | None],
        deliveries: Callable[[], Sequence[Delivery]],
        *,
        once: bool = False,
    ) -> Found:
        """Run it; the connector has been started.

        Args:
            finished: The Unix time when the connector had this table's snapshot of this number; None: not yet.
            deliveries: What it has delivered of the stream.
            once: Take one snapshot that counts if it takes long.
        """
        sizes, bench = self.bench.sizes, self.bench
        self._wait(deliveries, START_SECONDS)
        self._snapshot("warm", 1, finished)
        bench.say(f"incremental: {self.who}, the stream alone for {sizes.quiet:g} s")
        quiet = time.time()
        time.sleep(sizes.quiet)
        alone, spans = Span(quiet, time.time()), list[Span]()
        for number in range(1, 1 + sizes.repeat):
            spans.append(self._snapshot("large", number, finished))
            took = spans[-1].until - spans[-1].since
            bench.say(f"incremental: {self.who}, a snapshot of {sizes.incremental:,} rows took {took:.1f} s")
            if once and took > LONG:
                break
        self.writer.stop()
        made = commits(self.server, NAME, but="signals")
        self._wait(lambda: [one for one in deliveries()[-1:] if one.newest + TICK >= made[-1]], PATIENCE)
        found = deliveries()
        took = [one.until - one.since for one in spans]
        return Found(took, lags(made, found, [alone]), lags(made, found, spans), self.writer.pace(spans))

    def _snapshot(self, table: str, number: int, finished: Callable[[str, int], float | None]) -> Span:
        data = json.dumps({"type": "INCREMENTAL", "data-collections": [f"{NAME}.dbo.{table}"]})
        key = f"{self.who}-{table}-{number}"
        with self.server.connect(NAME) as connection:
            connection.execute(f"INSERT INTO dbo.signals VALUES ('{key}', 'execute-snapshot', '{data}')")
        begun = time.time()
        return Span(begun, self._wait(lambda: finished(table, number), PATIENCE))

    def _wait(self, found: Callable[[], T | None], seconds: float) -> T:
        end = time.monotonic() + seconds
        while not (one := found()):
            self.writer.check()
            if time.monotonic() > end:
                raise TimeoutError(f"{self.who} had not come so far after {seconds:g} s")
            time.sleep(0.2)
        return one


def incremental(bench: Bench) -> Iterator[Figure]:
    """Take the snapshots with both connectors; medians."""
    sizes = bench.sizes
    what = f"incremental snapshot of {sizes.incremental:,} rows beside {PACE:,} changes a second"
    with bench.sandbox() as server:
        bench.say(f"incremental: filling a table with {sizes.incremental:,} rows")
        create_database(server, NAME, {"large": sizes.incremental, "warm": sizes.warm, "streamed": ROWS})
        with server.connect(NAME) as connection:
            connection.execute(f"CREATE TABLE dbo.signals ({SIGNALS})")
            connection.execute("EXEC sys.sp_cdc_enable_table N'dbo', N'signals', @role_name = NULL")
        ours = _ours(bench, server)
        own = statistics.median(ours.seconds)
        yield rate(f"{what} into a change log", sizes.incremental, own)
        yield from _lags(what, ours)
        with ExitStack() as stack:
            debezium = oracle(stack, server, bench.folder / "debezium-incremental")
            if debezium is None:
                return
            topic = f"{NAME}.{NAME}.dbo.streamed"
            engine = debezium.observed(NAME, _settings(bench), bench.folder / "engine", topic)
            stack.enter_context(engine)
            with Writer(server, NAME, "streamed") as writer:
                theirs = _theirs(Course(bench, server, writer, "Debezium"), engine)
        note = f"Debezium once: it takes {theirs.seconds[0]:,.0f} s" if len(theirs.seconds) < sizes.repeat else ""
        median = statistics.median(theirs.seconds)
        yield Figure(f"{what}: Debezium into nothing", sizes.incremental / median, "rows/s", note=note)
        yield Figure(f"{what}: against Debezium", median / own, "x", note=note)
        yield from _lags(f"{what}: Debezium", theirs)


def _settings(bench: Bench) -> dict[str, str]:
    return {
        "snapshot.mode": "no_data",
        "signal.data.collection": f"{NAME}.dbo.signals",
        "incremental.snapshot.chunk.size": str(bench.sizes.chunk),
    }


def _ours(bench: Bench, server: Server) -> Found:
    warehouse = bench.folder / NAME
    layout = Layout(warehouse.as_posix(), NAME, NAME)
    rows = {"warm": bench.sizes.warm, "large": bench.sizes.incremental}
    stream = LogDeliveries(Path(layout.home(TableId(NAME, "dbo", "streamed")).changes))
    words = command(server, NAME, bench.folder, warehouse, caught_up=False, **_settings(bench))
    log = bench.folder / "incremental.log"
    with Writer(server, NAME, "streamed") as writer, measure.watched(words, log=log) as running:

        def finished(table: str, number: int) -> float | None:
            running.check()
            uri = layout.home(TableId(NAME, "dbo", table)).changes
            if (row_count(uri) or 0) < number * rows[table]:
                return None
            return max(one.stat().st_mtime for one in Path(uri, "_delta_log").glob("*.json"))

        def deliveries() -> Sequence[Delivery]:
            running.check()
            return stream.read()

        return Course(bench, server, writer, "the connector").run(finished, deliveries)


def _theirs(course: Course, engine: ObservedEngine) -> Found:
    def finished(table: str, number: int) -> float | None:
        engine.check()
        wanted = number + (table == "large")  # The one that warms up comes before.
        return time.time() if engine.snapshots >= wanted else None

    def deliveries() -> Sequence[Delivery]:
        engine.check()
        return engine.deliveries

    return course.run(finished, deliveries, once=True)


def _lags(what: str, found: Found) -> Iterator[Figure]:
    for when, samples in (("without it", found.without), ("with it", found.beside)):
        yield Figure(f"{what}: the stream's lag {when}, median", statistics.median(samples), "s")
        yield Figure(f"{what}: the stream's lag {when}, 95 %", samples[int(0.95 * len(samples))], "s")
    yield Figure(f"{what}: changes a second that were made", found.pace, "1/s")
