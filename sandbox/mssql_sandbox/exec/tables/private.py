"""Table variables and temporary tables: tables that one session owns, created from a definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mssql_sandbox.engine.storage.table import Kind, Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.tables.builder import TableBuilder, build_columns, finish_table

if TYPE_CHECKING:
    from mssql_sandbox.tsql import statements as st


def make_private(
    session: SessionState,
    compiler: Compiler,
    name: str,
    definition: st.TableDefinition,
    kind: Kind,
    transaction: Transaction,
) -> Table:
    """A temporary table or the table of a variable."""
    database = session.server.database("tempdb")
    builder = TableBuilder(compiler, database, name)
    table = database.make_table("dbo", name, build_columns(builder, definition), kind=kind)
    finish_table(builder, table, definition, transaction, session)
    return table


def make_variable_table(session: SessionState, name: str, definition: st.TableDefinition) -> Table:
    """The table of a table variable, created outside any statement; its rows survive rollbacks."""
    transaction = session.server.transactions.begin(spid=session.spid)
    try:
        return make_private(session, Compiler(session), name, definition, "variable", transaction)
    finally:
        transaction.commit()


def empty_table(table: Table) -> None:
    """Reset a table variable for the next run of its routine."""
    if not table.heap:
        return
    table.heap, table.free, table.versions = [], [], 0
    for index in table.indexes:
        index.entries.build(())
    if table.identity is not None:
        table.identity.last = None
