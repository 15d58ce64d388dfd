"""A common table expression that depends on no outer row is made once, however often a subquery reads it."""

import pytest

from tests.exec.conftest import Client

NUMBERS = "WITH n (i) AS (SELECT i FROM dbo.t)"


@pytest.fixture
def numbers(sql: Client) -> Client:
    sql("CREATE TABLE dbo.t (i int)")
    sql("INSERT dbo.t VALUES (1), (2), (3)")
    return sql


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT i FROM dbo.t o WHERE EXISTS (SELECT * FROM n WHERE n.i = o.i + 1)", [(1,), (2,)]),
        ("SELECT i, (SELECT SUM(i) FROM n WHERE n.i <= o.i) FROM dbo.t o", [(1, 1), (2, 3), (3, 6)]),
        ("SELECT o.i, a.c FROM dbo.t o CROSS APPLY (SELECT COUNT(*) AS c FROM n WHERE n.i < o.i) a",
         [(1, 0), (2, 1), (3, 2)]),
        ("SELECT i FROM dbo.t o WHERE i = (SELECT MAX(a.i) FROM n a JOIN n b ON a.i = b.i AND b.i <= o.i)",
         [(1,), (2,), (3,)]),
        ("SELECT i FROM dbo.t o WHERE i IN (SELECT TOP 1 i FROM n WHERE i >= o.i ORDER BY i DESC)", [(3,)]),
    ],
)  # fmt: skip
def test_each_outer_row_reads_all_of_it(numbers: Client, query: str, rows: list[tuple]) -> None:
    assert numbers(f"{NUMBERS} {query}").rows == rows


def test_each_execution_makes_it_anew(numbers: Client) -> None:
    query = f"{NUMBERS} SELECT COUNT(*) FROM dbo.t o WHERE EXISTS (SELECT * FROM n WHERE n.i = o.i)"
    assert numbers(query).rows == [(3,)]
    numbers("INSERT dbo.t VALUES (4)")
    assert numbers(query).rows == [(4,)]


def test_it_is_made_once_for_all_outer_rows(numbers: Client) -> None:
    """NEWID gives another value whenever it is asked, so that a second making would show."""
    made = "WITH n (g) AS (SELECT CAST(NEWID() AS char(36)))"
    query = f"{made} SELECT COUNT(DISTINCT x) FROM (SELECT (SELECT g FROM n WHERE o.i > 0) AS x FROM dbo.t o) y"
    assert numbers(query).rows == [(1,)]
