"""What must be shown: the table of issue 11, section 4, with the part that shows each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.sizes import Sizes

_CHANGES = "{stream} change events ({stream_rows} change rows) in 20 tables"
_SNAPSHOT = "snapshot of a table of {rows} rows and 50 of {small}"
_MEMORY = "{more} rows against {memory}"


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure that has a target; its name has places for the sizes."""

    part: str
    name: str
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    def figure(self, value: float, sizes: Sizes, *, note: str = "") -> Figure:
        """The figure.

        Args:
            value: What was measured.
            sizes: The sizes that it was measured with.
            note: What has to be said of it.
        """
        return Figure(self.name.format(**sizes.words), value, self.unit, self.at_least, self.at_most, note)


GOALS = {
    "log/fetch": Goal("changes", f"{_CHANGES}: change logs against the bare fetch", "x", at_least=0.5),
    "log/debezium": Goal("changes", f"{_CHANGES}: change logs against Debezium", "x", at_least=6),
    "current/debezium": Goal("changes", f"{_CHANGES}: current tables too, against Debezium", "x", at_least=4),
    "current/log": Goal(
        "changes",
        "{step} change events in 20 tables: current tables' time on top of the change logs'",
        "x",
        at_most=0.4,
    ),
    "snapshot/fetch": Goal("snapshots", f"{_SNAPSHOT}: change logs against the bare fetch", "x", at_least=0.5),
    "snapshot/debezium": Goal("snapshots", f"{_SNAPSHOT}: change logs against Debezium", "x", at_least=10),
    "snapshot current/fetch": Goal(
        "snapshots", f"{_SNAPSHOT}: current tables too, against the bare fetch", "x", at_least=0.25
    ),
    "snapshot current/debezium": Goal(
        "snapshots", f"{_SNAPSHOT}: current tables too, against Debezium", "x", at_least=5
    ),
    "tick/many": Goal("ticks", "warm tick, {many} of {many} tables with 100 changes each", "s", at_most=1.5),
    "tick/one": Goal("ticks", "warm tick, 1 of {captured} tables with 100 changes each", "s", at_most=0.3),
    "records/debezium": Goal(
        "records", "records of {records} change events into nothing: against Debezium", "x", at_least=8
    ),
    "start/log": Goal("start", "command start to the first rows in a change log", "s", at_most=8),
    "start/current": Goal("start", "command start to {cold} rows in 8 current tables", "s", at_most=15),
    "demo/median": Goal("demo", "make demo, {seconds} s: lag of current tables, median", "s", at_most=3),
    "demo/95 %": Goal("demo", "make demo, {seconds} s: lag of current tables, 95 %", "s", at_most=6),
    "demo/worst": Goal("demo", "make demo, {seconds} s: lag of current tables, worst", "s", at_most=15),
    "demo/green": Goal(
        "demo", "make demo, {seconds} s: assets missing, stale, overdue or failed at the end", "assets", at_most=0
    ),
    **{
        f"memory/{what}/{part}": Goal(
            "memory", f"peak memory of {part}, {what}, {_MEMORY}", "x", at_most=1.2
        )
        for what in ("snapshot", "changes")
        for part in ("driver", "JVM", "workers")
    },
}  # fmt: skip


def goals(parts: Sequence[str], sizes: Sizes) -> Iterator[Figure]:
    """The figures with a target that these parts show, without their values."""
    for goal in GOALS.values():
        if goal.part in parts:
            yield goal.figure(float("nan"), sizes)
