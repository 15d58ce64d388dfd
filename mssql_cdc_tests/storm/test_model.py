"""Random schedules of a modelled server: at each quiet point the lake is the source (`make storm` plays more).

Two thirds of them are in `test_model_further.py`: a worker of pytest-xdist plays one module.
"""

from __future__ import annotations

import pytest

from mssql_cdc_tests.storm.machine import storm
from mssql_cdc_tests.storm.model import ModelWorld


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_lake_is_the_source_after_any_schedule_of_the_model(seed: int):
    storm(ModelWorld, schedules=25, steps=20, seed=seed)
