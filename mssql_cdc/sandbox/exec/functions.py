"""Users' functions: table-valued ones as plans, scalar ones as expressions, and running their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.compiler import Compiler
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.expressions.base import NULL, Expr, coerce, derived
from mssql_cdc.sandbox.exec.expressions.values import DEFAULT, call_argument
from mssql_cdc.sandbox.exec.flow import Abort, Pause
from mssql_cdc.sandbox.exec.query.commontables import Renamed, named
from mssql_cdc.sandbox.exec.query.leaves import table_fields
from mssql_cdc.sandbox.exec.query.operators import Operator, Rows, Slices
from mssql_cdc.sandbox.exec.scope import Scope
from mssql_cdc.sandbox.tsql import ast
from mssql_cdc.sandbox.tsql import statements as st

if TYPE_CHECKING:
    from mssql_cdc.sandbox.engine.storage.objects import SchemaObject
    from mssql_cdc.sandbox.engine.storage.table import Table
    from mssql_cdc.sandbox.exec.routine import Routine
    from mssql_cdc.sandbox.exec.session import Session
from mssql_cdc.sandbox.engine.versions import newest
from mssql_cdc.sandbox.exec.modules import MAX_NESTING, Module, inside


class _Parameters:
    """Runs a plan with its own variables: an inline function's parameters."""

    __slots__ = ("_functions", "_plan", "fields", "order")

    def __init__(self, plan: Operator, functions: Sequence[Any]) -> None:
        self._plan = plan
        self._functions = functions
        self.fields = plan.fields
        self.order = plan.order

    def open(self, context: Context) -> Slices:
        """The plan's slices in a context of its own."""
        values = [fn((), context) for fn in self._functions]
        return self._plan.open(Context(context.session, values, context.transaction))


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


def plan_table_function(
    compiler: Compiler, found: SchemaObject, node: ast.FunctionTable, given: list[Expr]
) -> Operator:
    """An inline or multi-statement table-valued function."""
    own = inside(compiler, found)
    arguments = arguments_of(found, own, node, given)
    functions = [argument.fn for argument in arguments]
    module: Module = found.definition
    if module.node.query is not None:
        plan = own.query(module.node.query)
        return _Parameters(Renamed(plan, named(plan.fields, (), found.name, found.name)), functions)
    assert module.node.returns_table is not None
    runner = FunctionRunner(compiler.session, found)
    variable = module.node.returns_table[0]
    table = runner.routine.scope.table(variable).table

    def rows(context: Context) -> Iterable[tuple]:
        runner.run(context, [fn((), context) for fn in functions])
        return _rows_of(table)

    return Rows([replace(field, qualifier=()) for field in table_fields(table, ())], rows)


def _rows_of(table: Table) -> list[tuple]:
    return [row for slot in table.heap if (row := newest(slot)) is not None]


class FunctionRunner:
    """Runs the body of a function to its RETURN, without waiting for anything."""

    def __init__(self, session: Session, found: SchemaObject) -> None:
        from mssql_cdc.sandbox.exec.routine import Routine

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
        """The returned value. A function may not wait, so a missing lock is an error here."""
        from mssql_cdc.sandbox.exec.interpreter import run_list
        from mssql_cdc.sandbox.exec.routine import Frame

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


def scalar_function(compiler: Compiler, found: SchemaObject, node: ast.Function, scope: Scope) -> Expr:
    """A call of a user's scalar function."""
    own = inside(compiler, found)
    given = [call_argument(compiler, argument, scope) for argument in node.arguments]
    arguments = arguments_of(found, own, node, given)
    module: Module = found.definition
    assert module.node.returns is not None
    type_ = own.type_of(module.node.returns)
    functions = [argument.fn for argument in arguments]
    state: dict[str, FunctionRunner] = {}
    returns = module.node.returns

    def fn(row: tuple, context: Context) -> Any:
        runner = state.get("runner")
        if runner is None or runner.session is not context.session:
            runner = state["runner"] = FunctionRunner(context.session, _typed(found, returns))
        return runner.run(context, [f(row, context) for f in functions])

    compiler.reads_tables = True
    made = derived(type_, fn, *arguments, nullable=True)
    return replace(made, varying=True)


def _typed(found: SchemaObject, _returns: ast.TypeName) -> SchemaObject:
    """The function with its RETURN values cast to the declared type."""
    module: Module = found.definition
    body = tuple(_cast_returns(node, _returns) for node in module.node.body)
    typed = replace(module.node, body=body)
    copy = type(found)(found.name, found.object_id, found.schema, found.type_code)
    copy.definition = Module(typed, module.database)
    return copy


def _cast_returns(node: Any, type_: ast.TypeName) -> Any:
    if isinstance(node, st.Return) and node.value is not None:
        return replace(node, value=ast.Cast("cast", node.value, type_))
    if isinstance(node, st.Block):
        return replace(node, body=tuple(_cast_returns(part, type_) for part in node.body))
    if isinstance(node, st.If):
        otherwise = _cast_returns(node.otherwise, type_) if node.otherwise is not None else None
        return replace(node, then=_cast_returns(node.then, type_), otherwise=otherwise)
    if isinstance(node, st.While):
        return replace(node, body=_cast_returns(node.body, type_))
    return node
