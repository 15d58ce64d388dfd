"""The demo as the README has it, without its page: a live source, Dagster's daemon, and a comparison at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from mssql_cdc.defs.handover import HANDED_OVER, HANDING_OVER, STATE_TAG, STREAMING
from mssql_cdc_tests.benchmarks.pages import webserver

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.sandbox, pytest.mark.timeout(1500)]


def test_the_demo_ends_with_a_lake_that_equals_its_source(tmp_path: Path):
    """Under a workload that also adds a column and requests a snapshot; it says so itself, and lists what it found."""
    _play(tmp_path, seconds=90)


@pytest.mark.long
def test_every_asset_of_the_demo_is_green_at_its_end_and_runs_have_taken_turns(tmp_path: Path):
    """Current tables are reported once a minute, and Dagster looks at freshness once a minute.

    A run lasts five minutes: of seven, its successor, a process of its own, streams the last ones.
    """
    _play(tmp_path, seconds=420)
    place = tmp_path / ".demo"
    with dg.DagsterInstance.from_config(str(place / "dagster")) as instance:
        runs = instance.get_runs(dg.RunsFilter(tags={STATE_TAG: [STREAMING, HANDING_OVER, HANDED_OVER]}))
    last, *before = runs
    assert last.tags[STATE_TAG] == STREAMING, "the demo ended it"
    assert [(run.tags[STATE_TAG], run.status) for run in before] == [(HANDED_OVER, dg.DagsterRunStatus.SUCCESS)]
    with webserver(place, home=place / "dagster", connectors=place / "connectors") as pages:
        keys = pages.asset_keys()
        assert keys
        assert pages.faults(keys) == {}


def _play(place: Path, *, seconds: int) -> None:
    shutil.copy(ROOT / "dagster.yaml", place)
    done = subprocess.run(
        [sys.executable, "-m", "mssql_cdc.demo", "--headless", "--seconds", str(seconds)],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    assert "Source and lake match." in done.stdout
    assert "BAD" not in done.stdout
