"""Rules of queries: what comes back, in which order, with which types."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from tests.exec.conftest import Client

PEOPLE = """
CREATE TABLE people (id int NOT NULL PRIMARY KEY, name nvarchar(50), team int, score decimal(9,2))
INSERT people VALUES (1, N'Ann', 1, 10.5), (2, N'bob', 1, 7), (3, N'Cid', 2, NULL), (4, NULL, 2, 3.25)
"""


@pytest.fixture
def people(sql: Client) -> Client:
    sql(PEOPLE)
    return sql


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT name FROM people WHERE name = N'ANN  '", [("Ann",)]),
        ("SELECT id FROM people WHERE id > 1 AND NOT (id > 3) ORDER BY id DESC", [(3,), (2,)]),
        ("SELECT TOP 2 id FROM people ORDER BY name", [(4,), (1,)]),
        ("SELECT team, COUNT(*), SUM(score) FROM people GROUP BY team ORDER BY team",
         [(1, 2, Decimal("17.50")), (2, 2, Decimal("3.25"))]),
        ("SELECT p.id, q.id FROM people p LEFT JOIN people q ON q.id = p.id + 2 ORDER BY 1",
         [(1, 3), (2, 4), (3, None), (4, None)]),
        ("SELECT id FROM people WHERE team IN (SELECT team FROM people WHERE name = 'bob')", [(1,), (2,)]),
        ("SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.id = p.id + 3)", [(1,)]),
        ("SELECT id, ROW_NUMBER() OVER (PARTITION BY team ORDER BY id DESC) FROM people ORDER BY id",
         [(1, 2), (2, 1), (3, 2), (4, 1)]),
        ("SELECT id FROM people WHERE score <> 7", [(1,), (4,)]),
        ("SELECT id FROM people WHERE name LIKE '[ac]%'", [(1,), (3,)]),
        ("SELECT p.id, x.n FROM people p CROSS APPLY (SELECT p.id * 10 AS n) x WHERE p.id < 3", [(1, 10), (2, 20)]),
        ("WITH r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT SUM(n) FROM r", [(6,)]),
        ("SELECT team FROM people UNION SELECT 9 EXCEPT SELECT 1", [(2,), (9,)]),
        ("SELECT id FROM people ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY", [(2,), (3,)]),
        ("SELECT 7/2, 7%2, -7/2, 7/2.0", [(3, 1, -3, Decimal("3.500000"))]),
    ],
)  # fmt: skip
def test_query_gives_the_rows_sql_server_gives(people: Client, query: str, rows: list[tuple]) -> None:
    assert people(query).rows == rows


def test_result_columns_tell_name_type_and_nullability(people: Client) -> None:
    columns = people("SELECT id, name AS who, id + 1 FROM people").columns.columns
    assert [(c.name, str(c.type), c.nullable) for c in columns] == [
        ("id", "int", False), ("who", "nvarchar(50)", True), ("", "int", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("SELECT nope FROM people", 207),
        ("SELECT * FROM missing", 208),
        ("SELECT id FROM people a, people b", 209),
        ("SELECT x.id FROM people", 4104),
        ("SELECT id, COUNT(*) FROM people GROUP BY team", 8120),
        ("SELECT (SELECT id FROM people)", 512),
        ("SELECT 1/0", 8134),
        ("SELECT @missing", 137),
        ("SELECT 1 UNION SELECT 1, 2", 205),
        ("SELECT CAST('x' AS int)", 245),
    ],
)
def test_wrong_query_fails_with_sql_servers_number(people: Client, query: str, number: int) -> None:
    assert people(query).errors == [number]


key = some.tuples(some.integers(-5, 5), some.integers(-5, 5))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.sets(key, max_size=12), key, some.sampled_from(["ASC", "DESC"]))
def test_an_index_never_changes_what_a_range_returns(sql: Client, rows: set, bound: tuple, direction: str) -> None:
    """The paging condition of chunk and change reads, with and without an index on the columns."""
    sql("DROP TABLE IF EXISTS plain DROP TABLE IF EXISTS keyed")
    sql("CREATE TABLE plain (a int NOT NULL, b int NOT NULL) "
        f"CREATE TABLE keyed (a int NOT NULL, b int NOT NULL, PRIMARY KEY (a {direction}, b))")  # fmt: skip
    for table in ("plain", "keyed") if rows else ():
        sql(f"INSERT {table} VALUES " + ", ".join(f"({a}, {b})" for a, b in rows))
    low_a, low_b = bound
    where = f"WHERE ((a = {low_a} AND b > {low_b}) OR a > {low_a}) AND a <= 4 ORDER BY a, b"
    expected = sorted(r for r in rows if r > bound and r[0] <= 4)
    assert sql(f"SELECT a, b FROM plain {where}").rows == expected
    assert sql(f"SELECT a, b FROM keyed {where}").rows == expected
    assert sql(f"SELECT TOP 3 a, b FROM keyed {where} ").rows == expected[:3]


def test_string_agg_takes_its_separator_from_anywhere(sql: Client) -> None:
    values = "FROM (VALUES (1, N'a'), (2, NULL), (3, N'b')) v(n, s)"
    assert sql(f"DECLARE @s nvarchar(2) = N'; ' SELECT STRING_AGG(s, @s) {values}").rows == [("a; b",)]


def test_bits_cannot_be_summed(sql: Client) -> None:
    assert sql("SELECT SUM(b) FROM (VALUES (CAST(1 AS bit))) v(b)").errors == [8117]


@pytest.mark.parametrize("collation", ["SQL_Latin1_General_CP1_CI_AS", "Latin1_General_CI_AS"])
@pytest.mark.parametrize("condition", ["pk > @p", "NOT pk > @p", "pk BETWEEN @p AND @p + N'9'", "pk = @p"])
def test_varchar_is_compared_with_nvarchar_by_unicode_rules_also_where_it_is_indexed(
    sql: Client, collation: str, condition: str
) -> None:
    """Under SQL_ collations an index on varchar has another order than that, hyphens count in it: it cannot be sought.

    Evidence: Debezium's IncrementalSnapshotCollationSortOrderMismatchIT, which counts the rows that chunks miss.
    """
    for table, key in (("plain", ""), ("keyed", "PRIMARY KEY")):
        sql(f"CREATE TABLE {table} (pk varchar(20) COLLATE {collation} NOT NULL {key})")
        sql(f"INSERT INTO {table} VALUES ('Y-11-3-4'), ('Y-11-4-1'), ('Y1-01-1-1'), ('Y1-11-3-1'), ('Y1-13-6-4')")
    for parameter in ("Y-11-3-4", "Y1-11-3-1", "Y1-13-6-4"):
        plain, keyed = (
            sql(f"DECLARE @p nvarchar(40) = N'{parameter}'; SELECT pk FROM {table} WHERE {condition} ORDER BY pk").rows
            for table in ("plain", "keyed")
        )
        assert keyed == plain
