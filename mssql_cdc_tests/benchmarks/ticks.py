"""A warm tick: many captured tables, some of them with a hundred changes each, into change logs and current tables.

The machine has other things to do, so the CPU seconds are given as well: of the connector, of the test server, and, for
the parts of a step, of both together.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import mssql_cdc.capture.range as capture
import mssql_cdc.follow.current as current
import mssql_cdc.run.execute as execute
import mssql_cdc.run.follower as follower
from mssql_cdc.lake.current import CurrentTables
from mssql_cdc_tests.benchmarks.measure import Figure, Spent, spending, tree_cpu
from mssql_cdc_tests.benchmarks.opened import opened, until_idle, wait_for_capture
from mssql_cdc_tests.benchmarks.server import Server, change, create_database

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
    """So many captured tables, of which so many change; `most` is the target in seconds."""

    tables: int
    changed: Sequence[tuple[int, float | None]]


CASES = (Case(50, ((50, 1.5),)), Case(300, ((1, 0.3), (20, None), (300, None))))


@dataclass(slots=True)
class _Tick:
    whole: Spent = field(default_factory=Spent)
    server_cpu: float = 0.0
    parts: dict[str, Spent] = field(default_factory=dict[str, Spent])


def ticks(server: Server, folder: Path, *, cases: Sequence[Case] = CASES, repeat: int = 3) -> Iterator[Figure]:
    """Measure all cases; the median of `repeat` ticks behind a first one that warms up."""
    for case in cases:
        name = f"ticks{case.tables}"
        create_database(server, name, {f"t{i}": 0 for i in range(case.tables)})
        with opened(server, name, folder) as connector:
            rows: dict[str, int] = dict.fromkeys((f"t{i}" for i in range(case.tables)), 0)
            for changed, most in case.changed:
                found: list[_Tick] = []
                for _ in range(1 + repeat):
                    _change(server, name, rows, changed)
                    found.append(_tick(connector.whole, server))
                    until_idle(connector.whole)
                yield from _figures(case, changed, most, found[1:])


def _change(server: Server, name: str, rows: dict[str, int], changed: int) -> None:
    with server.connect(name) as connection:
        for table in list(rows)[:changed]:
            change(connection, table, first=1 + rows[table], rows=ROWS)
            rows[table] += ROWS
    wait_for_capture(server, name, dict(list(rows.items())[:changed]))


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


def _figures(case: Case, changed: int, most: float | None, found: Sequence[_Tick]) -> Iterator[Figure]:
    what = f"warm tick, {changed} of {case.tables} tables with {ROWS} changes each"
    median = sorted(found, key=lambda tick: tick.whole.seconds)[len(found) // 2]
    yield Figure(what, median.whole.seconds, "s", at_most=most)
    own = statistics.median(tick.whole.cpu - tick.server_cpu for tick in found)
    yield Figure(f"{what}: CPU of the connector", own, "s")
    yield Figure(f"{what}: CPU of the server", statistics.median(tick.server_cpu for tick in found), "s")
    for part, spent in median.parts.items():
        yield Figure(f"{what}: {part}", spent.seconds, "s")
        yield Figure(f"{what}: {part}, CPU", spent.cpu, "s")
