"""What a JVM printed while it ran a class of tests, and the table of all classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal["passed", "failed", "skipped"]
_STATUSES: dict[str, Status] = {status: status for status in get_args(Status)}
_EVENT = re.compile(r"^@@ (planned|started|passed|failed|skipped) (\S+) ?(.*)$")
_SKIPPED_BY_RULE = re.compile(r"^Skipped (\w+)\(")
"""Debezium's own rule lets a test pass after this line; such a pass shows nothing."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test; `cause` is the innermost failure, or why it was skipped."""

    __test__ = False

    name: str
    status: Status
    cause: str = ""


@dataclass(frozen=True, slots=True)
class ClassResult:
    """One class: its tests in the order in which they were planned."""

    name: str
    seconds: float
    tests: tuple[TestResult, ...]
    problem: str = ""
    """Why the class could not be run to its end."""

    def count(self, status: Status) -> int:
        """How many of its tests ended so."""
        return sum(test.status == status for test in self.tests)

    @property
    def good(self) -> bool:
        """Whether something was run and nothing failed."""
        return not self.problem and bool(self.tests) and not self.count("failed")


def read_tests(lines: Iterable[str]) -> tuple[TestResult, ...]:
    """The tests in a JVM's output; one that was planned and has no end counts as failed."""
    found: dict[str, TestResult] = {}
    running, ruled_out = "", ""
    whole_class = ""
    for line in lines:
        if rule := _SKIPPED_BY_RULE.match(line):
            ruled_out = rule[1]
            continue
        if (event := _EVENT.match(line.rstrip("\n"))) is None:
            continue
        what, name, cause = event.groups()
        if what == "planned":
            found[name] = TestResult(name, "failed", "not run")
        elif what == "started":
            running = name
            found[name] = TestResult(name, "failed", "did not end")
        elif name not in found and name != running:
            whole_class = cause or what
        elif what == "passed" and ruled_out == name:
            found[name] = TestResult(name, "skipped", "by Debezium's rule for this connector")
        else:
            found[name] = TestResult(name, _STATUSES[what], cause.strip())
    not_run = [name for name, test in found.items() if whole_class and test.cause == "not run"]
    return tuple({**found, **{name: TestResult(name, "failed", whole_class) for name in not_run}}.values())


def table(results: Sequence[ClassResult]) -> str:
    """A Markdown table, and a line for everything that failed."""
    rows = ["| class | tests | passed | failed | skipped | seconds |", "|---|--:|--:|--:|--:|--:|"]
    total: Counter[str] = Counter()
    for result in results:
        counts = {"tests": len(result.tests)} | {
            status: result.count(status) for status in ("passed", "failed", "skipped")
        }
        total.update(counts)
        rows.append(_row(result.name, counts, result.seconds))
    rows.append(_row("**all**", total, sum(result.seconds for result in results)))
    failures = [
        f"{result.name}.{test.name}: {test.cause}"
        for result in results
        for test in result.tests
        if test.status == "failed"
    ]
    problems = [f"{result.name}: {result.problem}" for result in results if result.problem]
    return "\n".join(rows + ([""] if failures or problems else []) + failures + problems)


def _row(name: str, counts: dict[str, int], seconds: float) -> str:
    figures = [str(counts.get(key, 0)) for key in ("tests", "passed", "failed", "skipped")]
    return f"| {' | '.join([name, *figures, f'{seconds:.0f}'])} |"
