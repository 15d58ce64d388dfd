"""Ranges of an index whose later columns descend."""

from __future__ import annotations

import itertools

import pytest

from tests.exec.conftest import Client

RANGES = ["b > 1", "b >= 1", "b < 2", "b <= 2", "b > 0 AND b < 2", "b IS NULL", "b IS NOT NULL", "b = 1", "b = b"]
ORDERS = ["b", "b DESC"]


@pytest.mark.parametrize("nullable", ["NULL", "NOT NULL"])
@pytest.mark.parametrize("key", ["a, b DESC", "a DESC, b", "a DESC, b DESC"])
def test_a_range_after_a_fixed_column_has_its_rows_in_either_order(sql: Client, key: str, nullable: str) -> None:
    """It closed the connection where the range was the rest of the prefix."""
    values = [*range(4), *([None] if nullable == "NULL" else [])]
    pairs = ", ".join(f"({a}, {'NULL' if b is None else b})" for a, b in itertools.product(range(3), values))
    for table, unique in (("t", f", UNIQUE ({key})"), ("plain", "")):
        sql(f"CREATE TABLE dbo.{table} (a int NOT NULL, b int {nullable}{unique})")
        sql(f"INSERT dbo.{table} VALUES {pairs}")
    for where, order in itertools.product([*(f"a = 1 AND {one}" for one in RANGES), "a = 1", "a > 1"], ORDERS):
        query = f"SELECT TOP (3) a, b FROM dbo.{{}} WHERE {where} ORDER BY a, {order}"
        assert sql(query.format("t")).rows == sql(query.format("plain")).rows, query
