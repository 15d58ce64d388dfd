"""Error 1750 follows the reason why a constraint could not be made; of indexes alone it says nothing.

Evidence: go-mssqldb's own tests (8111), error texts that people have published (1505, 1781, 1779, 8110).
"""

import pytest

from mssql_sandbox.engine.events import Message
from tests.exec.conftest import Client

CASES = [
    ("CREATE TABLE #bad (a int NULL PRIMARY KEY)", [8111, 1750]),
    ("ALTER TABLE dbo.t ADD PRIMARY KEY (b)", [8111, 1750]),
    ("ALTER TABLE dbo.t ADD PRIMARY KEY (a)", [1505, 1750, 3621]),
    ("ALTER TABLE dbo.t ADD UNIQUE (absent)", [1911, 1750]),
    ("ALTER TABLE dbo.t ADD UNIQUE CLUSTERED (c)", [1902, 1750]),
    ("ALTER TABLE dbo.t ADD UNIQUE (x)", [1919, 1750]),
    ("ALTER TABLE dbo.t ADD CONSTRAINT ix UNIQUE (c)", [1913, 1750]),
    ("ALTER TABLE dbo.t ADD DEFAULT 1 FOR c", [1781, 1750]),
    ("ALTER TABLE dbo.t ADD FOREIGN KEY (a) REFERENCES dbo.bare", [1773, 1750]),
    ("ALTER TABLE dbo.t ADD FOREIGN KEY (a) REFERENCES dbo.bare (a)", [1776, 1750]),
    ("CREATE TABLE dbo.two (a int PRIMARY KEY, b int, PRIMARY KEY (b))", [8110]),
    ("CREATE UNIQUE INDEX one ON dbo.t (a)", [1505, 3621]),
    ("CREATE INDEX one ON dbo.t (absent)", [1911]),
]


@pytest.fixture
def tables(sql: Client) -> Client:
    sql("CREATE TABLE dbo.t (a int NOT NULL, b int NULL, c int NOT NULL DEFAULT 0, x xml)")
    sql("INSERT dbo.t (a) VALUES (1), (1); CREATE CLUSTERED INDEX ix ON dbo.t (b); CREATE TABLE dbo.bare (a int)")
    return sql


@pytest.mark.parametrize(("statement", "numbers"), CASES)
def test_errors_of_constraints_are_followed(tables: Client, statement: str, numbers: list[int]) -> None:
    answer = tables(statement)
    assert [event.number for event in answer.events if isinstance(event, Message)] == numbers
    caught = tables(f"BEGIN TRY {statement} END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH").rows
    assert caught == [([number for number in numbers if number != 3621][-1],)]
