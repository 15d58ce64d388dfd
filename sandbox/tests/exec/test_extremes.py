"""MIN and MAX of an indexed column, which are found at an end of the index, are those of all rows."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.exec.conftest import Client

KEYS = {"ascending": "(a)", "descending": "(a DESC)", "second": "(b, a)"}
CONDITIONS = ["", "WHERE b = 1", "WHERE a < 3", "WHERE a > 0 AND b <> 1", "WHERE a IS NULL", "WHERE id > 100"]


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.none() | st.integers(-3, 5), st.integers(0, 2)), min_size=1, max_size=9))
def test_extreme_of_an_indexed_column_is_that_of_all_rows(sql: Client, key: str, rows: list) -> None:
    sql("IF OBJECT_ID(N'dbo.t') IS NOT NULL DROP TABLE dbo.t")
    sql("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, a int NULL, b int NOT NULL)")
    sql(f"CREATE INDEX ix ON dbo.t {KEYS[key]}")
    for a, b in rows:
        sql(f"INSERT INTO dbo.t (a, b) VALUES ({'NULL' if a is None else a}, {b})")
    for condition in CONDITIONS:
        for name in ("MIN", "MAX"):
            alone = sql(f"SELECT {name}(a) FROM dbo.t {condition}").rows
            # With a second aggregate all rows are read.
            assert alone == [(row[0],) for row in sql(f"SELECT {name}(a), COUNT(b) FROM dbo.t {condition}").rows]


def test_extreme_in_an_expression_and_with_having(sql: Client) -> None:
    sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
    sql("INSERT INTO dbo.t VALUES (3), (1), (2)")
    assert sql("SELECT MAX(id) + 1 FROM dbo.t").rows == [(4,)]
    assert sql("SELECT 'x' FROM dbo.t HAVING MAX(id) > 3").rows == []
    assert sql("SELECT MIN(id) FROM dbo.t HAVING COUNT(*) = 3").rows == [(1,)]
    assert sql("SELECT MAX(id) FROM dbo.t WHERE id < (SELECT MAX(id) FROM dbo.t)").rows == [(2,)]


def test_extreme_without_a_column_is_an_error(sql: Client) -> None:
    sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
    assert sql("SELECT MAX() FROM dbo.t").errors == [174]
