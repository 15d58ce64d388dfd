"""Random schedules of the sandbox, the drivers and Spark: at each quiet point the lake is the source."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.storm.conftest import Make
from mssql_cdc_tests.storm.machine import storm
from mssql_cdc_tests.storm.whole_machine import WholeStorm

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("seed", range(2))
def test_lake_is_the_source_after_any_schedule_of_the_whole(make: Make, seed: int):
    storm(make, machine=WholeStorm, schedules=2, steps=10, seed=seed)
