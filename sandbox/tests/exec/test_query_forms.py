"""Rules of queries that group in several ways, turn rows and columns, look through windows, or end as JSON.

Evidence: the examples of Microsoft's documentation of each clause, reduced to four rows.
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client

TABLE = """CREATE TABLE t (id int NOT NULL PRIMARY KEY, g varchar(5), n int)
INSERT t VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 30), (4, 'b', NULL)"""


@pytest.fixture
def table(sql: Client) -> Client:
    sql(TABLE)
    return sql


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT g, SUM(n) FROM t GROUP BY ROLLUP(g)", [("a", 30), ("b", 30), (None, 60)]),
        ("SELECT g, SUM(n) FROM t GROUP BY g WITH ROLLUP", [("a", 30), ("b", 30), (None, 60)]),
        ("SELECT g, GROUPING(g), SUM(n) FROM t GROUP BY GROUPING SETS ((g), ())",
         [("a", 0, 30), ("b", 0, 30), (None, 1, 60)]),
        ("SELECT g, id, COUNT(*) FROM t WHERE id < 3 GROUP BY GROUPING SETS (g, id)",
         [("a", None, 2), (None, 1, 1), (None, 2, 1)]),
        ("SELECT GROUPING_ID(g, n), COUNT(*) FROM t WHERE id = 1 GROUP BY CUBE(g, n) ORDER BY 1",
         [(0, 1), (1, 1), (2, 1), (3, 1)]),
        ("SELECT g, id, SUM(n) FROM t WHERE id < 3 GROUP BY g, ROLLUP(id)",
         [("a", 1, 10), ("a", 2, 20), ("a", None, 30)]),
        ("SELECT g, SUM(n) FROM t GROUP BY ROLLUP(g) HAVING GROUPING(g) = 1", [(None, 60)]),
        ("SELECT COUNT(*) FROM t WHERE 1 = 0 GROUP BY ()", [(0,)]),
    ],
)  # fmt: skip
def test_groups_of_several_sets(table: Client, query: str, rows: list[tuple]) -> None:
    assert table(query).rows == rows


def test_grouping_takes_only_what_is_grouped_by(table: Client) -> None:
    assert table("SELECT GROUPING(n) FROM t GROUP BY g").errors == [8161]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT * FROM (SELECT g, n FROM t) s PIVOT (SUM(n) FOR g IN ([a], [b], [c])) p", [(30, 30, None)]),
        (("SELECT y, [1], [2] FROM (VALUES (9, 1, 5), (9, 2, 6), (8, 1, 7)) s (y, m, n) "
         "PIVOT (MAX(n) FOR m IN ([1], [2])) p ORDER BY y"), [(8, 7, None), (9, 5, 6)]),
    ],
)  # fmt: skip
def test_pivot_makes_columns(sql: Client, query: str, rows: list[tuple]) -> None:
    sql(TABLE)
    assert sql(query).rows == rows


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("LAST_VALUE(n) IGNORE NULLS OVER (ORDER BY id)", [10, 20, 30, 30]),
        ("LAG(n) IGNORE NULLS OVER (ORDER BY id DESC)", [20, 30, None, None]),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY n) OVER (PARTITION BY g)", [15.0, 15.0, 30.0, 30.0]),
        ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY n) OVER (PARTITION BY g)", [10, 10, 30, 30]),
        ("SUM(n) OVER w", [30, 30, 30, 30]),
        ("SUM(n) OVER (w ORDER BY id)", [10, 30, 30, 30]),
    ],
)
def test_windows(table: Client, expression: str, values: list[object]) -> None:
    query = f"SELECT {expression} FROM t WINDOW w AS (PARTITION BY g)"
    assert table(f"SELECT v FROM (SELECT id, {expression} v FROM t WINDOW w AS (PARTITION BY g)) s ORDER BY id").rows \
        == [(value,) for value in values]  # fmt: skip
    assert len(table(query).rows) == 4


def test_unknown_window_is_an_error(table: Client) -> None:
    assert table("SELECT SUM(n) OVER v FROM t WINDOW w AS (ORDER BY id)").errors == [5363]


def test_sequence_values_follow_the_order_asked_for(table: Client) -> None:
    table("CREATE SEQUENCE s START WITH 1")
    assert table("SELECT id, NEXT VALUE FOR s OVER (ORDER BY id DESC) FROM t ORDER BY id").rows == [
        (1, 4), (2, 3), (3, 2), (4, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT id, g FROM t WHERE id < 3 FOR JSON AUTO", '[{"id":1,"g":"a"},{"id":2,"g":"a"}]'),
        ("SELECT a.id, b.n FROM t a JOIN t b ON a.id = b.id WHERE a.id = 1 FOR JSON AUTO",
         '[{"id":1,"b":[{"n":10}]}]'),
        ("SELECT id AS 'a.b', g AS 'a.c' FROM t WHERE id = 1 FOR JSON PATH, ROOT('r')",
         '{"r":[{"a":{"b":1,"c":"a"}}]}'),
        (("SELECT id, (SELECT n FROM t i WHERE i.id = t.id FOR JSON PATH) x FROM t WHERE id = 1 "
         "FOR JSON PATH, WITHOUT_ARRAY_WRAPPER"), '{"id":1,"x":[{"n":10}]}'),
        ("SELECT n FROM t WHERE id = 4 FOR JSON PATH, INCLUDE_NULL_VALUES", '[{"n":null}]'),
        (("SELECT CAST(1 AS bit) b, CAST(1.50 AS decimal(5, 2)) d, CAST(2.5 AS float) f, '/' s, 0x01 x, "
         "CAST('2024-01-02 03:04:05' AS datetime) t FOR JSON PATH"),
         '[{"b":true,"d":1.50,"f":2.500000000000000e+000,"s":"\\/","x":"AQ==","t":"2024-01-02T03:04:05"}]'),
    ],
)  # fmt: skip
def test_for_json(table: Client, query: str, text: str) -> None:
    assert table(query).rows == [(text,)]


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("SELECT 1 FOR JSON PATH", 13605),
        ("SELECT 1 AS a, 2 AS a FOR JSON PATH", 13601),
        ("SELECT 1 AS a FOR XML PATH('')", 40517),
        ("SELECT 1 AS a FOR JSON PATH, NONSENSE", 102),
    ],
)
def test_for_clauses_say_what_they_cannot(sql: Client, query: str, number: int) -> None:
    assert sql(query).errors == [number]


def test_nothing_gives_no_row(table: Client) -> None:
    assert table("SELECT id FROM t WHERE 1 = 0 FOR JSON PATH").rows == []
    assert table("SELECT ISNULL((SELECT id FROM t WHERE 1 = 0 FOR JSON PATH), 'none')").rows == [("none",)]
