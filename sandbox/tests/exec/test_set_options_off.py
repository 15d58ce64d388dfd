"""SET options that are OFF: overflows, divisions by zero, values that are too long, NULL in texts and comparisons."""

import pytest

from mssql_sandbox.engine.events import Message
from tests.exec.conftest import Client


def warnings(sql: Client, text: str) -> list[int]:
    return [event.number for event in sql(text).events if isinstance(event, Message)]


@pytest.mark.parametrize("expression", ["1 / 0", "2147483647 + 1", "CAST(300 AS tinyint)", "CAST(1e30 AS int)"])
def test_arithmetic_gives_null_and_a_warning_where_both_options_are_off(sql: Client, expression: str) -> None:
    """Documentation of SET ARITHABORT and SET ANSI_WARNINGS."""
    sql("SET ARITHABORT OFF; SET ANSI_WARNINGS OFF")
    answer = sql(f"SELECT {expression}")
    assert answer.rows == [(None,)]
    assert warnings(sql, f"SELECT {expression}") == [3607 if "/" in expression else 3606]
    sql("SET ARITHIGNORE ON")
    assert warnings(sql, f"SELECT {expression}") == []


def test_one_warning_for_any_number_of_rows(sql: Client) -> None:
    sql("SET ARITHABORT OFF; SET ANSI_WARNINGS OFF")
    assert warnings(sql, "SELECT 1 / v FROM (VALUES (0), (1), (0)) t (v)") == [3607]


def test_text_that_is_no_number_stays_an_error(sql: Client) -> None:
    sql("SET ARITHABORT OFF; SET ANSI_WARNINGS OFF")
    assert sql("SELECT CAST('x' AS int)").errors == [245]


@pytest.mark.parametrize(
    ("arithabort", "warnings_", "goes_on"), [("OFF", "ON", True), ("ON", "ON", True), ("ON", "OFF", False)]
)
def test_arithabort_without_ansi_warnings_ends_the_batch(
    sql: Client, arithabort: str, warnings_: str, *, goes_on: bool
) -> None:
    sql(f"SET ARITHABORT {arithabort}; SET ANSI_WARNINGS {warnings_}")
    answer = sql("BEGIN TRAN; SELECT 1 / 0; SELECT @@TRANCOUNT")
    assert answer.errors == [8134]
    assert sql("SELECT @@TRANCOUNT").rows == [(1 if goes_on else 0,)]


def test_long_values_are_cut_without_ansi_warnings(sql: Client) -> None:
    sql("CREATE TABLE t (s varchar(3), b varbinary(2), n tinyint); SET ANSI_WARNINGS OFF; SET ARITHABORT OFF")
    assert sql("INSERT t VALUES ('abcdef', 0x010203, 300)").counts == [1]
    assert sql("UPDATE t SET s = s + 'xyz'").counts == [1]
    assert sql("SELECT * FROM t").rows == [("abc", b"\x01\x02", None)]
    sql("SET ANSI_WARNINGS ON")
    assert sql("INSERT t (s) VALUES ('abcdef')").errors == [2628]


def test_null_is_an_empty_text_without_concat_null_yields_null(sql: Client) -> None:
    query = "DECLARE @n varchar(5); SELECT 'a' + @n, @n + 'b', @n + @n"
    assert sql(query).rows == [(None, None, None)]
    sql("SET CONCAT_NULL_YIELDS_NULL OFF")
    assert sql(query).rows == [("a", "b", None)]


def test_null_is_found_without_ansi_nulls_by_literals_and_variables_only(sql: Client) -> None:
    sql("CREATE TABLE t (a int, b int); INSERT t VALUES (NULL, NULL), (1, 1); SET ANSI_NULLS OFF")
    assert sql("SELECT COUNT(*) FROM t WHERE a = NULL").rows == [(1,)]
    assert sql("DECLARE @v int; SELECT COUNT(*) FROM t WHERE a <> @v").rows == [(1,)]
    assert sql("SELECT COUNT(*) FROM t WHERE a = b").rows == [(1,)]
    sql("SET ANSI_NULLS ON")
    assert sql("SELECT COUNT(*) FROM t WHERE a = NULL").rows == [(0,)]


def test_options_of_a_called_text_end_with_it(sql: Client) -> None:
    sql("SET ARITHABORT OFF")
    query = "SELECT 1 / 0"
    assert sql(f"EXEC sp_executesql N'SET ANSI_WARNINGS OFF; {query}'").rows == [(None,)]
    assert sql(query).errors == [8134]
