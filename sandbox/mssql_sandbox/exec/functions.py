"""Users' functions: arguments in the types of the parameters, and running a body without waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import DEFAULT, Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import NULL, Expr, coerce
from mssql_sandbox.exec.flow import MAX_NESTING, Abort, Pause
from mssql_sandbox.exec.interpreter import run_list
from mssql_sandbox.exec.routine import Frame, Routine
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.tsql import statements as st


def arguments_of(found: SchemaObject, own: Compiler, node: Any, given: Sequence[Expr]) -> list[Expr]:
    """Arguments of a function call in the types of its parameters; DEFAULT takes the default. 313, 8144."""
    parameters = found.definition.node.parameters
    if len(given) < len(parameters):
        raise error(313, name=".".join(node.name))
    if len(given) > len(parameters):
        raise error(8144, name=".".join(node.name))
    result = []
    for declaration, expr in zip(parameters, given, strict=True):
        type_ = own.type_of(declaration.type)
        own.variables.declare(declaration.name, type_)
        missing = NULL if declaration.default is None else own.value(declaration.default)
        result.append(coerce(missing if expr.value is DEFAULT else expr, type_))
    return result


class FunctionRunner:
    """Runs the body of a function to its RETURN, without waiting."""

    def __init__(self, session: SessionState, found: SchemaObject) -> None:
        node = found.definition.node
        declared = node.parameters
        statements = node.body
        if node.returns_table is not None:
            name, definition = node.returns_table
            statements = (st.DeclareTable(name, definition), *statements)
        self.session = session
        self.name = found.name
        self.database = found.definition.database
        self._make = lambda: Routine(
            session, statements, declared, name=found.name, object_id=found.object_id, schema=found.schema.name
        )
        self.routine: Routine = self._make()

    def run(self, context: Context, values: list[Any]) -> Any:
        """The returned value. A function cannot wait, so an unavailable lock is an error here."""
        session = self.session
        routine = self._make() if self.routine.active else self.routine
        if session.nest_level >= MAX_NESTING:
            raise error(217)
        frame = Frame(session, routine, in_procedure=True)
        for (slot, _), value in zip(routine.parameters, values, strict=True):
            frame.values[slot.place] = value
        frame.returned = None  # type: ignore[assignment]
        transactions = session.transactions
        outside = (transactions.current, transactions.count, session.current_database, session.row_count)
        transactions.current, transactions.count = context.transaction, max(transactions.count, 1)
        session.current_database = self.database
        session.nest_level += 1
        session.try_depth += 1
        routine.active = True
        try:
            for step in run_list(frame, routine.statements):
                if isinstance(step, Pause):
                    raise SqlError(1222, "Lock request time out period exceeded.", severity=16, state=51)
        except Abort:
            raise SqlError(50000, f"function '{self.name}' ended early") from None
        finally:
            routine.active = False
            session.try_depth -= 1
            session.nest_level -= 1
            transactions.current, transactions.count, session.current_database, session.row_count = outside
        return frame.returned
