"""CREATE, ALTER and DROP of indexes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.storage import index_changes
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.definition_rights import require_alter
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.statements import indexed_views, places, xml_indexes
from mssql_sandbox.exec.statements.alterations import refuse_captured_key
from mssql_sandbox.exec.tables import columnstores
from mssql_sandbox.exec.tables.builder import TableBuilder
from mssql_sandbox.exec.tables.partitions import place_table
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


def _create_index(frame: Frame, node: st.CreateIndex) -> Steps:
    session = frame.session
    compiler = frame.compiler()

    def work(transaction: Transaction) -> None:
        view = compiler.names.find(node.table)
        if view is not None and view.type_code == "V":
            indexed_views.create(compiler, transaction, view, node)
            return
        table = _existing(compiler, node.table)
        require_alter(session, table)
        places.check_places(table.database, node.options)
        if node.index.columnstore:
            columnstores.add(table, transaction, node.index, node.options)
            return
        builder = TableBuilder(compiler, table.database, table.name)
        drops = any(name == "DROP_EXISTING" and value.upper() == "ON" for name, value in node.options)
        existing = table.index(node.index.name)
        if drops and existing is not None:
            index_changes.drop_index(table, transaction, existing)
        index = builder.index(table, node.index, node.options)
        index_changes.add_index(table, transaction, index)
        if index.clustered and not index.hypothetical:
            place_table(table, node.options)

    yield from session.transactions.run(work)
    yield session.done(frame, None, "create index")
    return None


def _existing(compiler: Compiler, name: ast.Name) -> Table:
    found = compiler.names.find(name)
    if not isinstance(found, Table):
        raise error(1088, name=".".join(name))
    return found


def _drop_index(frame: Frame, node: st.DropIndex) -> Steps:
    session = frame.session
    compiler = frame.compiler()

    def work(transaction: Transaction) -> None:
        found = compiler.names.find(node.table)
        if isinstance(found, Table) and any(
            drop(found, transaction, node.index) for drop in (columnstores.drop, xml_indexes.drop)
        ):
            return
        if found is not None and found.type_code == "V" and indexed_views.drop(transaction, found, node.index):
            return
        index = found.index(node.index) if isinstance(found, Table) else None
        if index is None or not isinstance(found, Table):
            if node.if_exists:
                return
            raise SqlError(3701, f"Cannot drop the index '{'.'.join(node.table)}.{node.index}', because it does "
                           "not exist or you do not have permission.", severity=11, state=7)  # fmt: skip
        if index.constraint:
            raise SqlError(
                3723, f"An explicit DROP INDEX is not allowed on index '{'.'.join(node.table)}.{node.index}'. "
                f"It is being used for {index.constraint} constraint enforcement.", state=4,
            )  # fmt: skip
        refuse_captured_key(found, index)
        index_changes.drop_index(found, transaction, index)

    yield from session.transactions.run(work)
    yield session.done(frame, None, "drop index")
    return None


def _alter_index(frame: Frame, node: st.AlterIndex) -> Steps:
    compiler = frame.compiler()
    table = _existing(compiler, node.table)
    require_alter(frame.session, table)
    chosen = table.indexes if node.index == "ALL" else [table.index(node.index)]
    for index in chosen:
        if index is None:
            raise SqlError(2727, f"Cannot find index '{node.index}'.", severity=11)
        if index.hypothetical:
            continue
        if node.action == "rebuild":
            index_changes.rebuild_index(table, index)
        elif node.action == "disable":
            refuse_captured_key(table, index)
            index.disabled = True
    yield frame.session.done(frame, None, "alter index")
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.CreateIndex: _create_index,
    st.DropIndex: _drop_index,
    st.AlterIndex: _alter_index,
}
