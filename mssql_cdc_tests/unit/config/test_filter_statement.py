"""A filter of a signal may only filter: one plain SELECT of its own table, or one condition."""

from __future__ import annotations

import json

import pytest

from mssql_cdc.config.filter_statement import MOST_CHARACTERS, check_condition, check_statement
from mssql_cdc.config.signals import ExecuteSnapshot, IgnoredSignal, parse_signal

TABLE = "shop.dbo.orders"

CONDITIONS = [
    "id > 5",
    "color = 'blue' AND (size IN (1, 2) OR note IS NULL)",
    "[order by] = N'it''s; -- no comment' AND name LIKE 'a%' ESCAPE '\\'",
    "created >= DATEADD(day, -1, GETDATE()) AND CAST(price AS decimal(10, 2)) * 2 <= 0x1F",
    "o.\"first name\" BETWEEN 'a' AND 'b'",
    "CASE WHEN id = 1 THEN 1 ELSE 0 END = 1",
]
BAD_CONDITIONS = {
    "id = 1) AS t; DELETE FROM dbo.secret; COMMIT; SELECT * FROM (SELECT * FROM dbo.orders": "unmatched closing|';'",
    "id = 1) OR (1 = 1": "unmatched closing parenthesis",
    "(id = 1": "unclosed parenthesis",
    "id = 1; DROP TABLE dbo.orders": "';'",
    "id = 1 -- rest": "'--'",
    "id = 1 /* rest */": "'/\\*'",
    "id IN (SELECT id FROM dbo.secret)": "SELECT",
    "EXISTS (TABLE dbo.secret)": "calls EXISTS",
    "id = 1 UNION ALL (SELECT 2)": "UNION",
    "id = 1 ORDER BY id": "ORDER",
    "id = NEXT VALUE FOR dbo.numbers": "NEXT",
    "dbo.spy(id) = 1": "calls spy",
    "[dbo].[spy] (id) = 1": "calls \\[spy\\]",
    "id = OPENROWSET(BULK 'x')": "OPENROWSET",
    "id = @@SPID": "'@'",
    "name = 'open": '"\'"',
    "{fn USER()} = 'sa'": "'{'",
    "id = ?": "'\\?'",
    "id = 1 OPTION (RECOMPILE)": "OPTION",
    "x" * (MOST_CHARACTERS + 1): "4001 characters",
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_taken(condition: str) -> None:
    check_condition(condition, TABLE)
    for head in ("SELECT * FROM dbo.orders", "select * from [shop].[dbo].orders AS o", "SELECT * FROM orders o"):
        check_statement(f"{head} WHERE {condition}", TABLE)


@pytest.mark.parametrize(("condition", "said"), BAD_CONDITIONS.items(), ids=range(len(BAD_CONDITIONS)))
def test_what_does_more_than_filter_is_refused(condition: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        check_condition(condition, TABLE)
    assert condition not in str(caught.value)
    with pytest.raises(ValueError, match=f"{said}|characters"):
        check_statement(f"SELECT * FROM dbo.orders WHERE {condition}", TABLE)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM dbo.orders",
        "SELECT id FROM dbo.orders",
        "SELECT TOP (1) * FROM dbo.orders",
        "SELECT * FROM dbo.secret",
        "SELECT * FROM dbo.secret AS orders",
        "SELECT * FROM other.dbo.orders",
        "SELECT * FROM dbo.orders, dbo.secret",
        "SELECT * FROM dbo.orders JOIN dbo.secret ON 1 = 1",
        "SELECT * FROM dbo.orders o CROSS JOIN dbo.secret",
        "SELECT * FROM dbo.orders WITH (TABLOCKX)",
        "SELECT * FROM dbo.orders FOR XML AUTO",
        "SELECT * FROM dbo.orders WHERE",
        "SELECT * FROM (SELECT * FROM dbo.orders) AS o",
        "SELECT * FROM OPENROWSET('x', 'y', 'z')",
        "WITH o AS (SELECT 1) SELECT * FROM o",
        "",
    ],
)
def test_a_statement_of_another_form_is_refused(statement: str) -> None:
    with pytest.raises(ValueError, match="filter"):
        check_statement(statement, TABLE)


def test_a_statement_without_a_condition_is_taken() -> None:
    check_statement("SELECT * FROM dbo.orders", TABLE)


@pytest.mark.parametrize("kind", ["blocking", "incremental"])
def test_a_signal_with_such_a_filter_is_ignored_and_says_why(kind: str) -> None:
    text = "SELECT * FROM dbo.orders WHERE id = 1) AS t; DELETE FROM dbo.secret; SELECT * FROM (SELECT 1"
    conditions = [{"data-collection": TABLE, "filter": text}]
    data = {"type": kind, "data-collections": [TABLE], "additional-conditions": conditions}
    signal = parse_signal("1", "execute-snapshot", json.dumps(data))
    assert isinstance(signal, IgnoredSignal)
    assert "filter" in signal.reason
    assert "secret" not in signal.reason


def test_a_signal_with_a_plain_filter_is_taken() -> None:
    conditions = [{"data-collection": TABLE, "filter": "SELECT * FROM dbo.orders WHERE id IN (2, 3)"}]
    data = {"type": "blocking", "data-collections": [TABLE], "additional-conditions": conditions}
    assert isinstance(parse_signal("1", "execute-snapshot", json.dumps(data)), ExecuteSnapshot)
