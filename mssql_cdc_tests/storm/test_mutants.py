"""The storm bites: a defect that is put back into the product is found within a few schedules."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.storm.machine import storm
from mssql_cdc_tests.storm.model import ModelWorld
from mssql_cdc_tests.storm.mutants import MUTANTS, Mutant

_SOON = [mutant for mutant in MUTANTS if mutant.what in {"any other instance continues", "gaps are not recorded"}]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.rule}: {mutant.what}")
def test_mutant_fits_the_product(mutant: Mutant):
    with mutant.planted():
        pass


@pytest.mark.parametrize("mutant", _SOON, ids=lambda mutant: mutant.what)
def test_storm_finds_a_defect(mutant: Mutant):
    with mutant.planted(), pytest.raises((AssertionError, ValueError)):
        storm(ModelWorld, schedules=60, steps=20, seed=0)
