"""CREATE SCHEMA and ALTER SCHEMA … TRANSFER."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql import statements as st


def _create_schema(frame: Frame, node: st.CreateSchema) -> Steps:
    session = frame.session
    database = session.current_database
    yield from session.transactions.run(
        lambda transaction: database.create_schema(transaction, node.name, owner=node.owner or "dbo")
    )
    yield session.done(frame, None, "create schema")
    return None


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


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.CreateSchema: _create_schema,
    st.AlterSchema: _alter_schema,
}
