"""CREATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping

from mssql_sandbox.engine.storage.objects import is_private
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.exec import temporal
from mssql_sandbox.exec.definition_rights import require_create
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.statements import places
from mssql_sandbox.exec.tables.builder import TableBuilder, build_columns, finish_table
from mssql_sandbox.exec.tables.partitions import place_table
from mssql_sandbox.exec.tables.private import make_private
from mssql_sandbox.tsql import statements as st


def create_table(frame: Frame, node: st.CreateTable) -> Steps:
    """CREATE TABLE."""
    session = frame.session
    compiler = frame.compiler()

    def work(transaction: Transaction) -> None:
        if is_private(node.name[-1]):
            table = make_private(session, compiler, node.name[-1], node.table, "temporary", transaction)
            session.temporary.add(table, transaction)
            transaction.on_undo(session.routines.clear)
            return
        database, schema = compiler.names.schema_for_new(node.name)
        require_create(session, database, "TABLE", schema)
        places.check_places(database, node.options)
        builder = TableBuilder(compiler, database, node.name[-1])
        table = database.create_table(transaction, schema, node.name[-1], build_columns(builder, node.table))
        note_shared(session, table)
        place_table(table, node.options)
        _note_memory(table, dict(node.options))
        finish_table(builder, table, node.table, transaction, session)
        temporal.define(table, transaction, node.table.period, node.options, compiler)

    yield from session.transactions.run(work)
    yield session.done(frame, None, "create table")
    return None


def _note_memory(table: Table, options: Mapping[str, str]) -> None:
    """MEMORY_OPTIMIZED and DURABILITY, for the catalogue and for features that refuse such tables."""
    if options.get("MEMORY_OPTIMIZED", "").upper() == "ON":
        table.properties["memory_optimized"] = options.get("DURABILITY", "SCHEMA_AND_DATA").upper()


def note_shared(session: SessionState, table: Table) -> None:
    """Temporary tables with ## are shared until the session that created them ends."""
    if table.name.startswith("##"):
        session.temporary.add_shared(table)
