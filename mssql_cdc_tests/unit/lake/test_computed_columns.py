"""Computed columns: CDC delivers no value of them, and an update may change it, so none is kept (correctness D24)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.current import CurrentRequest, CurrentTables
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.read import query
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, home_in, orders

SCHEMA = orders(column("id", "int"), column("price", "int"), column("total", "int", computed=True))
READ = Change(1, "r", after={"id": 1, "price": 2, "total": 6})
AGAIN = Change(3, "r", after={"id": 1, "price": 10, "total": 30})


def update(at: int) -> Change:
    before, after = {"id": 1, "price": 2, "total": None}, {"id": 1, "price": 10, "total": None}
    return Change(at, "u", before=before, after=after, unavailable=["total"])


def no_spark() -> NoReturn:
    raise AssertionError("Spark was started")


def applied(home: TableHome, up_to: int) -> list[dict[str, Any]]:
    (result,) = CurrentTables(no_spark).apply_all([CurrentRequest(home, [SCHEMA], up_to, "auto")])
    assert not isinstance(result, MssqlCdcError)
    found = query(home.current, "SELECT price, total, _unavailable, _exact FROM t")
    return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.parametrize("together", [False, True], ids=["two sections", "one section"])
def test_an_update_makes_the_value_of_a_computed_column_unknown(tmp_path: Path, *, together: bool):
    """It kept the value of before, and said that it was known; `check` does not compare it."""
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, READ)
    if not together:
        assert applied(home, state.batch) == [{"price": 2, "total": 6, "_unavailable": None, "_exact": None}]
    state = append(state, SCHEMA, update(2))
    assert applied(home, state.batch) == [{"price": 10, "total": None, "_unavailable": ["total"], "_exact": None}]
    state = append(state, SCHEMA, AGAIN)
    assert applied(home, state.batch) == [{"price": 10, "total": 30, "_unavailable": None, "_exact": None}]


def test_a_read_after_an_update_knows_the_value(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, READ)
    state = append(state, SCHEMA, update(2), AGAIN)
    assert applied(home, state.batch) == [{"price": 10, "total": 30, "_unavailable": None, "_exact": None}]
