"""Table-valued parameters: reading their rows from clients and from EXECUTE into a table type."""

from __future__ import annotations

from mssql_sandbox.engine.events import TABLE_TYPE, RpcParameter, TableValue
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.versions import newest
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.tables.cells import row_builder
from mssql_sandbox.exec.tables.rows import insert_rows
from mssql_sandbox.exec.variables import Slot, check_readonly, read_only, walk
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


def check_module(compiler: Compiler, node: st.CreateModule) -> None:
    """What CREATE PROCEDURE and CREATE FUNCTION refuse: 352, 346, and 10700 for statements that change the rows."""
    tables = set()
    for declaration in node.parameters:
        if not declaration.cursor and compiler.table_type(declaration.type) is not None:
            check_readonly(declaration.name, readonly=declaration.readonly)
            tables.add(declaration.name.lower())
        elif declaration.readonly:
            raise SqlError(
                346, f'The parameter "{declaration.name}" can not be declared READONLY since it is not a '
                "table-valued parameter.", severity=15,
            )  # fmt: skip
    for part in walk(node.body) if tables else ():
        target = getattr(part, "target", ())
        if isinstance(part, st.Statement) and target and target[0].lower() in tables:
            failure = read_only(target[0])
            failure.line = part.line
            raise failure


def argument_of(slot: Slot, name: str) -> RpcParameter:
    """The rows of a table variable as an argument."""
    table: Table = slot.table
    rows = [row for entry in table.heap if (row := newest(entry)) is not None]
    types = tuple(column.type for column in table.columns)
    return RpcParameter(name, TABLE_TYPE, TableValue(slot.table_type, types, rows))


def fill(session: SessionState, slot: Slot, argument: RpcParameter) -> None:
    """Store the rows of an argument in a parameter; 206 for anything but rows of its type."""
    table: Table = slot.table
    shown = ".".join(slot.table_type[-1:])
    value = argument.value
    if argument.type is not TABLE_TYPE:
        raise error(206, left=argument.type.name, right=shown)
    if value is None:
        return
    assert isinstance(value, TableValue)
    if value.type_name and value.type_name[-1].lower() != shown.lower():
        raise error(206, left=value.type_name[-1], right=shown)
    if len(value.columns) != len(table.columns):
        raise SqlError(
            500, f"Trying to pass a table-valued parameter with {len(value.columns)} column(s) where the corresponding "
            f"user-defined table type requires {len(table.columns)} column(s)."
        )  # fmt: skip
    _store(session, table, value)


def _store(session: SessionState, table: Table, value: TableValue) -> None:
    """Convert and insert the rows; the constraints of the type apply."""
    unwritable = {
        place for place, column in enumerate(table.columns)
        if column.computed is not None or column.is_rowversion or column.identity is not None
    }  # fmt: skip
    places = [place for place in range(len(table.columns)) if place not in value.defaulted | unwritable]
    cells = row_builder(table, places, [Field("", value.columns[place]) for place in places], named=True)
    identity = next((place for place, column in enumerate(table.columns) if column.identity is not None), -1)
    transaction = session.server.transactions.begin(spid=session.spid)
    context = Context(session, [], transaction)
    try:
        sent = ([row[place] for place in places] for row in value.rows)
        rows = [tuple([cell(row, context) for cell in cells]) for row in sent]  # type: ignore[arg-type]
        noted = session.last_identity, session.scope_identity
        insert_rows(session, table, transaction, rows, place=identity, explicit=False)
        session.last_identity, session.scope_identity = noted
    except BaseException:
        transaction.rollback()
        raise
    transaction.commit()


def is_table_variable(slots: dict[str, Slot], node: ast.Expression | None) -> Slot | None:
    """The slot of a table variable that is an argument of EXECUTE."""
    if not isinstance(node, ast.Variable):
        return None
    slot = slots.get(node.name.lower())
    return slot if slot is not None and slot.table is not None else None
