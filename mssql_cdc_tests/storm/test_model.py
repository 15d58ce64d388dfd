"""Random schedules of a modelled server: at each quiet point the lake is the source (`make storm` plays more)."""

from __future__ import annotations

from mssql_cdc_tests.storm.machine import storm
from mssql_cdc_tests.storm.model import ModelWorld


def test_lake_is_the_source_after_any_schedule_of_the_model():
    storm(ModelWorld, schedules=12, steps=20, seed=0)
