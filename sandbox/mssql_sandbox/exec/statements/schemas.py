"""CREATE SCHEMA with the objects named in it, ALTER SCHEMA … TRANSFER, ALTER AUTHORIZATION."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.definition_rights import require_database
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.interpreter import run_one
from mssql_sandbox.exec.routine import Frame, forget_plans
from mssql_sandbox.tsql import statements as st


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


def _alter_authorization(frame: Frame, node: st.AlterAuthorization) -> Steps:
    """Another owner of a database or schema; objects belong to their schema's owner here, whatever is said of them.

    Raises:
        SqlError: 15151 no such owner, database or schema, 15110 a database's new owner is a user of it.
    """
    session = frame.session
    kind, name = node.securable_class or "OBJECT", node.name[-1]
    if kind == "DATABASE":
        database = session.server.databases.get(name)
        if database is None:
            raise error(15151, action="find", kind="database", name=name)
        if node.owner not in session.server.logins:
            raise error(15151, action="find", kind="principal", name=node.owner)
        require_database(session, database)
        users = [one for one in database.principals.values() if one.name != "dbo" and one.login is not None]
        if any(one.login.casefold() == node.owner.casefold() for one in users if one.login is not None):
            raise SqlError(15110, "The proposed new database owner is already a user or aliased in the database.")
        database.owner = database.principals["dbo"].login = node.owner
    else:
        database = session.current_database
        if node.owner not in database.principals:
            raise error(15151, action="find", kind="principal", name=node.owner)
        schema = database.schemas.get(name) if kind == "SCHEMA" else None
        if kind == "SCHEMA" and schema is None:
            raise error(15151, action="find", kind="schema", name=name)
        if schema is not None:
            schema.owner = node.owner
    forget_plans(frame)
    yield session.done(frame, None, "alter authorization")
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.CreateSchema: _create_schema,
    st.AlterSchema: _alter_schema,
    st.AlterAuthorization: _alter_authorization,
}
