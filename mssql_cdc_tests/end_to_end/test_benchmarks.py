"""The benchmarks run: what they watch still exists, each part shows its targets, and each figure is written."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.goals import goals
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.parts import PARTS
from mssql_cdc_tests.benchmarks.sizes import TINY

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.usefixtures("spark")]

SHOWN: dict[str, Collection[str]] = {
    "start": (),
    "ticks": (
        "warm tick, 2 of 2 tables with 100 changes each: reading",
        "warm tick, 3 of 3 tables with 100 changes each: current tables",
    ),
    "records": ("records of 400 change events into a file: against Debezium",),
    "follow": ("records --follow: a change to its record, 95 %",),
    "current": ("1 x 1,000 rows, 10 random changes each: MERGE against tasks",),
    "changes": ("400 change events in 20 tables: bare fetch", "200 change events in 20 tables into change logs"),
    "snapshots": ("snapshot of a table of 500 rows and 50 of 10: Debezium into nothing",),
    "incremental": (
        "incremental snapshot of 2,000 rows beside 2,000 changes a second into a change log",
        "incremental snapshot of 2,000 rows beside 2,000 changes a second: against Debezium",
        "incremental snapshot of 2,000 rows beside 2,000 changes a second: the stream's lag without it, median",
        "incremental snapshot of 2,000 rows beside 2,000 changes a second: Debezium: the stream's lag with it, 95 %",
    ),
    "demo": ("make demo, 90 s: lag samples", "make demo, 90 s: times that the open page asked for all states"),
    "memory": ("peak memory of driver, snapshot, 2,000 rows", "peak memory of workers, changes, 8,000 rows"),
    "large": ("1 x 2,000 rows: files in the end",),
    "windows": (
        "a run over 3 tables begins, with 1 days: opening its accounts, CPU",
        "a change log's page: windows, with 1 days",
    ),
}
"""Figures without a target that each part has."""


def test_every_part_is_tested():
    assert set(SHOWN) == set(PARTS)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_shows_its_targets_in_miniature(tmp_path: Path, part: str):
    found = {figure.name: figure for figure in PARTS[part](Bench(tmp_path, TINY))}
    assert {goal.name for goal in goals([part], TINY)} | set(SHOWN[part]) <= found.keys()
    assert all(math.isfinite(figure.value) for figure in found.values())
    _check(part, found)


def _check(part: str, found: dict[str, Figure]) -> None:
    """What a miniature run cannot get wrong, however busy the machine is."""
    values = {name: figure.value for name, figure in found.items()}
    if part == "windows":
        assert values["1 days: copies for the other tables"] >= 48
        assert values["a run with 3 changing tables, with 1 days: events of a report"] >= 6
        not_green = found["assets that are not green, with 1 days"]
        assert (not_green.value, not_green.note) == (0, "")
    if part == "incremental":
        lags = [value for name, value in values.items() if "the stream's lag" in name]
        assert len(lags) == 8
        assert min(lags) > 0  # Nothing is delivered before it is committed.
    if part == "current":
        assert values["1 x 1,000 rows, 10 random changes each: tables that differ"] == 0
    if part == "large":
        assert values["1 x 2,000 rows: rows by the log that are missing or doubled"] == 0


def test_the_command_runs_parts_apart_and_writes_their_figures(tmp_path: Path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "mssql_cdc_tests.benchmarks", "start", "--tiny", "--json", str(figures)]
    done = subprocess.run(command, check=True, timeout=240, capture_output=True, text=True)
    found = json.loads(figures.read_text())
    assert [one["name"] for one in found] == [goal.name for goal in goals(["start"], TINY)]
    assert {(one["part"], one["bound"]) for one in found} == {("start", "at most")}
    assert done.stderr.splitlines()[0].endswith(" part start begins")
