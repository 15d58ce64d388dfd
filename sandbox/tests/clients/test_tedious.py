"""node's tedious: a reader of TDS that shares no code with Microsoft's drivers and FreeTDS."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mssql_sandbox.server import SandboxServer

pytestmark = pytest.mark.timeout(300)

VERSION = "19.2.2"
_SCENES = Path(__file__).parent / "node" / "scenes.js"
_INSTALL_SECONDS = 180


@pytest.fixture(scope="session")
def tedious(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tedious installed; skips where node or npm, or the package, cannot be had."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: tedious cannot be tried")
    folder = tmp_path_factory.mktemp("tedious")
    (folder / "package.json").write_text('{"name": "clients", "private": true}', encoding="utf-8")
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel", "error", f"tedious@{VERSION}"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm has not installed tedious {VERSION} within {_INSTALL_SECONDS} seconds")
    if done.returncode:
        pytest.skip(f"npm cannot install tedious {VERSION}: {done.stderr.strip()[-300:]}")
    return folder


@pytest.fixture
def scene(tedious: Path, sandbox: SandboxServer) -> Callable[[str], Any]:
    """Runs a scene; what it saw."""

    def run(name: str) -> Any:
        command = ["node", str(_SCENES), str(tedious), str(sandbox.port), sandbox.password, name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_parameters_of_every_type_come_back(scene: Callable[[str], Any]) -> None:
    seen = scene("types")
    assert [entry for entry in seen if entry[1:] != [True, None]] == []
    assert len(seen) == 25


def test_transactions_savepoints_and_isolation(scene: Callable[[str], Any]) -> None:
    assert scene("transactions") == [[1]]


def test_bulk_load_carries_every_type(scene: Callable[[str], Any]) -> None:
    assert scene("bulk") == {"count": 2, "different": [], "nulls": True}


def test_table_valued_parameter_and_output(scene: Callable[[str], Any]) -> None:
    assert scene("tables") == [[[1, None], [2, "two"], [3, "\u4e2d"]], {"n": 3}]


def test_prepared_requests(scene: Callable[[str], Any]) -> None:
    assert scene("prepared") == [2, 4, 6]


def test_timeouts_and_errors_leave_the_connection_usable(scene: Callable[[str], Any]) -> None:
    timed_out, rows, missing, division = scene("cancel")
    assert timed_out[0] == "ETIMEOUT"
    assert rows == [[1]]
    assert missing == ["EREQUEST", 208]
    assert division == ["EREQUEST", 8134]


def test_full_encryption(scene: Callable[[str], Any]) -> None:
    assert scene("encrypted") == [["TRUE"]]


def test_wrong_password(scene: Callable[[str], Any]) -> None:
    assert scene("wrong")[0] == "ELOGIN"
