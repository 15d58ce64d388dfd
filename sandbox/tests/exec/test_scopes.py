"""Scopes of dynamic text, and parameters that hold rows."""

from __future__ import annotations

import pytest

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import TABLE_TYPE, Message, RpcParameter, TableValue
from tests.exec.conftest import Client


@pytest.mark.parametrize("run", ["EXEC sp_executesql N'{}'", "EXEC ('{}')"])
def test_settings_made_by_dynamic_text_end_with_it(sql: Client, run: str) -> None:
    """Microsoft's documentation of sp_executesql and EXECUTE; mssql-jdbc leaves FMTONLY on in such a text."""
    sql(run.format("SET FMTONLY ON SELECT 1 AS a"))
    sql(run.format("SET LOCK_TIMEOUT 70 SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"))
    assert sql("SELECT @@LOCK_TIMEOUT").rows == [(-1,)]
    assert int(sql.session.transactions.isolation) == 2


PAIRS = "CREATE TYPE dbo.pairs AS TABLE (id int NOT NULL PRIMARY KEY, name nvarchar(5) NULL DEFAULT N'none')"
TAKE = "CREATE PROCEDURE dbo.take @rows dbo.pairs READONLY, @n int = 0 AS SELECT id + @n, name FROM @rows ORDER BY id"


def test_procedure_takes_the_rows_of_a_table_variable(sql: Client) -> None:
    sql(PAIRS)
    sql(TAKE)
    assert sql("DECLARE @r dbo.pairs; INSERT @r (id) VALUES (1), (2); EXEC dbo.take @r, 5").rows == [
        (6, "none"),
        (7, "none"),
    ]


def test_table_parameter_that_is_left_out_has_no_rows(sql: Client) -> None:
    sql(PAIRS)
    sql(TAKE)
    assert sql("EXEC dbo.take @n = 3").rows == []
    assert sql("EXEC dbo.take DEFAULT").rows == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("CREATE PROCEDURE dbo.p @r dbo.pairs AS SELECT 1", 352),
        ("CREATE PROCEDURE dbo.p @r int READONLY AS SELECT 1", 346),
        ("CREATE PROCEDURE dbo.p @r dbo.pairs READONLY AS DELETE @r", 10700),
        ("CREATE PROCEDURE dbo.p @r dbo.pairs READONLY AS IF 1 = 1 INSERT @r (id) VALUES (1)", 10700),
        ("EXEC dbo.take 5", 206),
        ("EXEC sp_executesql N'SELECT * FROM @r', N'@r dbo.pairs'", 352),
    ],
)
def test_table_parameters_are_read_only_and_of_their_type(sql: Client, text: str, number: int) -> None:
    sql(PAIRS)
    sql(TAKE)
    assert sql(text).errors == [number]


def rows(
    *values: tuple, name: tuple[str, ...] = ("dbo", "pairs"), defaulted: frozenset[int] = frozenset()
) -> RpcParameter:
    value = TableValue(name, (t.INT, t.nvarchar(20)), list(values), defaulted)
    return RpcParameter("@rows", TABLE_TYPE, value)


def test_rows_from_a_client_are_converted_and_checked(sql: Client) -> None:
    sql(PAIRS)
    sql(TAKE)
    assert sql.rpc("dbo.take", rows((2, "b"), (1, None))).rows == [(1, None), (2, "b")]
    assert sql.rpc("dbo.take", rows((1, None), defaulted=frozenset({1}))).rows == [(1, "none")]
    assert sql.rpc("dbo.take", rows((1, "x"), (1, "y"))).errors == [2627]
    assert sql.rpc("dbo.take", rows((None, "x"))).errors == [515]
    assert sql.rpc("dbo.take", rows((1, "too long"))).errors == [2628]
    assert sql.rpc("dbo.take", rows((1, "x"), name=("dbo", "others"))).errors == [206]


def test_rows_of_another_width_are_error_500(sql: Client) -> None:
    sql(PAIRS)
    sql(TAKE)
    value = TableValue(("pairs",), (t.INT,), [(1,)])
    assert sql.rpc("dbo.take", RpcParameter("@rows", TABLE_TYPE, value)).errors == [500]


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ("SELECT 1 AS x FROM (SELECT 1 AS a) t", 9),
        ("SELECT 1", 9),
        ("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION", 9),
        ("IF @@TRANCOUNT > 0 COMMIT TRAN", 9),
    ],
)
def test_a_label_is_no_name_of_what_stands_before_it(sql: Client, before: str, value: int) -> None:
    answer = sql(f"GOTO finish\n{before}\nfinish:\nSELECT {value}")
    assert (answer.errors, answer.rows) == ([], [(value,)])


def test_a_label_may_stand_last(sql: Client) -> None:
    assert sql("GOTO finish\nIF @@TRANCOUNT > 0 ROLLBACK TRANSACTION\nfinish:").errors == []


def test_bare_words_as_arguments_are_national_text(sql: Client) -> None:
    sql("CREATE PROCEDURE p @n int = 0, @s varchar(10) = NULL AS SELECT @s")
    assert sql("EXEC p @s = hello").rows == [("hello",)]
    (message,) = [event for event in sql("EXEC p hello").events if isinstance(event, Message)]
    assert (message.number, message.text) == (8114, "Error converting data type nvarchar to int.")
