"""Effects that other tests show, because they need what a unit test lacks: a server, or an installed extension."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class ShownBy:
    """The tests that show the effect of a property, `<file>::<function>` below `mssql_cdc_tests`."""

    tests: tuple[str, ...]

    def problems(self, name: str) -> list[str]:
        """Why these tests do not show the property: missing, not collected by pytest, or silent about its name."""
        return [problem for test in self.tests if (problem := _problem(test, name))]


def shown_by(*tests: str) -> ShownBy:
    """The effect is shown by these tests."""
    return ShownBy(tests)


def _problem(test: str, name: str) -> str | None:
    file, _, function = test.partition("::")
    path = TESTS / file
    if not path.is_file() or not re.fullmatch(r"test_\w+\.py", path.name):
        return f"{test}: pytest collects no such file"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == function]
    if not found or not function.startswith("test_"):
        return f"{test}: pytest collects no such test"
    if any("skip" in ast.unparse(one) or "xfail" in ast.unparse(one) for one in found[0].decorator_list):
        return f"{test}: is not run"
    own = {one.value for one in ast.walk(found[0]) if isinstance(one, ast.Constant)}
    own |= {one.arg.replace("_", ".") for one in ast.walk(found[0]) if isinstance(one, ast.keyword) and one.arg}
    own |= _constants(tree, {one.id for one in ast.walk(found[0]) if isinstance(one, ast.Name)})
    return None if {name, name.replace(".", "_")} & own else f"{test}: sets no {name}"


def _constants(tree: ast.Module, names: set[str]) -> set[object]:
    """The texts in the module's own constants of these names."""
    assigned = [
        one.value
        for one in tree.body
        if isinstance(one, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id in names for target in one.targets)
    ]
    return {one.value for value in assigned for one in ast.walk(value) if isinstance(one, ast.Constant)}
