"""Outputs of users: the documented one keeps the order of each key, and loses and doubles nothing when it is killed."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.errors import ConfigurationError, StorageError
from mssql_cdc.records import open_output
from mssql_cdc_tests.unit.documented_extensions import installed
from mssql_cdc_tests.unit.extension_kit import install
from mssql_cdc_tests.unit.records.test_outputs import begun, go_on, run

KILLED = """
import os, signal, sys
from pathlib import Path
import mssql_cdc.records.pieces as pieces
from mssql_cdc.records import extension_output
from mssql_cdc_tests.unit.records import test_outputs as tests
import shop_records

target, folder = sys.argv[1], Path(sys.argv[2])
pieces.streamed.__kwdefaults__["window_rows"] = pieces.snapshot_rows.__kwdefaults__["window_rows"] = 3
extension_output.open_extension.__wrapped__.__kwdefaults__["keep_bytes"] = 9000
left = 0

def killed(function):
    def wrapper(*args):
        global left
        for moment in ("before", "after"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if moment == "before":
                found = function(*args)
        return found
    return wrapper

for name in ("open", "write", "keep"):
    setattr(shop_records.Partitioned, name, killed(getattr(shop_records.Partitioned, name)))
deaths = 0
while True:
    child = os.fork()
    if not child:
        left = 1 + deaths
        tests.run(tests.Lake(folder, tests.WITH_TRANSACTIONS), target)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status == 0:
        break
    assert os.WIFSIGNALED(status) and deaths < 100, status
    deaths += 1
print(deaths)
"""
FAILING = """
class Failing:
    def configure(self, properties):
        self.prefix = properties["topic.prefix"]

    def open(self, target):
        if target == "closed":
            raise ConnectionError(f"no broker for {self.prefix}")
        return None

    def write(self, database, records, position):
        raise TimeoutError("no answer")

    def keep(self):
        pass

    def close(self):
        pass
"""


def kept(path: Path) -> list[tuple[int, str, Any, Any]]:
    """Partition, topic, key and value of each record, in order."""
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT part, topic, key, value FROM records ORDER BY number").fetchall()
    database.close()
    return [(part, topic, _read(key), _read(value)) for part, topic, key, value in rows]


def _read(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def test_a_partitioned_output_that_is_killed_at_any_step_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    site = installed(tmp_path / "site", monkeypatch)
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 5)
    target = f"partitioned:{tmp_path / 'records.db'}"
    command = [sys.executable, "-c", KILLED, target, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
    go_on(lake, schemas, 6, 7)
    assert run(lake, target) > 0, "a later run goes on"
    assert run(lake, target) == 0
    found, expected = kept(tmp_path / "records.db"), lake.records()
    assert [(topic, key, value) for _, topic, key, value in found] == [
        (one["topic"], one["key"], one["value"]) for one in expected
    ]
    parts: dict[str, set[int]] = defaultdict(set)
    for (part, *_), one in zip(found, expected, strict=True):
        parts[f"{one['topic']} {one['key']}"].add(part)
        assert one["partition"] in {None, part}
    assert all(len(own) == 1 for own in parts.values()), "each key has one partition, and with it its order"
    assert len(set().union(*parts.values())) == 3


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("kafka:orders", ConfigurationError, r"found 'kafka', .*mssql_cdc\.outputs \(installed are .*failing"),
        ("failing:closed", StorageError, "The output failing failed: ConnectionError: no broker for server1"),
        ("failing:open", StorageError, "The output failing failed: TimeoutError: no answer"),
    ],
)
def test_an_output_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, error: type[Exception], message: str
):
    install(tmp_path / "site", "own", {"mssql_cdc.outputs": {"failing": "own_output:Failing"}}, {"own_output": FAILING})
    monkeypatch.syspath_prepend(tmp_path / "site")
    lake, _ = begun(tmp_path)
    with pytest.raises(error, match=message):
        run(lake, target)
    assert not list(tmp_path.glob("*:*")), "no file of this name"


def test_a_file_may_have_a_colon_in_its_name_after_a_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lake, _ = begun(tmp_path)
    monkeypatch.chdir(tmp_path)
    with open_output("./kafka:orders", lake.connector):
        pass
    assert (tmp_path / "kafka:orders").exists()
