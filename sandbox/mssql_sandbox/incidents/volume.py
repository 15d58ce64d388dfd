"""A huge transaction, made inside the server so that no client has to send it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import SqlType, nvarchar, parse_type
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.tsql.parser import Parser

SLICE = 2000
_INTEGERS = {"bit": 2, "tinyint": 256, "smallint": 2**15, "int": 2**31, "bigint": 2**63}
_BIGINT = parse_type("bigint")


async def _huge_transaction(call: Call) -> AsyncIterator[Event]:
    """Insert `@rows` rows in one transaction, numbered from `@first`, while other sessions keep running.

    Raises:
        SqlError: 208 for an unknown table, 206 for a column whose type cannot hold a number.
    """
    table = _table(call)
    first, count = call.number("first") or 1, call.number("rows") or 0
    transaction = call.scope.server.transactions.begin(name="huge", spid=call.scope.session.spid)
    try:
        for start in range(first, first + count, SLICE):
            transaction.begin_statement()
            table.insert_many(transaction, list(_rows(table, start, min(start + SLICE, first + count))))
            transaction.end_statement()
            await asyncio.sleep(0)
        transaction.commit()
    except BaseException:
        transaction.rollback()
        raise
    for event in result_set(columns("inserted bigint"), [(count,)]):
        yield event


def _table(call: Call) -> Table:
    name = call.text("table") or ""
    parts = ("dbo", *Parser(name).name())
    table = call.scope.database.table(parts[-2], parts[-1])
    if table is None:
        raise error(208, name=name)
    return table


def _rows(table: Table, start: int, stop: int) -> Iterator[tuple]:
    for number in range(start, stop):
        yield tuple(_value(table, column, number) for column in table.columns)


def _value(table: Table, column: Column, number: int) -> object:
    if column.identity is not None:
        return table.next_identity()
    if not column.writable:
        return None
    return number_as(number, column.type)


def number_as(number: int, type_: SqlType) -> object:
    """A value of the type that is derived from the number, in storage form; small integer types wrap around."""
    if type_.name in _INTEGERS:
        return number % _INTEGERS[type_.name]
    if type_.name == "uniqueidentifier":
        return uuid.UUID(int=number)
    try:
        if type_.name.startswith(("date", "small", "time")) and type_.name != "smallmoney":
            return convert(
                f"2020-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}", nvarchar(30), type_
            )
        if type_.name in ("binary", "varbinary", "image"):
            return convert(number, _BIGINT, type_)
        return convert(str(number), nvarchar(20), type_)
    except SqlError as failure:
        raise error(206, left="bigint", right=type_.name) from failure


PROCEDURES = (
    procedure(
        "sandbox.huge_transaction", "@table nvarchar(776), @rows bigint = 100000, @first bigint = 1", _huge_transaction
    ),
)
