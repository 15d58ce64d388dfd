"""A small model of a source and a lake, which runs the real planner in any interleaving.

The lake follows exactly the rules of the real one: a commit of a table fails if another run has committed since its
state was loaded; an `_offsets` row fails if an entry of its own tables has changed since.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.decisions import Range
from mssql_cdc.plan.facts import Activity, Cursor, Facts, Instance, Limits, Member, Runs
from mssql_cdc.plan.planner import next_cursor, plan
from mssql_cdc.schema import TableId

DecisionT = TypeVar("DecisionT")

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def lsn(number: int) -> Lsn:
    """The LSN for a small number."""
    return Lsn(number.to_bytes(10, "big"))


def table(name: str) -> TableId:
    """A table in the model's database."""
    return TableId("db", "dbo", name)


def instance(number: int = 1, *, start: int = 1, minimum: int | None = None, before: int | None = None) -> Instance:
    """A capture instance that still has all its changes, unless `minimum` says otherwise."""
    low = lsn(start if minimum is None else minimum)
    return Instance(number, f"ci{number}", lsn(start), low, None if before is None else lsn(before), f"id{number}")


def member(name: str, at: int | None, **more: object) -> Member:
    """A streaming member at `at`."""
    status = "streaming" if at is not None else "new"
    defaults: dict[str, object] = {"status": status, "instances": (instance(),), "read": "id1"}
    if "shown" not in more:
        found = more.get("instances", defaults["instances"])
        defaults["shown"] = frozenset(one.identity for one in found)  # type: ignore[attr-defined]
    position = None if at is None else lsn(at)
    return Member(table(name), position=position, **{**defaults, **more})  # type: ignore[arg-type]


def facts(*members: Member, captured: int | None = 10, **more: Any) -> Facts:
    """The planner's facts: these members, captured so far."""
    return Facts(now=NOW, members=members, captured=None if captured is None else lsn(captured), **more)


def planned(found: Facts, kind: type[DecisionT]) -> DecisionT:
    """The planner's decision, which must be of this kind."""
    decision = plan(found)
    assert isinstance(decision, kind), decision
    return decision


def ends(decision: Range) -> dict[str, tuple[int, int]]:
    """The slice of each table that a range reads."""
    return {s.table.name: (s.from_.raw[-1], s.to.raw[-1]) for s in decision.slices}


@dataclass
class TableLog:
    """The change log of one table in the model."""

    version: int = 0
    to: int = 0
    rows: list[int] = field(default_factory=list)


class FencedRunError(Exception):
    """The model's FencedError."""


@dataclass
class World:
    """The source's commits `(lsn, table)`, the captured position, and the lake."""

    tables: tuple[str, ...]
    commits: list[tuple[int, str]] = field(default_factory=list)
    captured: int = 0
    logs: dict[str, TableLog] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    cursor: Cursor = field(default_factory=Cursor)
    max_rows: int | None = None

    def __post_init__(self) -> None:
        self.logs = {name: TableLog() for name in self.tables}
        self.offsets = dict.fromkeys(self.tables, 0)

    def commit(self, name: str) -> None:
        """One transaction with one row of a table."""
        self.commits.append((len(self.commits) + 2, name))

    def capture(self, count: int) -> None:
        """Capture some more transactions, in commit order."""
        left = [at for at, _ in self.commits if at > self.captured]
        self.captured = ([self.captured, *left])[min(count, len(left))]

    def position(self, name: str) -> int:
        """Rule A1: the larger of the table's own commit and its entry."""
        return max(self.logs[name].to, self.offsets[name], 1)

    def facts(self, *, running: bool = False) -> Facts:
        """The facts that the planner sees."""
        members = tuple(member(name, self.position(name)) for name in self.tables)
        busy = (Activity("range", "1-2", "run"),) if running else ()
        return Facts(
            now=NOW,
            members=members,
            captured=lsn(self.captured) if self.captured else None,
            cut=lsn(self.cuts[-1]) if self.cuts else None,
            row_bound=self._bound(),
            runs=Runs(busy),
            limits=Limits(max_attempts=3),
            cursor=self.cursor,
        )

    def _bound(self) -> Lsn | None:
        if self.max_rows is None:
            return None
        low = min(self.position(name) for name in self.tables)
        ahead = sorted(at for at, _ in self.commits if low < at <= self.captured)
        return lsn(ahead[: self.max_rows][-1]) if ahead else None

    def decide(self) -> Range | None:
        """The planner's range, if any; stores the cursor like the sensor."""
        facts = self.facts()
        decision = plan(facts)
        self.cursor = next_cursor(facts, decision)
        return decision if isinstance(decision, Range) else None

    def range(self) -> Range:
        """The planner's range, which must exist."""
        decision = self.decide()
        assert decision is not None
        return decision

    def run(self, decision: Range, only: frozenset[str] | None = None) -> Generator[str, None, None]:
        """Execute a range, one visible step at a time; `only` is an operator's subset."""
        slices = [s for s in decision.slices if only is None or s.table.name in only]
        loaded = {s.table.name: (self.logs[s.table.name].version, self.position(s.table.name)) for s in slices}
        entries = dict(self.offsets)
        yield "loaded"
        to = int.from_bytes(decision.range.to.raw, "big")
        taken = {}
        for name, (_, from_) in loaded.items():
            if from_ < to:
                taken[name] = [at for at, changed in self.commits if changed == name and from_ < at <= to]
        yield "read"
        for name, rows in taken.items():
            log = self.logs[name]
            if rows:
                if log.version != loaded[name][0] or self.offsets[name] != entries[name]:
                    raise FencedRunError(name)
                log.version, log.to = log.version + 1, to
                log.rows += rows
            yield "committed"
        if any(self.offsets[name] != entries[name] for name in taken):
            raise FencedRunError("offsets")
        for name, rows in taken.items():
            if self.logs[name].version != loaded[name][0] + bool(rows):
                raise FencedRunError(name)
            self.offsets[name] = max(self.offsets[name], to)
        if decision.complete and only is None:
            self.cuts.append(to)
        yield "done"

    def check(self) -> None:
        """Assert that no row is lost, duplicated or out of order, and that every cut matches the source."""
        for name, log in self.logs.items():
            wanted = [at for at, changed in self.commits if changed == name and at <= self.position(name)]
            assert log.rows == wanted, f"{name} at {self.position(name)}: {log.rows} instead of {wanted}"
        if self.cuts:
            assert min(self.position(name) for name in self.tables) >= self.cuts[-1]
            assert self.cuts == sorted(self.cuts)
