"""Random schedules of the sandbox, the drivers and Spark: at each quiet point the lake is the source."""

from __future__ import annotations

import itertools

import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc_tests.storm.machine import storm
from mssql_cdc_tests.storm.whole import WholeWorld
from mssql_cdc_tests.storm.whole_machine import WholeStorm


@pytest.mark.spark
@pytest.mark.slow
def test_lake_is_the_source_after_any_schedule_of_the_whole(spark, tmp_path):
    numbers = itertools.count(1)
    with sandbox_process(tmp_path) as server:
        storm(
            lambda folder: WholeWorld(server, spark, folder, f"storm{next(numbers)}"),
            machine=WholeStorm,
            schedules=2,
            steps=10,
            seed=0,
        )
