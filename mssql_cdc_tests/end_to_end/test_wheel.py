"""The built wheel in a fresh environment: its contents, its command, and its code location in Dagster.

The fresh environment contains only the wheel and the packages that its metadata requires. These packages are linked
from the environment of the tests because installing them again (PySpark alone has 450 MB) would take minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mssql_cdc.run.discover import VERSION
from mssql_cdc.schema import Column, SqlServerType, TableId, TableSchema

ROOT = Path(__file__).parents[2]
CONNECTOR = {
    "topic.prefix": "shop",
    "database.hostname": "127.0.0.1",
    "database.user": "sa",
    "database.password": "secret-of-the-test",
    "database.names": "shop",
    "delta.warehouse": "warehouse",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # The build backend writes next to the sources, so it gets a copy of the tracked files.
    source = folder / "source"
    for name in _files("mssql_cdc", "mssql_cdc_tests", "pyproject.toml", "README.md", "LICENSE"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    _run(*pip, "--no-build-isolation", "--wheel-dir", str(folder), str(source), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment") / "venv"
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=wheel.parent)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    _run(*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel), cwd=wheel.parent)
    (packages,) = folder.glob("lib/python*/site-packages")
    (installed,) = (Distribution.at(path) for path in packages.glob("mssql_cdc-*.dist-info"))
    for required in _closure(installed):
        _link(required, packages)
    return folder


def test_the_wheel_contains_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"mssql_cdc"}
    assert {name for name in names if ".dist-info/" not in name} == _files("mssql_cdc")


def test_the_installed_command_shows_its_help(environment: Path, tmp_path: Path) -> None:
    shown = _run(str(environment / "bin" / "mssql-cdc"), "--help", cwd=tmp_path)
    assert "discover" in shown


def test_dagster_loads_the_location_of_the_installed_package(environment: Path, tmp_path: Path) -> None:
    connectors = tmp_path / "connectors"
    connectors.mkdir()
    (connectors / "shop.json").write_text(json.dumps({"name": "shop", "config": CONNECTOR}), encoding="utf-8")
    identity = Column("id", SqlServerType("int"), nullable=False)
    table = TableSchema(TableId("shop", "dbo", "orders"), (identity,), ("id",), object_id=1)
    listed = {"v": VERSION, "databases": {"shop": [json.loads(table.to_json())]}}
    (connectors / "shop.tables.json").write_text(json.dumps(listed), encoding="utf-8")
    program = (
        "import mssql_cdc, mssql_cdc.definitions as location\n"
        "print(mssql_cdc.__file__)\n"
        "print(sorted(spec.key.to_user_string() for spec in location.defs().resolve_all_asset_specs()))\n"
    )
    python = str(environment / "bin" / "python")
    file, keys = _run(python, "-c", program, cwd=tmp_path).splitlines()
    assert Path(file).is_relative_to(environment)
    assert "shop/shop/dbo/orders_current" in keys
    _run(python, "-m", "dagster", "definitions", "validate", "-m", "mssql_cdc.definitions", cwd=tmp_path)


def _files(*names: str) -> set[str]:
    """The files of the checkout, except those that git ignores."""
    listed = _run("git", "ls-files", "--cached", "--others", "--exclude-standard", *names, cwd=ROOT).splitlines()
    return {name for name in listed if (ROOT / name).is_file()}


def _run(*command: str, cwd: Path) -> str:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _closure(root: Distribution) -> list[Distribution]:
    """Every distribution that `root` requires, directly or indirectly, without unused extras."""
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, str]] = set()
    pending = [(root, "")]
    while pending:
        one, extra = pending.pop()
        for text in one.requires or ():
            required = Requirement(text)
            if required.marker is not None and not required.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(required.name)
            found.setdefault(name, distribution(name))
            for wanted in ("", *required.extras):
                if (name, wanted) not in asked:
                    asked.add((name, wanted))
                    pending.append((found[name], wanted))
    return list(found.values())


def _link(one: Distribution, packages: Path) -> None:
    """Link the distribution's files in site-packages."""
    for name in {file.parts[0] for file in one.files or () if file.parts[0] != ".."}:
        target, link = Path(str(one.locate_file(name))), packages / name
        if target.exists() and not link.exists():
            link.symlink_to(target)
