"""Which tables fail a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import dagster as dg
import pytest

from mssql_cdc.capture.range import RangeResult, TableOutcome
from mssql_cdc.defs.failures import Failures
from mssql_cdc.errors import FencedError, MssqlCdcError, OvertakenError, SourceError
from mssql_cdc.follow.current import Merged
from mssql_cdc.plan.decisions import Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.schema import TableId
from mssql_cdc_tests.dagster.kit import connector

NOTHING = cast("Any", None)
DONE = Done(Wait("tested"), NOTHING, NOTHING)
TABLE = TableId("shop", "dbo", "orders")


def reading(error: MssqlCdcError | None) -> Done:
    """A range that read one table, or failed to."""
    outcomes = {TABLE: TableOutcome(NOTHING, error=error)}
    return replace(DONE, range=RangeResult(NOTHING, outcomes, None, NOTHING, NOTHING))


@pytest.mark.parametrize("error", [OvertakenError("another run has committed"), FencedError("another run has begun")])
def test_a_table_that_another_run_has_read_does_not_fail_the_run(error: MssqlCdcError):
    failures = Failures(connector())
    failures.add(reading(error))
    failures.add(replace(DONE, merged=Merged(errors={TABLE: error})))
    assert not failures.any
    failures.raise_if_any()


def test_a_table_that_another_run_has_read_since_it_failed_is_forgotten():
    failures = Failures(connector())
    failures.add(reading(SourceError("unreadable")))
    with pytest.raises(dg.Failure, match=r"1 table failed: .*unreadable"):
        failures.raise_if_any()
    failures.add(reading(OvertakenError("another run has committed")))
    failures.raise_if_any()
