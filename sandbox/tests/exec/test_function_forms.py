"""Rules of functions that ask the session, the database or the trigger, and of the newer built-ins.

Evidence: the examples of Microsoft's documentation of each function.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client


@pytest.fixture
def catalogued(sql: Client) -> Iterator[Client]:
    """A session whose server has its catalogue."""
    server = sql.session.server
    server.catalog = Catalog(server)
    yield sql
    server.catalog.close()


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("LEFT_SHIFT(12345, 5)", 395040),
        ("RIGHT_SHIFT(12345, 5)", 385),
        ("LEFT_SHIFT(CAST(1 AS tinyint), 8)", 0),
        ("FORMATMESSAGE('%s has %d of %d', 'it', 3, 4)", "it has 3 of 4"),
        ("FORMATMESSAGE(60000)", None),
        ("CURRENT_TIMEZONE()", "(UTC) Coordinated Universal Time"),
        ("FILEGROUP_NAME(1)", "PRIMARY"),
        ("FILEGROUP_ID('nothing')", None),
        ("FILE_NAME(2)", "db_log"),
        ("FILE_ID('db')", 1),
        ("CAST(PARSE('2019-02-03' AS date) AS varchar(10))", "2019-02-03"),
        ("TYPEPROPERTY('int', 'precision')", 10),
        ("CAST(COLLATIONPROPERTY('Latin1_General_CI_AS', 'CodePage') AS int)", 1252),
        ("CURSOR_STATUS('global', 'nothing')", -3),
    ],
)
def test_value(catalogued: Client, expression: str, value: object) -> None:
    assert catalogued(f"SELECT {expression}").rows == [(value,)]


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("LEFT_SHIFT(1.5, 1)", 8116),
        ("COLUMNS_UPDATED()", 421),
        ("FORMAT(1, 'N2')", 40517),
        ("TRY_PARSE('1' AS int)", 40517),
        ("JSON_ARRAY(1)", 40517),
        ("REGEXP_LIKES('a', 'b')", 195),
    ],
)
def test_misuse(sql: Client, expression: str, number: int) -> None:
    assert sql(f"SELECT {expression}").errors == [number]


def test_triggers_see_the_columns_that_were_set(sql: Client) -> None:
    sql("CREATE TABLE t (a int, b int, c int) INSERT t VALUES (1, 1, 1)")
    sql("CREATE TRIGGER tr ON t AFTER UPDATE AS SELECT COLUMNS_UPDATED() & 7")
    assert sql("UPDATE t SET b = 2, c = 2").rows == [(6,)]


def test_cursors_tell_their_state(sql: Client) -> None:
    script = """DECLARE @c CURSOR SELECT CURSOR_STATUS('variable', '@c')
    SET @c = CURSOR FOR SELECT 1 AS a WHERE 1 = 0 SELECT CURSOR_STATUS('variable', '@c')
    OPEN @c SELECT CURSOR_STATUS('variable', '@c')"""
    assert sql(script).sets == [[(-2,)], [(-1,)], [(0,)]]


def test_the_session_context_keeps_what_it_was_given(sql: Client) -> None:
    sql("EXEC sp_set_session_context N'user', 4 EXEC sp_set_session_context @key = N'x', @value = 'y', @read_only = 1")
    query = (
        "SELECT CAST(SESSION_CONTEXT(N'user') AS int), CAST(SESSION_CONTEXT(N'X') AS varchar(5)), SESSION_CONTEXT(N'z')"
    )
    assert sql(query).rows == [(4, "y", None)]
    assert sql("EXEC sp_set_session_context N'x', 'other'").errors == [15664]
