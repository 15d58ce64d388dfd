"""Positions that a database takes without rows are of one history, too: a restore behind them is noticed (A7)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mssql_cdc.plan.decisions import Restored
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.storm.incremental import IncrementalWorld
from mssql_cdc_tests.storm.lake import happening_at


@pytest.fixture
def world() -> Iterator[IncrementalWorld]:
    """Its connector reads no rows at the start (`snapshot.mode=no_data`)."""
    folder = Path(tempfile.mkdtemp(prefix="storm-"))
    made = IncrementalWorld(folder)
    with made.open():
        yield made
    shutil.rmtree(folder, ignore_errors=True)


def captured(world: IncrementalWorld, key: int, value: str) -> None:
    world.change(("orders", key, value))
    world.scan(500)


@pytest.mark.feature("SNP-05", "STR-22")
def test_restore_right_after_the_positions_of_a_start_without_rows_is_noticed(world: IncrementalWorld):
    """What comes below the position is never read: changes behind the start would be missing, in silence."""
    captured(world, 0, "in both histories")
    world.back_up()
    captured(world, 1, "taken back")
    follower = Follower(world.database, merge=False)
    follower.step()
    world.restore()
    captured(world, 2, "at the same position")
    captured(world, 3, "behind it")
    follower.step()
    assert isinstance(follower.decision, Restored)


@pytest.mark.feature("SNP-05", "STR-22")
def test_restore_between_a_survey_and_the_positions_that_it_takes_is_noticed(world: IncrementalWorld):
    captured(world, 0, "in both histories")
    world.back_up()
    captured(world, 1, "taken back")

    def meanwhile() -> None:
        world.restore()
        captured(world, 2, "at the same position")
        captured(world, 3, "behind it")

    follower = Follower(world.database, merge=False)
    with happening_at("mssql_cdc.capture.snapshot.take.append_offsets", 1, meanwhile):
        follower.step()
    follower.step()
    assert isinstance(follower.decision, Restored)
