"""The wheel, installed alone in an environment of its own: its files, its command, and its fixtures as documented."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyodbc
import pytest

import mssql_sandbox

ROOT = Path(__file__).parents[1]
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel, its dependencies and pytest."""

    folder: Path
    wheel: Path

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python, which sees nothing of this checkout."""
        command = [str(self.folder / "bin" / "python"), "-I", *arguments]
        return subprocess.run(command, cwd=cwd or self.folder, capture_output=True, text=True, timeout=300)

    def install(self, *packages: str) -> None:
        """Install packages from the index."""
        done = self.run(*PIP, "install", *packages)
        assert done.returncode == 0, done.stderr

    def test(self, folder: Path, text: str) -> str:
        """Run a file of tests; what pytest prints if all pass."""
        (folder / "test_example.py").write_text(text, encoding="utf-8")
        done = self.run("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "--rootdir=.", ".", cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    _require_index(folder)
    source = folder / "source"
    shutil.copytree(ROOT / "mssql_sandbox", source / "mssql_sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    return _environment(folder / "environment", wheel)


def _environment(folder: Path, wheel: Path, *packages: str) -> Installed:
    venv.create(folder, with_pip=True)
    made = Installed(folder, wheel)
    made.install(str(wheel), "pytest", *packages)
    return made


def _require_index(folder: Path) -> None:
    command = [sys.executable, *PIP, "download", "--no-deps", "--dest", str(folder / "download"), "setuptools>=77"]
    if subprocess.run(command, capture_output=True, timeout=300).returncode:
        pytest.skip("no package index can be reached, and the build takes setuptools from there")


def test_wheel_holds_the_package_and_nothing_else(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    package = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    expected = {
        str(path.relative_to(ROOT)) for path in (ROOT / "mssql_sandbox").rglob("*") if path.suffix in (".py", ".typed")
    }
    assert package == expected


def test_command_and_module_print_the_version(installed: Installed) -> None:
    script = installed.folder / "bin" / "mssql-sandbox"
    for command in ([str(script)], [str(script.with_name("python")), "-I", "-m", "mssql_sandbox"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
        assert done.stdout == f"mssql-sandbox {mssql_sandbox.__version__}\n", done.stderr


def test_command_explains_its_options(installed: Installed) -> None:
    done = installed.run("-m", "mssql_sandbox", "--help")
    assert "--capture-interval SECONDS" in done.stdout
    assert "--ready-file PATH" in done.stdout


def test_example_of_the_readme_passes_without_a_driver(installed: Installed, tmp_path: Path) -> None:
    (example,) = PYTHON_BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert installed.run("-c", "import pyodbc").returncode == 1
    assert "1 passed" in installed.test(tmp_path, example)


def test_server_is_not_imported_by_a_test_run_that_does_not_use_it(installed: Installed, tmp_path: Path) -> None:
    text = "import sys\ndef test_nothing_is_imported():\n    assert 'mssql_sandbox.server' not in sys.modules\n"
    assert "1 passed" in installed.test(tmp_path, text)


@pytest.mark.long
@pytest.mark.skipif("FreeTDS" not in pyodbc.drivers(), reason="the FreeTDS ODBC driver is not installed")
def test_documented_examples_pass(installed: Installed, tmp_path: Path) -> None:
    with_driver = _environment(tmp_path / "environment", installed.wheel, "pyodbc")
    examples = PYTHON_BLOCK.findall((ROOT / "docs" / "testing.md").read_text(encoding="utf-8"))
    assert len(examples) == 4
    for number, example in enumerate(examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert "1 passed" in with_driver.test(folder, example)
