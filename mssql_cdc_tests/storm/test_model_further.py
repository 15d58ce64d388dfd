"""Further random schedules of a modelled server, for another worker than that of `test_model.py`."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.storm.machine import storm
from mssql_cdc_tests.storm.model import ModelWorld


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 12))
def test_lake_is_the_source_after_any_further_schedule_of_the_model(seed: int):
    storm(ModelWorld, schedules=25, steps=20, seed=seed)
