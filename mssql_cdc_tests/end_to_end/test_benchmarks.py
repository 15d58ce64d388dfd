"""The benchmarks run: what they watch still exists, and each figure is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_a_small_benchmark_writes_its_figures(tmp_path: Path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "mssql_cdc_tests.benchmarks", "ticks", "--tables", "2", "--repeat", "1"]
    subprocess.run([*command, "--json", str(figures)], check=True, timeout=240)
    found = json.loads(figures.read_text())
    names = {one["name"].rpartition(": ")[2] for one in found}
    assert {"survey", "reading", "commits", "offsets", "current tables", "range"} <= names
    assert all(set(one) == {"name", "value", "unit", "target", "holds"} for one in found)


def test_the_windows_of_a_day_are_reported_and_shown(tmp_path: Path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "mssql_cdc_tests.benchmarks", "windows", "--tables", "2", "--days", "1"]
    subprocess.run([*command, "--repeat", "1", "--json", str(figures)], check=True, timeout=290)
    found = {one["name"]: one["value"] for one in json.loads(figures.read_text())}
    assert found["1 days: copies for the other tables"] >= 48
    assert found["a run with 2 changing tables: events of a report"] >= 4
    assert found["a change log's page: windows, with 1 days"] > 0
