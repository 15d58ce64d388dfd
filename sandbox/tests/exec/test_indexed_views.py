"""Indexed views: which there can be, and that their unique keys stay unique.

Evidence: Microsoft's page "Create indexed views", and the errors of its restrictions.
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client

TABLES = """
CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY, name varchar(9) NOT NULL, size int NOT NULL);
CREATE TABLE dbo.b (id int NOT NULL PRIMARY KEY, a int NOT NULL);
INSERT a VALUES (1, 'one', 5), (2, 'two', 7); INSERT b VALUES (10, 1), (20, 2);
"""
VIEW = "CREATE VIEW dbo.v WITH SCHEMABINDING AS SELECT a.name, b.id FROM dbo.a INNER JOIN dbo.b ON b.a = a.id"
INDEX = "CREATE UNIQUE CLUSTERED INDEX ix ON dbo.v (name)"


@pytest.fixture
def indexed(sql: Client) -> Client:
    for text in (TABLES, VIEW, INDEX):
        assert sql(text).errors == []
    return sql


@pytest.mark.parametrize(
    ("statement", "errors"),
    [
        ("INSERT b VALUES (30, 1)", [2601]),
        ("INSERT b VALUES (30, 3)", []),
        ("UPDATE a SET name = 'ONE'", [2601]),
        ("UPDATE a SET name = 'new' WHERE id = 1", []),
        ("DELETE b WHERE id = 10 INSERT b VALUES (30, 1)", []),
        (
            "MERGE b USING (VALUES (30, 2)) s (id, a) ON b.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a);",
            [2601],
        ),
        ("BEGIN TRY INSERT b VALUES (30, 1) END TRY BEGIN CATCH IF ERROR_NUMBER() <> 2601 THROW END CATCH", []),
    ],
)
def test_a_key_of_the_view_stays_unique(indexed: Client, statement: str, errors: list[int]) -> None:
    assert indexed(statement).errors == errors
    assert indexed("SELECT name FROM v GROUP BY name HAVING COUNT(*) > 1").rows == []


def test_what_a_duplicate_would_have_changed_is_as_before(indexed: Client) -> None:
    (text,) = [event.text for event in indexed("INSERT b VALUES (30, 1), (31, 9)").events if hasattr(event, "text")][:1]
    assert text == (
        "Cannot insert duplicate key row in object 'dbo.v' with unique index 'ix'. The duplicate key value is (one)."
    )
    assert indexed("SELECT id FROM b ORDER BY id").rows == [(10,), (20,)]


def test_an_index_can_go_and_goes_with_a_changed_view(indexed: Client) -> None:
    assert indexed("CREATE INDEX second ON v (id) SELECT * FROM v WITH (NOEXPAND) ORDER BY id").rows == [
        ("one", 10), ("two", 20)
    ]  # fmt: skip
    assert indexed("DROP INDEX ix ON dbo.v INSERT b VALUES (30, 1)").errors == []
    assert indexed(INDEX).errors == [1505], "it has duplicates now"
    assert indexed("DROP INDEX second ON v").errors == [3701], "gone with the clustered one"
    assert indexed(f"DELETE b WHERE id = 30 {INDEX}").errors == []
    assert indexed(VIEW.replace("CREATE", "ALTER")).errors == []
    assert indexed("INSERT b VALUES (30, 1)").errors == []


@pytest.mark.parametrize(
    ("query", "options", "index", "number"),
    [
        ("SELECT id, name FROM dbo.a", "", "UNIQUE CLUSTERED", 1939),
        ("SELECT id, name FROM dbo.a", "WITH SCHEMABINDING", "UNIQUE", 1940),
        ("SELECT id, name FROM dbo.a", "WITH SCHEMABINDING", "CLUSTERED", 1941),
        ("SELECT DISTINCT id FROM dbo.a", "WITH SCHEMABINDING", "UNIQUE CLUSTERED", 10100),
        ("SELECT TOP (1) id FROM dbo.a", "WITH SCHEMABINDING", "UNIQUE CLUSTERED", 10101),
        ("SELECT a.id FROM dbo.a LEFT JOIN dbo.b ON b.a = a.id", "WITH SCHEMABINDING", "UNIQUE CLUSTERED", 10113),
        ("SELECT id FROM dbo.a UNION ALL SELECT id FROM dbo.b", "WITH SCHEMABINDING", "UNIQUE CLUSTERED", 10116),
        ("SELECT a.id FROM dbo.a WHERE EXISTS (SELECT 1 FROM dbo.b)", "WITH SCHEMABINDING", "UNIQUE CLUSTERED", 10127),
        ("SELECT name AS id, SUM(size) s FROM dbo.a GROUP BY name", "WITH SCHEMABINDING", "UNIQUE CLUSTERED", 10138),
        ("SELECT name AS other FROM dbo.a", "WITH SCHEMABINDING", "UNIQUE CLUSTERED", 1911),
    ],
)
def test_views_that_cannot_be_indexed(sql: Client, query: str, options: str, index: str, number: int) -> None:
    sql(TABLES)
    assert sql(f"CREATE VIEW dbo.w {options} AS {query}").errors == []
    assert sql(f"CREATE {index} INDEX ix ON dbo.w (id)").errors == [number]


def test_a_grouped_view_counts(sql: Client) -> None:
    sql(TABLES)
    view = "CREATE VIEW dbo.w WITH SCHEMABINDING AS SELECT name, COUNT_BIG(*) AS n FROM dbo.a GROUP BY name"
    assert sql(view).errors == []
    assert sql("CREATE UNIQUE CLUSTERED INDEX ix ON dbo.w (name) INSERT a VALUES (3, 'one', 1)").errors == []
    assert sql("SELECT n FROM w WHERE name = 'one'").rows == [(2,)]
    assert sql("CREATE UNIQUE CLUSTERED INDEX iy ON dbo.w (n)").errors == [1902]
