"""Mistakes of a new user around the configuration's secrets and the lake's storage, named by the command line."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]
COLUMNS = ", ".join(f"c{number} int NULL" for number in range(100))


def limit_files() -> None:
    """No file may become larger, as on a full disk; the schema of a hundred columns in a Delta log is larger."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))


def test_a_disk_that_is_full_when_delta_commits_is_named_with_the_path(place: Place):
    place.create("wide", f"id int NOT NULL PRIMARY KEY, {COLUMNS}")
    place.sql("INSERT INTO dbo.wide (id) VALUES (1)")
    place.settle()
    command = ["run", "--config", str(place.config), "--warehouse", str(place.warehouse), "--until-caught-up"]
    found = subprocess.run(
        [sys.executable, "-m", "mssql_cdc.cli", *command],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_files,
    )
    assert found.returncode == 2, found.stderr
    last = found.stderr.splitlines()[-1]
    assert "File too large" in last
    assert str(place.warehouse) in last
    assert "\x1b" not in found.stderr
    assert place.catch_up() == 0
    assert place.check() == 0


def test_a_warehouse_that_cannot_be_written_to_is_named_with_its_path(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    where = orders.folder / "a file"
    where.write_text("in the way", encoding="utf-8")
    assert orders.command("run", "--until-caught-up", "--warehouse", str(where)) == 2
    assert str(where) in capsys.readouterr().err.splitlines()[-1]


def test_a_variable_that_is_not_set_is_named(place: Place, capsys: pytest.CaptureFixture[str]):
    place.configure(database_password="${env:NOBODY_HAS_SET_THIS}")
    assert place.catch_up() == 2
    assert "NOBODY_HAS_SET_THIS" in capsys.readouterr().err.splitlines()[-1]
    assert not Path(place.warehouse).exists()
