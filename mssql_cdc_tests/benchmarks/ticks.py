"""A warm tick: many captured tables, some of them with a hundred changes each, into change logs and current tables.

The changes are a mix (`mix.py`) in tables with rows, so that current tables have to find old rows.

The machine has other things to do, so the CPU seconds are given as well: of the connector, of the test server, and, for
the parts of a step, of both together.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import mssql_cdc.capture.range as capture
import mssql_cdc.follow.current as current
import mssql_cdc.run.execute as execute
import mssql_cdc.run.follower as follower
from mssql_cdc.lake.current import CurrentTables
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure, Spent, spending, tree_cpu
from mssql_cdc_tests.benchmarks.mix import MixedTable, filled, mixed_tables, numbers_needed
from mssql_cdc_tests.benchmarks.opened import opened, until_idle, wait_for_capture
from mssql_cdc_tests.benchmarks.server import Server, create_database

ROWS = 100
PARTS = (
    ("survey", follower, "survey"),
    ("reading", capture, "write_together"),
    ("commits", capture, "in_threads"),
    ("offsets", capture, "append_offsets"),
    ("finding current tables", current, "behind_cut"),
    ("current tables", CurrentTables, "apply_all"),
    ("range", execute, "capture_range"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """So many captured tables, of which so many change."""

    tables: int
    changed: Sequence[int]


@dataclass(slots=True)
class _Tick:
    whole: Spent = field(default_factory=Spent)
    server_cpu: float = 0.0
    parts: dict[str, Spent] = field(default_factory=dict[str, Spent])


def ticks(bench: Bench) -> Iterator[Figure]:
    """Measure all cases; medians of ticks behind a first one that warms up."""
    sizes = bench.sizes
    some = sorted({1, *({20} if sizes.captured > 20 else ()), sizes.captured})
    with bench.sandbox() as server:
        for case in (Case(sizes.many, (sizes.many,)), Case(sizes.captured, tuple(some))):
            yield from _case(bench, server, case)


def _case(bench: Bench, server: Server, case: Case) -> Iterator[Figure]:
    name = f"ticks{case.tables}"
    names, sizes = [f"t{number}" for number in range(case.tables)], bench.sizes
    events = ROWS * len(case.changed) * (1 + sizes.repeat)
    bench.say(f"ticks: filling {case.tables} tables")
    create_database(server, name, filled(names, sizes), numbers=numbers_needed(sizes, events))
    with opened(server, name, bench.folder) as connector:
        tables, rows = mixed_tables(names, sizes), dict.fromkeys(names, 0)
        for changed in case.changed:
            found: list[_Tick] = []
            for _ in range(1 + bench.sizes.repeat):
                _change(server, name, tables[:changed], rows)
                found.append(_tick(connector.whole, server))
                until_idle(connector.whole)
            yield from _figures(bench, case, changed, found[1:])


def _change(server: Server, name: str, tables: Sequence[MixedTable], rows: dict[str, int]) -> None:
    with server.connect(name, autocommit=False) as connection:
        for table in tables:
            rows[table.name] += table.change(connection, ROWS)
    wait_for_capture(server, name, {table.name: rows[table.name] for table in tables})


def _tick(following: follower.Follower, server: Server) -> _Tick:
    tick, before = _Tick(), tree_cpu(server.pid)
    with _watched(tick), spending(tick.whole):
        done = following.step()
    tick.server_cpu = tree_cpu(server.pid) - before
    if done.range is None or not done.merged.tables or done.merged.errors:
        raise RuntimeError(f"the tick did not read and merge: {done.decision}, {done.merged.errors}")
    return tick


@contextmanager
def _watched(tick: _Tick) -> Iterator[None]:
    with ExitStack() as stack:
        for part, module, name in PARTS:
            stack.enter_context(patch.object(module, name, _measured(getattr(module, name), tick, part)))
        yield


def _measured(function: Any, tick: _Tick, part: str) -> Any:
    def wrapper(*arguments: Any, **more: Any) -> Any:
        with spending(tick.parts.setdefault(part, Spent())):
            return function(*arguments, **more)

    return wrapper


def _figures(bench: Bench, case: Case, changed: int, found: Sequence[_Tick]) -> Iterator[Figure]:
    what = f"warm tick, {changed} of {case.tables} tables with {ROWS} changes each"
    median = sorted(found, key=lambda tick: tick.whole.seconds)[len(found) // 2]
    keys = {(bench.sizes.many, bench.sizes.many): "tick/many", (bench.sizes.captured, 1): "tick/one"}
    key = keys.get((case.tables, changed))
    yield bench.goal(key, median.whole.seconds) if key else Figure(what, median.whole.seconds, "s")
    own = statistics.median(tick.whole.cpu - tick.server_cpu for tick in found)
    yield Figure(f"{what}: CPU of the connector", own, "s")
    yield Figure(f"{what}: CPU of the server", statistics.median(tick.server_cpu for tick in found), "s")
    for part, spent in median.parts.items():
        yield Figure(f"{what}: {part}", spent.seconds, "s")
        yield Figure(f"{what}: {part}, CPU", spent.cpu, "s")
