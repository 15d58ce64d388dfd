"""Lists which tests cover which Debezium behaviors: compares the `feature` marks with `docs/features.md`.

The scripts and readings of `conformance/` name behaviors, too: `make conformance` compares them with Debezium's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mssql_cdc_tests.conformance.courses import COURSES

TESTS = Path(__file__).parent
DOCUMENT = TESTS.parent / "docs" / "features.md"


NOT_BUILT: dict[str, str] = {}
"""Behaviors that no test can show, with the reason."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One `@pytest.mark.feature(...)`, or the features of a script or a reading: where it is, and its ids."""

    test: str
    ids: tuple[str, ...]


def known_ids() -> dict[str, str]:
    """Maps each id to its behavior, as listed in `docs/features.md`."""
    return dict(re.findall(r"^\| ([A-Z]{2,4}-\d\d) \| (.*) \|$", DOCUMENT.read_text(), re.MULTILINE))


def marks() -> Iterator[Mark]:
    """Yields every mark of every test module, and what the courses of `conformance/` show."""
    for course in COURSES.values():
        for one in (*course.scripts, *course.readings):
            if one.features:
                yield Mark(f"conformance: {course.name}/{one.name}", one.features)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.feature"):
                    ids = tuple(argument.value for argument in decorator.args if isinstance(argument, ast.Constant))
                    yield Mark(f"{path.relative_to(TESTS)}::{node.name}", tuple(map(str, ids)))


def main() -> None:
    """Prints each id with the tests that cover it."""
    shown: dict[str, list[str]] = {}
    for mark in marks():
        for feature in mark.ids:
            shown.setdefault(feature, []).append(mark.test)
    behaviours = known_ids()
    for feature, behaviour in behaviours.items():
        print(f"{feature}  {behaviour}: {', '.join(shown.get(feature) or [NOT_BUILT.get(feature, '-')])}")  # noqa: T201 (a report)
    print(f"{len(shown)} of {len(behaviours)} are shown")  # noqa: T201 (a report)


if __name__ == "__main__":
    main()
