"""Prepared statements and calls with parameters."""

from __future__ import annotations

from decimal import Decimal

import pytest

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import OutputParameter, RpcParameter
from tests.exec.conftest import Client


def _text(value: str) -> RpcParameter:
    return RpcParameter("", t.nvarchar(4000), value)


def _int(value: int | None, *, output: bool = False) -> RpcParameter:
    return RpcParameter("", t.INT, value, output=output)


def test_prepared_statement_runs_by_handle_until_it_is_released(table: Client) -> None:
    first = table.rpc(
        "sp_prepexec", _int(None, output=True), _text("@P0 int"), _text("SELECT name FROM t WHERE id = @P0"), _int(1)
    )
    (handle,) = first.outputs
    assert first.rows == [("one",)]
    assert isinstance(handle, int)
    assert table.rpc("sp_execute", _int(handle), _int(2)).rows == [("two",)]
    table.rpc("sp_unprepare", _int(handle))
    assert table.rpc("sp_execute", _int(handle), _int(2)).errors == [8179]


def test_prepexec_releases_an_incoming_handle(table: Client) -> None:
    (old,) = table.rpc("sp_prepare", _int(None, output=True), _text("@a int"), _text("SELECT @a"), _int(1)).outputs
    assert isinstance(old, int)
    table.rpc("sp_prepexec", _int(old, output=True), _text("@a int"), _text("SELECT @a + 1"), _int(1))
    assert table.rpc("sp_execute", _int(old), _int(1)).errors == [8179]


@pytest.mark.parametrize(
    ("declared", "set_to", "sent", "value"),
    [
        ("bit", "5", t.BIGINT, 1),
        ("int", "1", t.nvarchar(10), "1"),
        ("varchar(10)", "'abc'", t.nvarchar(2), "ab"),
        ("decimal(9, 3)", "1.25", t.decimal(38, 1), Decimal("1.3")),
    ],
)
@pytest.mark.parametrize("call", ["procedure", "text"])
def test_outputs_come_back_in_the_type_in_which_the_client_sent_them(
    sql: Client, call: str, declared: str, set_to: str, sent: t.SqlType, value: object
) -> None:
    body = f"SET @p = {set_to}"
    given = RpcParameter("@p", sent, None, output=True)
    if call == "procedure":
        sql(f"CREATE PROCEDURE dbo.giving @p {declared} OUTPUT AS {body}")
        answer = sql.rpc("dbo.giving", given)
    else:
        texts = [RpcParameter("", t.nvarchar(100), text) for text in (body, f"@p {declared} OUTPUT")]
        answer = sql.rpc("sp_executesql", *texts, given)
    (output,) = [event for event in answer.events if isinstance(event, OutputParameter)]
    assert (output.type.name, output.value) == (sent.name, value)


def test_executesql_gives_output_parameters_back(sql: Client) -> None:
    answer = sql.rpc(
        "sp_executesql", _text("SET @b = @a * 2"), _text("@a int, @b int OUTPUT"), _int(21), _int(None, output=True)
    )
    assert answer.outputs == [42]


def test_lsn_parameters_compare_by_bytes(sql: Client) -> None:
    sql("CREATE TABLE l (lsn binary(10) NOT NULL PRIMARY KEY) INSERT l VALUES (0x01), (0x02), (0x03)")
    low = RpcParameter("", t.varbinary(8000), b"\x02" + bytes(9))
    answer = sql.rpc(
        "sp_executesql", _text("SELECT lsn FROM l WHERE lsn >= @P0 ORDER BY lsn"), _text("@P0 varbinary(8000)"), low
    )
    assert [row[0][:1] for row in answer.rows] == [b"\x02", b"\x03"]
