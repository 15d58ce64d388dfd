"""INSERT … EXECUTE: inserts the rows that a procedure or string returns."""

from __future__ import annotations

from typing import Any

from mssql_sandbox.engine.events import Columns, Done, Order, Rows
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.interpreter import run_one
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.statements import triggers
from mssql_sandbox.exec.statements.instead import instead_of
from mssql_sandbox.exec.statements.output import finish
from mssql_sandbox.exec.statements.targets import target_table
from mssql_sandbox.exec.tables.cells import insert_columns, row_builder
from mssql_sandbox.exec.tables.rows import insert_rows
from mssql_sandbox.tsql import statements as st


def insert_execute(frame: Frame, node: st.Insert) -> Steps:
    """Collect the result sets, then insert them in one statement; 213 if the columns do not match."""
    session = frame.session
    assert isinstance(node.source, st.Statement)
    sets: list[tuple[Columns, list[tuple]]] = []
    if getattr(session, "inserting_execute", False):
        raise SqlError(8164, "An INSERT EXEC statement cannot be nested.")
    session.inserting_execute = True  # type: ignore[attr-defined]
    session.try_depth += 1
    try:
        steps = run_one(frame, node.source)
        sent: Any = None
        while True:
            try:
                event = steps.send(sent)
            except StopIteration:
                break
            sent = None
            if isinstance(event, Columns):
                sets.append((event, []))
            elif isinstance(event, Rows):
                sets[-1][1].extend(event.rows)
            elif not isinstance(event, (Done, Order)):
                sent = yield event
    finally:
        session.try_depth -= 1
        session.inserting_execute = False  # type: ignore[attr-defined]

    table = target_table(frame.compiler(), node.target, "INSERT")
    instead = instead_of(session, table, "INSERT")

    def work(transaction: Transaction) -> list[tuple]:
        places = insert_columns(table, node.columns)
        context = frame.context(transaction)
        identity = next((place for place, col in enumerate(table.columns) if col.identity is not None), -1)
        explicit = session.identity_insert is table
        stored: list[tuple] = []
        for columns, rows in sets:
            fields = [Field(col.name, col.type, col.nullable) for col in columns.columns]
            cells = row_builder(table, places, fields, named=False)
            made = [tuple([cell(row, context) for cell in cells]) for row in rows]
            if instead is not None:
                stored.extend(made)
            elif made:
                stored.extend(insert_rows(session, table, transaction, made, place=identity, explicit=explicit))
        return stored

    then = triggers.then(frame, table, "INSERT", lambda rows: (rows, []), (), instead)
    rows = yield from session.transactions.run(work, then)
    yield from finish(frame, "insert", len(rows), None, rows, None)
    return None
