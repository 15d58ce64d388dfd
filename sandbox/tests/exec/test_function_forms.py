"""Rules of functions that ask the session, the database or the trigger, and of the newer built-ins.

Evidence: the examples of Microsoft's documentation of each function.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

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
        ("GET_BIT(0xabcdef, 2)", 1),
        ("GET_BIT(0xabcdef, 4)", 0),
        ("SET_BIT(0x00, 2)", b"\x04"),
        ("SET_BIT(0xabcdef, 0, 0)", bytes.fromhex("abcdee")),
        ("SET_BIT(CAST(-1 AS int), 0, 0)", -2),
        ("DATALENGTH(CRYPT_GEN_RANDOM(50))", 50),
        ("FORMATMESSAGE('%s has %d of %d', 'it', 3, 4)", "it has 3 of 4"),
        ("FORMATMESSAGE(60000)", None),
        ("JSON_OBJECT('a': 1, 'b': NULL ABSENT ON NULL)", '{"a":1}'),
        ("JSON_OBJECT('a': 'x', 'b': NULL)", '{"a":"x","b":null}'),
        ("JSON_OBJECT('o': JSON_ARRAY(1, 'x', NULL NULL ON NULL))", '{"o":[1,"x",null]}'),
        ("JSON_ARRAY(1, NULL, 2)", "[1,2]"),
        ("JSON_ARRAY()", "[]"),
        ("JSON_PATH_EXISTS('{\"a\":{\"b\":1}}', '$.a.b')", 1),
        ("JSON_PATH_EXISTS('{\"a\":1}', '$.b')", 0),
        ("JSON_PATH_EXISTS(NULL, '$.b')", None),
        ("CURRENT_TIMEZONE()", "(UTC) Coordinated Universal Time"),
        ("FILEGROUP_NAME(1)", "PRIMARY"),
        ("FILEGROUP_ID('nothing')", None),
        ("FILE_NAME(2)", "db_log"),
        ("FILE_ID('db')", 1),
        ("TYPEPROPERTY('int', 'precision')", 10),
        ("CAST(COLLATIONPROPERTY('Latin1_General_CI_AS', 'CodePage') AS int)", 1252),
        ("PWDCOMPARE('secret', PWDENCRYPT('secret'))", 1),
        ("PWDCOMPARE('other', PWDENCRYPT('secret'))", 0),
        ("CURSOR_STATUS('global', 'nothing')", -3),
    ],
)
def test_value(catalogued: Client, expression: str, value: object) -> None:
    assert catalogued(f"SELECT {expression}").rows == [(value,)]


@pytest.mark.parametrize(
    ("expression", "day"),
    [
        ("DATE_BUCKET(week, 2, CAST('2020-04-15' AS date))", date(2020, 4, 13)),
        ("DATE_BUCKET(day, 1, CAST('2020-04-15' AS date))", date(2020, 4, 15)),
        ("DATE_BUCKET(month, 3, CAST('2020-05-20' AS date))", date(2020, 4, 1)),
        ("DATE_BUCKET(day, 10, CAST('2020-01-14' AS date), CAST('2020-01-01' AS date))", date(2020, 1, 11)),
        ("DATE_BUCKET(month, 1, CAST('1899-12-31' AS date))", date(1899, 12, 1)),
    ],
)
def test_buckets_count_from_1900_or_an_origin(sql: Client, expression: str, day: date) -> None:
    assert sql(f"SELECT CONVERT(varchar(10), {expression}, 23)").rows == [(day.isoformat(),)]


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("DATE_BUCKET(day, 0, CAST('2020-01-01' AS date))", 9834),
        ("DATE_BUCKET(weekday, 1, CAST('2020-01-01' AS date))", 9810),
        ("GET_BIT(CAST(1 AS tinyint), 8)", 9840),
        ("LEFT_SHIFT(1.5, 1)", 8116),
        ("COLUMNS_UPDATED()", 421),
        ("JSON_OBJECT('a')", 102),
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
