"""A range whose start was cleaned up is detected, and NULL or zero is never a small number (rule A9)."""

from __future__ import annotations

import pytest

from mssql_cdc.errors import DataLostError, SourceError
from mssql_cdc.lsn import ZERO_LSN, Lsn
from mssql_cdc.source.sqlserver.positions import require_held
from mssql_cdc.source.sqlserver.replica_states import numeric_lsn
from mssql_cdc_tests.unit.source.raw import lsn


@pytest.mark.parametrize("minimum", [5, 20, 21])
def test_a_minimum_up_to_the_next_lsn_covers_the_range(minimum: int) -> None:
    require_held("dbo_t", lsn(minimum), lsn(20))


def test_a_minimum_after_the_next_lsn_means_loss() -> None:
    with pytest.raises(DataLostError, match="retention"):
        require_held("dbo_t", lsn(22), lsn(20))


@pytest.mark.parametrize("minimum", [None, ZERO_LSN])
def test_a_missing_minimum_is_an_error_and_not_zero(minimum: Lsn | None) -> None:
    with pytest.raises(SourceError, match="dbo_t"):
        require_held("dbo_t", minimum, lsn(20))


def test_an_lsn_in_numeric_notation() -> None:
    assert numeric_lsn(39_0000000352_00017) == Lsn.parse("27:160:11")
