"""`make demo` without its page: a live source, Dagster's daemon, and at the end a comparison of lake and source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mssql_cdc_tests.benchmarks.pages import webserver

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.sandbox, pytest.mark.timeout(900)]


def test_the_demo_ends_with_a_lake_that_equals_its_source(tmp_path: Path):
    """Under a workload that also adds a column and requests a snapshot; it says so itself, and lists what it found.

    Every asset that Dagster's pages show at its end is green. Current tables are reported once a minute, and Dagster
    looks at freshness once a minute: three minutes have both, also of a table that was in a snapshot at the first one.
    """
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "mssql_cdc.demo", "--headless", "--seconds", "180"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    assert "Source and lake match." in done.stdout
    assert "BAD" not in done.stdout
    place = tmp_path / ".demo"
    with webserver(place, home=place / "dagster", connectors=place / "connectors") as pages:
        keys = pages.asset_keys()
        assert keys
        assert pages.faults(keys) == {}
