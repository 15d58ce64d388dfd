"""CREATE SCHEMA with the objects named in it, ALTER SCHEMA … TRANSFER."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mssql_cdc.sandbox.engine.transaction import Transaction
from mssql_cdc.sandbox.errors import SqlError
from mssql_cdc.sandbox.exec.flow import Steps
from mssql_cdc.sandbox.exec.interpreter import run_one
from mssql_cdc.sandbox.exec.routine import Frame
from mssql_cdc.sandbox.tsql import statements as st


def _create_schema(frame: Frame, node: st.CreateSchema) -> Steps:
    session = frame.session
    database = session.current_database
    yield from session.transactions.run(
        lambda transaction: database.create_schema(transaction, node.name, owner=node.owner or "dbo")
    )
    for element in node.elements:
        yield from run_one(frame, _inside(element, node.name))
    yield session.done(frame, None, "create schema")
    return None


def _inside(element: st.Statement, schema: str) -> st.Statement:
    """A table or view named without a schema belongs to the one being made."""
    if isinstance(element, (st.CreateTable, st.CreateModule)) and len(element.name) == 1:
        return replace(element, name=(schema, *element.name))
    return element


def _alter_schema(frame: Frame, node: st.AlterSchema) -> Steps:
    session = frame.session
    compiler = frame.compiler()

    def work(transaction: Transaction) -> None:
        database = session.current_database
        if node.name not in database.schemas:
            raise SqlError(15151, f"Cannot alter the schema '{node.name}', because it does not exist or you do not "
                                  "have "
                           "permission.")  # fmt: skip
        found = compiler.names.find(node.object)
        if found is None:
            shown = ".".join(node.object)
            raise SqlError(15151, f"Cannot find the {node.kind} '{shown}', because it does not exist or you do not "
                                  "have "
                           "permission.")  # fmt: skip
        if found.schema.name != node.name:
            database.transfer(transaction, found, database.schema(node.name))

    yield from session.transactions.run(work)
    yield session.done(frame, None, "alter schema")
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {st.CreateSchema: _create_schema, st.AlterSchema: _alter_schema}
