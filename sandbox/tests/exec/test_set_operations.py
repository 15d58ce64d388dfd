"""ORDER BY over set operations."""

from tests.exec.conftest import Client


def test_union_can_be_ordered_by_a_qualified_column_of_its_first_select(sql: Client) -> None:
    """SQLAlchemy's reflection of foreign keys relies on it."""
    sql("CREATE TABLE dbo.u (a int, b int)")
    sql("INSERT dbo.u VALUES (1, 9), (2, 8)")
    text = "SELECT x.a, x.b FROM dbo.u x UNION SELECT y.b, y.a FROM dbo.u y ORDER BY x.b DESC"
    assert [row[1] for row in sql(text).rows] == [9, 8, 2, 1]


def test_union_ordered_by_a_column_outside_its_list_is_an_error(sql: Client) -> None:
    sql("CREATE TABLE dbo.u (a int, b int)")
    assert sql("SELECT x.a FROM dbo.u x UNION SELECT y.a FROM dbo.u y ORDER BY x.b").errors == [4104]
