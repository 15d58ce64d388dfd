"""docs/correctness.md: each finding of the reviews has a row, and each test that a row names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "correctness.md").read_text(encoding="utf-8")
SURVIVORS = (
    "words-captured-dummy",
    "words-empty-scans",
    "words-scan-errors",
    "A9-after",
    "A9-before",
    "A9-after-no-rollback",
    "A9-quiet",
    "C19-sweep-waits",
    "E26-textsize",
    "mask-exact",
    "C18-mark-early",
    "merge-closed",
    "groups-done",
    "own-ignored",
    "epoch-member",
    "recreated",
    "fold order",
    "inc",
    "mark-unknown",
)
"""The mutants that no test found when the code was reviewed, and those that were not run then."""
FINDINGS = [*(str(number) for number in range(1, 28)), *(f"D{number}" for number in range(1, 12)), *SURVIVORS]
_NAMED = re.compile(r"`((?:[\w]+/)*test_\w+(?:\.py)?)(?:::(test_\w+))?`")
_SELECTED = re.compile(r"`((?:\w+/)*test_\w+\.py)(?:`, `| )-k \"?([\w ]+)\"?`")


def _rows() -> list[list[str]]:
    section = PAGE.partition("## Findings of the adversarial review")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [row for row in rows if row[0] != "finding"]


def _file(name: str) -> Path | None:
    """The file of a name such as `unit/plan/test_planner`; a name without a folder may be anywhere."""
    path = name if name.endswith(".py") else f"{name}.py"
    found = [ROOT / path, ROOT / "mssql_cdc_tests" / path]
    if "/" not in name:
        found += (ROOT / "mssql_cdc_tests").rglob(path)
    return next((one for one in found if one.is_file()), None)


def _has(path: Path, test: str) -> bool:
    return f"def {test}(" in path.read_text(encoding="utf-8")


def _missing(cell: str) -> list[str]:
    missing: list[str] = []
    for name, test in _NAMED.findall(cell):
        path = _file(name)
        if path is None and "/" not in name and not test:  # A test of any file.
            if not any(_has(one, name) for one in (ROOT / "mssql_cdc_tests").rglob("test_*.py")):
                missing.append(name)
        elif path is None or (test and not _has(path, test)):
            missing.append(f"{name}::{test}")
    return missing


@pytest.mark.parametrize("finding", FINDINGS)
def test_each_finding_has_a_row_with_a_test(finding: str):
    mine = [row for row in _rows() if finding in row[0].partition(":")[0].split(", ")]
    assert mine
    for row in mine:
        assert len(row) == 3, row
        assert "test" in row[2] or "ruff" in row[2], row


def test_tests_that_the_page_names_exist():
    cells = [row[-1] for row in _rows()]
    cells += [line for line in PAGE.partition("## The storm")[2].splitlines() if line.startswith("| ")]
    missing = {cell: names for cell in cells if (names := _missing(cell))}
    assert not missing


def test_selections_of_tests_that_the_page_names_select_some():
    selections = _SELECTED.findall(PAGE)
    assert len(selections) > 90
    for name, expression in selections:
        path = _file(name)
        assert path is not None, name
        text = path.read_text(encoding="utf-8")
        for word in set(expression.split()) - {"and", "or", "not"}:
            assert word in text, f"{name} -k {expression}"
