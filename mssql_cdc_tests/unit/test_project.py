"""Rules about the project itself: marks, files, texts."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import mssql_cdc
from mssql_cdc_tests.feature_index import NOT_BUILT, known_ids, marks

ROOT = Path(__file__).parents[2]
CONVENTION_SINCE = "Move the sandbox into a distribution of its own"
NO_IMPERATIVES = re.compile(
    r"(A|An|The|All|Every|No|One|This|What|When|Whatever)"
    r"|(Add|Allow|Check|Document|Fix|Mov|Nam|Remov|Renam|Support|Test|Updat|Us|Writ)(s|es|ed|d|ing)"
)
"""First words that start a statement, and forms of common verbs that are not imperatives."""
REGISTRY_HOSTS = re.compile(r"\b(pypi|pythonhosted|npmjs|crates|maven|debian|golang)\.(org|io)\b")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _files() -> list[Path]:
    return [ROOT / name for name in _git("ls-files").splitlines() if (ROOT / name).is_file()]


def _project(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))["project"]


def test_feature_marks_name_at_most_three_known_behaviors() -> None:
    known = known_ids()
    wrong = [m for m in marks() if not 1 <= len(m.ids) <= 3 or not set(m.ids) <= set(known)]
    assert not wrong


def test_a_test_shows_each_behavior_that_is_built() -> None:
    shown = {feature for mark in marks() for feature in mark.ids}
    assert sorted(set(known_ids()) - shown) == sorted(NOT_BUILT)


DOCUMENTED = ("docs/extensions.md", "docs/snapshot-extensions.md")
"""What these pages name is for the code of users: the contracts of extensions, and bases for them."""


def _names(node: ast.AST) -> Counter[str]:
    """How often code names things: variables, attributes, imports, and types in the text of a cast."""
    found: Counter[str] = Counter()
    for one in ast.walk(node):
        match one:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found[name] += 1
            case ast.alias(name=name):
                found[name.rpartition(".")[2]] += 1
            case ast.Call(func=ast.Name(id="cast"), args=[ast.Constant(value=str(text)), *_]):
                found.update(re.findall(r"\w+", text))
            case _:
                pass
    return found


@pytest.mark.parametrize("package", ["mssql_cdc", "mssql_cdc_tests"])
def test_every_function_and_class_of_a_module_is_used_in_its_package(package: str) -> None:
    """One of the product that only tests use belongs to the tests; one that nothing uses is dead."""
    modules = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / package).rglob("*.py")}
    used = sum((_names(tree) for tree in modules.values()), Counter[str]())
    commands = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = set(re.findall(r"mssql_cdc[\w.]*:(\w+)", commands)) | {"__getattr__"}  # Python itself calls that.
    named |= {name for page in DOCUMENTED for name in re.findall(r"\w+", (ROOT / page).read_text(encoding="utf-8"))}
    dead = [
        f"{path.relative_to(ROOT)}: {one.name}"
        for path, tree in modules.items()
        for one in tree.body
        if isinstance(one, ast.FunctionDef | ast.ClassDef)
        and one.name not in named
        and not one.name.startswith(("test_", "Test", "pytest_"))
        and used[one.name] <= _names(one)[one.name]
        and not any(re.search(r"definitions|fixture", ast.unparse(each)) for each in one.decorator_list)
    ]
    assert dead == []


def _fault(subject: str) -> str | None:
    """The violation of CONTRIBUTING.md by a commit's subject, if any."""
    first = subject.split(" ", maxsplit=1)[0]
    if len(subject) > 72:
        return f"{len(subject)} characters"
    if not re.fullmatch(r"[A-Z][a-z]+(-[a-z]+)*", first) or NO_IMPERATIVES.fullmatch(first):
        return "no imperative at the beginning"
    return "a full stop at the end" if subject.endswith(".") else None


def test_commit_subjects_are_short_imperatives() -> None:
    log = subprocess.run(["git", "log", "--no-merges", "--format=%s"], cwd=ROOT, capture_output=True, text=True)
    history = log.stdout.splitlines()
    if CONVENTION_SINCE not in history:
        pytest.skip(f"no history back to {CONVENTION_SINCE!r}, which began the convention: a shallow clone, or none")
    subjects = history[: history.index(CONVENTION_SINCE)]
    assert not {subject: fault for subject in subjects if (fault := _fault(subject)) is not None}


@pytest.mark.parametrize(
    "subject",
    [
        "add a command",
        "Added a command",
        "Adds a command",
        "Adding a command",
        "The command has an option",
        "DBCC USEROPTIONS lists settings",
        "Add a command.",
        "Add a command " + "and another " * 5,
    ],
)
def test_commit_subjects_that_break_the_convention_are_detected(subject: str) -> None:
    assert _fault(subject) is not None


def _undescribed(node: ast.AST, owner: str) -> Iterator[str]:
    """Public functions with more than two parameters and without `Args`; click's commands describe their options."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from _undescribed(child, f"{owner}.{child.name}")
        if not isinstance(child, ast.FunctionDef) or child.name.startswith("_"):
            continue
        named = [one.arg for one in (*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs)]
        parameters = [name for name in named if name not in {"self", "cls"}]
        is_command = any("click.command" in ast.unparse(one) for one in child.decorator_list)
        if len(parameters) > 2 and not is_command and "Args:" not in (ast.get_docstring(child) or ""):
            yield f"{owner}.{child.name}"


def test_public_functions_with_more_than_two_parameters_describe_them() -> None:
    found = [
        name
        for path in sorted((ROOT / "mssql_cdc").rglob("*.py"))
        for name in _undescribed(ast.parse(path.read_text(encoding="utf-8")), path.stem)
    ]
    assert not found


def test_no_file_names_a_package_registry() -> None:
    named = []
    for path in _files():
        if path.suffix not in {".png", ".parquet"} and REGISTRY_HOSTS.search(path.read_text(errors="replace")):
            named.append(path.relative_to(ROOT))
    assert not named


def test_relative_links_in_the_documents_exist() -> None:
    broken = []
    for path in _files():
        if path.suffix == ".md":
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
                if not (path.parent / target).exists():
                    broken.append(f"{path.relative_to(ROOT)} -> {target}")
    assert not broken


def test_importing_the_package_imports_nothing_heavy() -> None:
    """Spark workers import it for every task."""
    heavy = {"dagster", "deltalake", "pandas", "pyarrow", "pydantic", "pyspark"}
    program = f"import sys, mssql_cdc; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_dependencies_are_what_the_package_imports() -> None:
    imported: set[str] = set()
    for path in (ROOT / "mssql_cdc").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                imported.add(node.module.split(".")[0])
    owners = packages_distributions()
    foreign = imported - sys.stdlib_module_names - {"mssql_cdc"}
    needed = {canonicalize_name(owners[name][0]) for name in foreign}
    declared = {canonicalize_name(Requirement(text).name) for text in _project("pyproject.toml")["dependencies"]}
    extras = _project("pyproject.toml")["optional-dependencies"]
    optional = {
        canonicalize_name(Requirement(text).name) for name in ("connect", "kafka", "lineage") for text in extras[name]
    }
    # pyspark's mapInArrow needs pandas; `dagster dev` needs dagster-webserver for its UI; pydantic-core is
    # pydantic's own, which pins its version.
    assert declared == (needed - {"pydantic-core"} - (optional - declared)) | {"pandas", "dagster-webserver"}


def test_the_lock_satisfies_both_distributions_with_a_hash_for_every_package() -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    locked = {}
    for entry in entries:
        if not entry.startswith("#"):
            assert "--hash=sha256:" in entry, entry
            (pin,) = Requirement(entry.split("\\")[0]).specifier
            assert pin.operator == "=="
            locked[canonicalize_name(Requirement(entry.split("\\")[0]).name)] = pin.version
    for project in (_project("pyproject.toml"), _project("sandbox/pyproject.toml")):
        for text in (*project["dependencies"], *project["optional-dependencies"]["dev"]):
            required = Requirement(text)
            assert required.specifier.contains(locked[canonicalize_name(required.name)]), f"{text}: run make lock"


def test_the_package_exports_build_definitions() -> None:
    assert callable(mssql_cdc.build_definitions)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = mssql_cdc.nonsense
