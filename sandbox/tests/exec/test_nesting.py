"""Long chains are no deep nesting; what is nested too deeply is error 191 [doc: sys.messages], no more than that."""

import pytest

from tests.exec.conftest import Client

_LONG = 600
_DEEP = 1000


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT 1" + " UNION ALL SELECT 1" * _LONG, [(1,)] * (_LONG + 1)),
        ("SELECT 1" + " UNION SELECT 1" * _LONG, [(1,)]),
        ("SELECT 1" + " UNION ALL SELECT 2 UNION SELECT 2" * 3 + " UNION ALL SELECT 2", [(1,), (2,), (2,)]),
        ("SELECT 1 UNION SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 3 EXCEPT SELECT 3", [(1,)]),
        ("SELECT 1 UNION ALL SELECT 2.5 UNION ALL SELECT 3", [(1,), (2.5,), (3,)]),
        ("SELECT NULL UNION ALL SELECT NULL UNION SELECT 2", [(None,), (2,)]),
        ("SELECT 1 WHERE 1 = 0" + " OR 1 = 1" * _LONG, [(1,)]),
    ],
)
def test_a_chain_of_operands_may_be_long(sql: Client, statement: str, rows: list[tuple]) -> None:
    assert sorted(sql(statement).rows, key=repr) == sorted(rows, key=repr)


def test_a_long_chain_may_be_inserted_and_kept_in_a_view(sql: Client) -> None:
    chain = "SELECT 1 AS a" + " UNION ALL SELECT 1" * _LONG
    assert sql(f"SELECT * INTO #long FROM ({chain}) AS x").counts == [_LONG + 1]
    assert not sql(f"CREATE VIEW dbo.long AS {chain}").errors
    assert sql("SELECT count(*) FROM dbo.long").rows == [(_LONG + 1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT " + "(" * _DEEP + "1" + ")" * _DEEP,
        "SELECT * FROM " + "(SELECT * FROM " * _DEEP + "sys.objects" + ") AS x" * _DEEP,
        "BEGIN " * _DEEP + "PRINT 1" + " END" * _DEEP,
        "SELECT 1" + " * 1" * _DEEP,
        "SELECT 1" + " EXCEPT SELECT 2" * _DEEP,
    ],
    ids=["brackets", "derived tables", "blocks", "operators", "differences"],
)
def test_deep_nesting_is_error_191_and_the_session_goes_on(sql: Client, statement: str) -> None:
    assert sql(statement).errors == [191]
    assert sql("SELECT 1").rows == [(1,)]


def test_nothing_after_a_statement_nested_too_deeply_runs(sql: Client) -> None:
    answer = sql("SELECT 1" + " EXCEPT SELECT 2" * _DEEP + "; SELECT 2")
    assert answer.errors == [191]
    assert (2,) not in [row for rows in answer.sets for row in rows]
