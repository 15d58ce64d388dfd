"""Sustained rates of changes of twenty tables, warm, against the bare fetch and against Debezium.

Each round makes a mix of changes (`mix.py`) in tables with rows, and reads them. The bare fetch reads the same change
rows with as many connections. All rates count change events. Change rows that all have read are cleaned up, because the
sandbox keeps them in memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from mssql_cdc.lake.read import row_count
from mssql_cdc.run.execute import refresh_current
from mssql_cdc.schema import TableId
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.debezium_rates import Debezium
from mssql_cdc_tests.benchmarks.measure import ROWS_A_SECOND, Figure, rate
from mssql_cdc_tests.benchmarks.mix import MixedTable, filled, mixed_tables, numbers_needed
from mssql_cdc_tests.benchmarks.opened import Opened, captured_rows, opened, until_idle, wait_for_capture
from mssql_cdc_tests.benchmarks.rates import compilers, fetch, oracle, seconds
from mssql_cdc_tests.benchmarks.server import PING, Server, clean_up, create_database, create_ping
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
    """The readers of one database, and its tables."""

    bench: Bench
    server: Server
    connector: Opened
    debezium: Debezium | None
    tables: Sequence[MixedTable]
    rounds: dict[int, list[Round]] = field(default_factory=dict[int, "list[Round]"])

    def round(self, events: int) -> None:
        """Make so many change events, and let every reader read them."""
        each, before = events // TABLES, captured_rows(self.server, "stream", NAMES)
        self.bench.say(f"changes: making {events:,} change events")
        with self.server.connect("stream", autocommit=False) as connection:
            mark = bytes(connection.execute("SELECT sys.fn_cdc_get_max_lsn()").fetchval()).hex()
            rows = {table.name: table.change(connection, each) for table in self.tables}
        wait_for_capture(self.server, "stream", {name: before[name] + rows[name] for name in NAMES})
        self.bench.say("changes: reading them")
        log = seconds(partial(until_idle, self.connector.log))
        current = seconds(partial(refresh_current, self.connector.database))
        self._check()
        queries = [f"SELECT * FROM cdc.dbo_{name}_CT WHERE __$start_lsn > 0x{mark}" for name in NAMES]
        fetched = seconds(partial(fetch, self.server, "stream", queries))
        self.bench.say(f"changes: change logs {log:.1f} s, current tables {current:.1f} s, fetch {fetched:.1f} s")
        theirs = self.debezium.stream("stream", each * TABLES) if self.debezium is not None else 0.0
        self.rounds.setdefault(events, []).append(Round(log, current, fetched, theirs))
        clean_up(self.server, "stream", NAMES, keep=TABLES)

    def _check(self) -> None:
        """Raise an error if a current table has more or fewer rows than the source: its time would say nothing."""
        layout = self.connector.database.layout
        for table in self.tables:
            found = row_count(layout.home(TableId("stream", "dbo", table.name)).current)
            if found != len(table.keys):
                raise RuntimeError(f"the current table of {table.name} has {found} of {len(table.keys)} rows")


def changes(bench: Bench) -> Iterator[Figure]:
    """Changes of twenty tables into change logs and current tables, in two sizes; medians."""
    sizes = bench.sizes
    counts = list(dict.fromkeys((sizes.step, sizes.stream)))
    with ExitStack() as stack:
        server = stack.enter_context(bench.sandbox())
        events = (sizes.warm + sizes.repeat * sum(counts)) // TABLES
        create_database(server, "stream", filled(NAMES, sizes), numbers=numbers_needed(sizes, events))
        with server.connect("stream") as connection:
            create_ping(connection)
        connector = stack.enter_context(opened(server, "stream", bench.folder))
        theirs = oracle(stack, server, bench.folder / "debezium")
        if theirs is not None:
            pinged = stack.enter_context(server.connect("stream"))
            theirs.begin("stream", partial(pinged.execute, PING))
        stream = Stream(bench, server, connector, theirs, mixed_tables(NAMES, sizes))
        stream.round(sizes.warm)
        warm = theirs.compiled if theirs is not None else 0.0
        for count in counts:
            for _ in range(sizes.repeat):
                stream.round(count)
            rounds = stream.rounds[count][-sizes.repeat :]
            yield from _figures(bench, count, rounds, has_debezium=theirs is not None)
        if theirs is not None:
            yield from compilers("changes", warm, theirs)


def _figures(bench: Bench, count: int, rounds: Sequence[Round], *, has_debezium: bool) -> Iterator[Figure]:
    log, current, fetched, theirs = (
        statistics.median(getattr(one, name) for one in rounds) for name in ("log", "current", "fetch", "debezium")
    )
    events, what = count // TABLES * TABLES, f"{count:,} change events in {TABLES} tables"
    yield rate(f"{what} into change logs", events, log)
    yield rate(f"{what} into change logs and current tables", events, log + current)
    yield rate(f"{what}: bare fetch", events, fetched)
    if has_debezium:
        yield Figure(f"{what}: Debezium streaming into nothing", theirs, ROWS_A_SECOND)
    if count == bench.sizes.step:
        yield bench.goal("current/log", current / log)
    if count == bench.sizes.stream:
        yield bench.goal("log/fetch", fetched / log)
        if has_debezium:
            yield bench.goal("log/debezium", events / log / theirs)
            yield bench.goal("current/debezium", events / (log + current) / theirs)
