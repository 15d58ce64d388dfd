"""Rules of words that were once read and forgotten: they act, or they are refused with the place.

Evidence: Microsoft's documentation of each statement; refusals that name "this server" are its own.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.engine.events import Message
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

TABLE = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, g varchar(5), n int) INSERT t VALUES (1, 'a', 10), (2, 'b', 20)"


@pytest.fixture
def table(sql: Client) -> Client:
    sql(TABLE)
    return sql


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("SELECT * FROM t OPTION (NONSENSE)", 102),
        ("SELECT * FROM t OPTION (MAXDOP 1, NONSENSE 2)", 102),
        ("SELECT * FROM t WITH (NONSENSE)", 321),
        ("CREATE TABLE x (id int) WITH (NONSENSE = ON)", 155),
        ("CREATE INDEX x ON t (n) WITH (NONSENSE = 1)", 155),
        ("DBCC NONSENSE", 2526),
        ("DBCC SHOW_STATISTICS (t, x)", 2526),
        ("MERGE t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE", 10713),
        ("EXEC ('SELECT 1') AT elsewhere", 7202),
        ("EXEC ('SELECT ?', 5) AT elsewhere", 7202),
        ("EXEC ('SELECT 1', 5)", 102),
        ("EXEC ('SELECT 1') AS USER = 'nobody'", 15517),
        ("SELECT g FROM t GROUP BY ALL g", 156),
        ("UPDATE t SET g.WRITE('x', 0, 1)", 258),
        ("SELECT 1 CREATE VIEW v AS SELECT id FROM t", 111),
        ("DECLARE @a int CREATE PROCEDURE p AS SELECT 1", 111),
        ("PRINT 'x' ALTER FUNCTION f() RETURNS int AS BEGIN RETURN 1 END", 111),
    ],
)
def test_refused(table: Client, statement: str, number: int) -> None:
    assert table(statement).errors == [number]


def test_the_place_of_an_unknown_word_is_told(sql: Client) -> None:
    answer = sql("SELECT 1\nSELECT 2\nOPTION (NONSENSE)")
    (message,) = [event for event in answer.events if isinstance(event, Message)]
    assert (message.line, message.text) == (3, "Incorrect syntax near 'NONSENSE'.")


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("t.WRITE('XY', 1, 2)", "hXYlo"),
        ("t.WRITE('!', NULL, 0)", "hello!"),
        ("t.WRITE(NULL, 2, NULL)", "he"),
        ("t.WRITE('J', 0, NULL)", "J"),
    ],
)
def test_write_changes_a_part_of_a_large_value(sql: Client, setting: str, text: str) -> None:
    sql("CREATE TABLE q (t varchar(max)) INSERT q VALUES ('hello')")
    assert sql(f"UPDATE q SET {setting} SELECT t FROM q").rows == [(text,)]


def test_strings_run_as_whom_they_say(table: Client) -> None:
    table("CREATE LOGIN u WITH PASSWORD = 'x' CREATE USER u FOR LOGIN u")
    assert table("EXEC ('SELECT id FROM t') AS USER = 'u'").errors == [229]
    assert len(table("EXEC ('SELECT id FROM t') AS LOGIN = 'sa'").rows) == 2
    assert table.session.login == "sa"


@pytest.mark.parametrize(("who", "login"), [("'u'", "u"), ("OWNER", "sa"), ("SELF", "sa"), ("CALLER", "sa")])
def test_modules_run_as_whom_they_say(table: Client, who: str, login: str) -> None:
    server = table.session.server
    server.catalog = Catalog(server)
    table("CREATE LOGIN u WITH PASSWORD = 'x' CREATE USER u FOR LOGIN u")
    table(f"CREATE PROCEDURE p WITH EXECUTE AS {who} AS SELECT SUSER_SNAME()")
    assert table("EXEC p").rows == [(login,)]
    assert table.session.login == "sa"
    server.catalog.close()


def test_select_into_numbers_rows(table: Client) -> None:
    table("SELECT IDENTITY(int, 5, 5) AS k, g INTO x FROM t ORDER BY id")
    assert table("INSERT x (g) VALUES ('c') SELECT k, g FROM x").rows == [(5, "a"), (10, "b"), (15, "c")]


def test_bound_modules_keep_their_tables(table: Client) -> None:
    table("CREATE VIEW v WITH SCHEMABINDING AS SELECT id FROM dbo.t")
    assert table("DROP TABLE t").errors == [3729]
    table("CREATE VIEW w AS SELECT id FROM dbo.t")
    assert table("CREATE UNIQUE CLUSTERED INDEX x ON w (id)").errors == [1939]
    assert table("DROP VIEW v DROP TABLE t").errors == []
