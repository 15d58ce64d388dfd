"""Sustained rates of changes of twenty tables, warm, against the bare fetch and against Debezium.

Each round reads rows that came since the last one. The bare fetch reads the same rows with as many connections. Change
rows that all have read are cleaned up, because the sandbox keeps them in memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from mssql_cdc.run.execute import refresh_current
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.debezium_rates import Debezium
from mssql_cdc_tests.benchmarks.measure import Figure, rate
from mssql_cdc_tests.benchmarks.opened import Opened, captured_rows, opened, until_idle, wait_for_capture
from mssql_cdc_tests.benchmarks.rates import fetch, oracle, seconds
from mssql_cdc_tests.benchmarks.server import Server, change, clean_up, create_database, fill_numbers
from mssql_cdc_tests.benchmarks.sizes import TABLES

NAMES = tuple(f"t{number}" for number in range(TABLES))


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds of the change logs, of the current tables on top, of the bare fetch; Debezium's records a second."""

    log: float
    current: float
    fetch: float
    debezium: float


@dataclass(slots=True)
class Stream:
    """The readers of one database; `there` is how many rows each of its tables has."""

    bench: Bench
    server: Server
    connector: Opened
    debezium: Debezium | None
    there: int = 0
    rounds: dict[int, list[Round]] = field(default_factory=dict[int, "list[Round]"])

    def round(self, changes: int) -> None:
        """Make so many changes, and let every reader read them."""
        each, below = changes // TABLES, self.there
        before = captured_rows(self.server, "stream", NAMES)
        self.bench.say(f"changes: making {changes:,} changes")
        with self.server.connect("stream") as connection:
            for name in NAMES:
                change(connection, name, first=1 + below, rows=each)
        self.there += each
        wait_for_capture(self.server, "stream", {name: before[name] + each for name in NAMES})
        self.bench.say("changes: reading them")
        log = seconds(partial(until_idle, self.connector.log))
        current = seconds(partial(refresh_current, self.connector.database))
        queries = [f"SELECT * FROM cdc.dbo_{name}_CT WHERE id > {below}" for name in NAMES]
        fetched = seconds(partial(fetch, self.server, "stream", queries))
        self.bench.say(f"changes: change logs {log:.1f} s, current tables {current:.1f} s, fetch {fetched:.1f} s")
        theirs = self.debezium.stream("stream", each * TABLES) if self.debezium is not None else 0.0
        self.rounds.setdefault(changes, []).append(Round(log, current, fetched, theirs))
        clean_up(self.server, "stream", NAMES)


def changes(bench: Bench) -> Iterator[Figure]:
    """Changes of twenty tables into change logs and current tables, in two sizes; medians."""
    sizes = bench.sizes
    counts = list(dict.fromkeys((sizes.step, sizes.stream)))
    with ExitStack() as stack:
        server = stack.enter_context(bench.sandbox())
        create_database(server, "stream", dict.fromkeys(NAMES, 0))
        with server.connect("stream") as connection:
            fill_numbers(connection, (sizes.warm + sizes.repeat * sum(counts)) // TABLES, above=10_000)
            connection.execute(
                "CREATE TABLE dbo.ping (id int IDENTITY PRIMARY KEY, at datetime2 DEFAULT SYSDATETIME())"
            )
            connection.execute("EXEC sys.sp_cdc_enable_table N'dbo', N'ping', @role_name = NULL")
        connector = stack.enter_context(opened(server, "stream", bench.folder))
        theirs = oracle(stack, server, bench.folder / "debezium")
        if theirs is not None:
            pinged = stack.enter_context(server.connect("stream"))
            theirs.begin("stream", partial(pinged.execute, "INSERT dbo.ping DEFAULT VALUES"))
        stream = Stream(bench, server, connector, theirs)
        stream.round(sizes.warm)
        for count in counts:
            for _ in range(sizes.repeat):
                stream.round(count)
            rounds = stream.rounds[count][-sizes.repeat :]
            yield from _figures(bench, count, rounds, has_debezium=theirs is not None)


def _figures(bench: Bench, count: int, rounds: Sequence[Round], *, has_debezium: bool) -> Iterator[Figure]:
    log, current, fetched, theirs = (
        statistics.median(getattr(one, name) for one in rounds) for name in ("log", "current", "fetch", "debezium")
    )
    events, what = count // TABLES * TABLES, f"{count:,} changes in {TABLES} tables"
    yield rate(f"{what} into change logs", events, log)
    yield rate(f"{what} into change logs and current tables", events, log + current)
    yield rate(f"{what}: bare fetch", events, fetched)
    if has_debezium:
        yield Figure(f"{what}: Debezium streaming into nothing", theirs, "rows/s")
    if count == bench.sizes.step:
        yield bench.goal("current/log", current / log)
    if count == bench.sizes.stream:
        yield bench.goal("log/fetch", fetched / log)
        if has_debezium:
            yield bench.goal("log/debezium", events / log / theirs)
            yield bench.goal("current/debezium", events / (log + current) / theirs)
