"""The figures of a run in a JSON file, and the Markdown tables that are made from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mssql_cdc_tests.benchmarks.goals import goals
from mssql_cdc_tests.benchmarks.measure import Figure, shown
from mssql_cdc_tests.benchmarks.sizes import Sizes


@dataclass(frozen=True, slots=True)
class FiguresFile:
    """A list of {name, value, unit, target, bound, holds, part, at}; a `note` where there is one."""

    path: Path

    def read(self) -> list[dict[str, Any]]:
        """The figures; none if the file does not exist."""
        return json.loads(self.path.read_text()) if self.path.exists() else []

    def drop(self, parts: Sequence[str]) -> None:
        """Remove the figures of these parts."""
        self._write([one for one in self.read() if one["part"] not in parts])

    def add(self, part: str, figure: Figure) -> None:
        """Add a figure, so that a run that is cut off leaves what it has measured."""
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
        self._write([*self.read(), {**figure.to_json(), "part": part, "at": at}])

    def _write(self, found: Sequence[dict[str, Any]]) -> None:
        fresh = self.path.with_name(f"{self.path.name}.new")
        fresh.write_text(json.dumps(found, indent=1) + "\n")
        fresh.replace(self.path)


def markdown(found: Sequence[dict[str, Any]], *, parts: Sequence[str], sizes: Sizes) -> Iterator[str]:
    """The lines of two tables: the targets with their figures, and everything else by part.

    Args:
        found: The figures of a file.
        parts: All parts.
        sizes: The sizes of the run.
    """
    by_name = {one["name"]: one for one in found}
    wanted = {goal.name: goal for goal in goals(parts, sizes)}
    yield from ("| what | target | figure | measured |", "|---|--:|--:|---|")
    for name, goal in wanted.items():
        one = by_name.get(name)
        said = "still to be measured |"
        if one is not None:
            said = f"{_value(one)}{'' if one['holds'] else ' ✗'} | {_when(one)}"
        yield f"| {name} | {goal.bound} {goal.target:g} {goal.unit} | {said} |"
    for part in parts:
        rest = [one for one in found if one["part"] == part and one["name"] not in wanted]
        if rest:
            yield from ("", f"`{part}`:", "", "| what | figure | target |", "|---|--:|--:|")
            for one in rest:
                target = "" if one["target"] is None else f"{one['bound']} {one['target']:g}"
                yield f"| {one['name']} | {_value(one)} | {target} |"


def _value(one: dict[str, Any]) -> str:
    return f"{shown(one['value'])} {one['unit']}".strip()


def _when(one: dict[str, Any]) -> str:
    return one["at"].partition("T")[0] + (f"; {one['note']}" if one.get("note") else "")
