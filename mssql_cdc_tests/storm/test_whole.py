"""Random and fixed schedules of the sandbox, the drivers and Spark: at each quiet point the lake is the source."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc_tests.storm.machine import storm
from mssql_cdc_tests.storm.mutants import WHOLE_MUTANTS
from mssql_cdc_tests.storm.whole import WholeWorld
from mssql_cdc_tests.storm.whole_machine import WholeStorm

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Make = Callable[[Path], WholeWorld]


@pytest.fixture(scope="module")
def make(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Makes databases of their own on one server."""
    numbers = itertools.count(1)
    with sandbox_process(tmp_path_factory.mktemp("server")) as server:
        yield lambda folder: WholeWorld(server, spark, folder, f"storm{next(numbers)}")


def test_lake_is_the_source_after_any_schedule_of_the_whole(make: Make):
    storm(make, machine=WholeStorm, schedules=2, steps=10, seed=0)


def row_goes_while_capture_is_off(played: WholeStorm) -> None:
    played.transaction([("orders", 0, "a"), ("orders", 1, "b")])
    played.come_to_rest()
    played.disable_change_enable("orders", [("orders", 0, None)])


def test_fixed_schedule_of_the_whole_finds_a_row_that_is_not_swept(make: Make):
    _play(make, row_goes_while_capture_is_off)
    (mutant,) = (mutant for mutant in WHOLE_MUTANTS if "not swept" in mutant.what)
    with mutant.planted(), pytest.raises(AssertionError, match="differs"):
        _play(make, row_goes_while_capture_is_off)


def _play(make: Make, schedule: Callable[[WholeStorm], None]) -> None:
    played = WholeStorm(make)
    try:
        schedule(played)
    finally:
        played.teardown()
