"""Sustained rates of snapshots, warm, against the bare fetch and against Debezium."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from mssql_cdc.capture.survey import survey
from mssql_cdc.config import load_connector
from mssql_cdc.run.databases import open_databases
from mssql_cdc.run.execute import refresh_current
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.start import look, start
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure, rate
from mssql_cdc_tests.benchmarks.opened import opened, until_idle
from mssql_cdc_tests.benchmarks.rates import fetch, oracle, seconds
from mssql_cdc_tests.benchmarks.server import Server, connector_file, create_database
from mssql_cdc_tests.benchmarks.sizes import SMALL_TABLES

PATIENCE = 240.0
"""Debezium has one round if it takes longer than so many seconds."""


def snapshots(bench: Bench) -> Iterator[Figure]:
    """A large table and fifty of a fiftieth each, into change logs and current tables; medians."""
    rows = bench.sizes.rows
    small = rows // SMALL_TABLES
    tables = {"large": rows, **{f"s{number}": small for number in range(SMALL_TABLES)}}
    total, what = sum(tables.values()), f"snapshot of a table of {rows:,} rows and {SMALL_TABLES} of {small:,}"
    logs, currents, fetches = list[float](), list[float](), list[float]()
    with bench.sandbox() as server:
        bench.say(f"snapshots: filling {len(tables)} tables with {total:,} rows")
        create_database(server, "snap", tables)
        create_database(server, "warm", {"t": 1_000, "more": bench.sizes.warm})
        for number in range(bench.sizes.repeat):
            place = bench.folder / f"snapshot{number}"
            place.mkdir()
            with opened(server, "warm", place):  # Starts Spark, which the next connector uses.
                log, current = _snapshot(server, place)
            shutil.rmtree(place)
            logs.append(log)
            currents.append(current)
            fetches.append(seconds(partial(fetch, server, "snap", [f"SELECT * FROM dbo.{table}" for table in tables])))
            bench.say(f"snapshots: change logs {log:.1f} s, current {current:.1f} s, fetch {fetches[-1]:.1f} s")
        log, current, fetched = (statistics.median(found) for found in (logs, currents, fetches))
        yield rate(f"{what} into change logs", total, log)
        yield rate(f"{what} into change logs and current tables", total, log + current)
        yield rate(f"{what}: bare fetch", total, fetched)
        yield bench.goal("snapshot/fetch", fetched / log)
        yield bench.goal("snapshot current/fetch", fetched / (log + current))
        theirs, note = _debezium(bench, server, total)
        if theirs:
            yield Figure(f"{what}: Debezium into nothing", theirs, "rows/s", note=note)
            yield bench.goal("snapshot/debezium", total / log / theirs, note=note)
            yield bench.goal("snapshot current/debezium", total / (log + current) / theirs, note=note)


def _debezium(bench: Bench, server: Server, total: int) -> tuple[float, str]:
    """Debezium's records a second, and what has to be said of it; 0 if it is not installed."""
    found = list[float]()
    with ExitStack() as stack:
        theirs = oracle(stack, server, bench.folder / "debezium-snapshot")
        if theirs is None:
            return 0.0, ""
        theirs.snapshot("warm", 1_000 + bench.sizes.warm, name="warm")
        for number in range(bench.sizes.repeat):
            bench.say("snapshots: Debezium reads them")
            found.append(theirs.snapshot("snap", total, name=f"snap{number}"))
            if total / found[0] > PATIENCE:
                break
    one = len(found) < bench.sizes.repeat
    return statistics.median(found), f"Debezium once: it takes {total / found[0]:,.0f} s" if one else ""


def _snapshot(server: Server, folder: Path) -> tuple[float, float]:
    connector = load_connector(connector_file(server, "snap", folder))
    with open_databases(connector, warehouse=str(folder / "snap"), quiet=True, lasting=True) as databases:
        start(databases)
        look(databases[0])
        follower = Follower(databases[0], merge=False, ready=True)
        log = seconds(partial(until_idle, follower))
        while not survey(databases[0]).facts.behind:  # Capture has not passed the snapshot yet.
            follower.step()
        return log, seconds(partial(refresh_current, databases[0]))
