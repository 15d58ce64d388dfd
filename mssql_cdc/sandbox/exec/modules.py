"""Views, procedures, functions and triggers as kept in the database, and how each is planned or run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.events import RpcParameter
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.compiler import Compiler
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.expressions.base import NULL, Expr, coerce, derived
from mssql_cdc.sandbox.exec.expressions.values import DEFAULT, call_argument
from mssql_cdc.sandbox.exec.flow import Abort, Pause, Steps, StepsTo
from mssql_cdc.sandbox.exec.impersonation import running_as
from mssql_cdc.sandbox.exec.query.commontables import Renamed, named
from mssql_cdc.sandbox.exec.query.leaves import table_fields
from mssql_cdc.sandbox.exec.query.operators import Operator, Rows, Slices
from mssql_cdc.sandbox.exec.scope import Field, Scope
from mssql_cdc.sandbox.exec.security import require
from mssql_cdc.sandbox.tsql import ast
from mssql_cdc.sandbox.tsql import statements as st

if TYPE_CHECKING:
    from mssql_cdc.sandbox.engine.storage.objects import SchemaObject
    from mssql_cdc.sandbox.engine.storage.table import Table
    from mssql_cdc.sandbox.exec.procedures import Answer
    from mssql_cdc.sandbox.exec.routine import Frame, Routine
    from mssql_cdc.sandbox.exec.session import Session

MAX_NESTING = 32


@dataclass(slots=True)
class Module:
    """What the server keeps of a module: its syntax tree, the database it was made in, switches of triggers."""

    node: st.CreateModule
    database: Any
    events: frozenset[str] = frozenset()
    disabled: bool = False
    parent: Any = None


def inside(compiler: Compiler, found: SchemaObject) -> Compiler:
    """A compiler for a module's own text: in its database, without the variables around."""
    if compiler.module_depth >= MAX_NESTING:
        raise error(217)
    own = Compiler(compiler.session)
    own.names.database = found.definition.database
    own.names.module_schema = found.schema.name
    own.names.dependencies = compiler.names.dependencies
    own.module_depth = compiler.module_depth + 1
    return own


def plan_view(compiler: Compiler, found: SchemaObject) -> Operator:
    """The plan of a view's query."""
    definition: Module = found.definition
    own = inside(compiler, found)
    assert definition.node.query is not None
    plan = own.query(definition.node.query)
    fields = named(plan.fields, definition.node.columns, found.name, found.name)
    return Renamed(plan, fields)


# ---- functions ------------------------------------------------------------------------------------------------


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
    from mssql_cdc.sandbox.engine.versions import newest

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


# ---- procedures and triggers ----------------------------------------------------------------------------------


def module_routine(session: Session, found: SchemaObject, virtual: dict[str, Any] | None = None) -> Routine:
    """The routine of a procedure or trigger, kept while the module stays as it is."""
    from mssql_cdc.sandbox.exec.routine import Routine

    key = ("module", id(found))
    known = session.routines.get(key)
    if known is not None and not known.active and known.statements is found.definition.node.body:
        return known
    if found.definition is None:
        place = f"{found.schema.name}.{found.name}"
        raise SqlError(50000, f"{place} belongs to the jobs of change data capture: it cannot be called by others.")
    node = found.definition.node
    outside, session.current_database = session.current_database, found.definition.database
    try:
        routine = Routine(
            session, node.body, node.parameters, name=found.name, object_id=found.object_id, virtual=virtual,
            schema=found.schema.name,
        )  # fmt: skip
    finally:
        session.current_database = outside
    session.routines[key] = routine
    return routine


def call_procedure(session: Session, found: SchemaObject, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """Run a user's procedure: (return status, outputs)."""
    from mssql_cdc.sandbox.exec.remote import bind
    from mssql_cdc.sandbox.exec.routine import Frame

    if session.nest_level >= MAX_NESTING:
        raise error(217)
    routine = module_routine(session, found)
    require(session, found.definition.database, "EXECUTE", found.schema.name, found.name)
    frame = Frame(session, routine, in_procedure=True)
    declared = found.definition.node.parameters
    outside, session.current_database = session.current_database, found.definition.database
    wanted = bind(frame, declared, parameters)
    try:
        yield from _run(session, frame, found)
    finally:
        session.current_database = outside
    outputs = []
    for place, number in wanted.items():
        slot, declaration = routine.parameters[number]
        if declaration.output:
            outputs.append((place, declaration.name, slot.type, frame.values[slot.place]))
    return frame.returned, outputs


def _run(session: Session, frame: Frame, found: SchemaObject) -> Steps:
    from mssql_cdc.sandbox.exec.interpreter import run_list

    options = replace(session.options, others=dict(session.options.others))
    identity, before_id = session.scope_identity, session.procedure_id
    count = session.transactions.count
    session.procedure_id = found.object_id
    session.nest_level += 1
    frame.routine.active = True
    try:
        with session.temporary.scope(), running_as(session, *_executed_as(found)):
            yield from run_list(frame, frame.routine.statements)
    except Abort as abort:
        if not abort.scope:
            raise
    finally:
        frame.routine.active = False
        session.nest_level -= 1
        session.options, session.scope_identity, session.procedure_id = options, identity, before_id
    now = session.transactions.count
    if now != count and not session.trigger_stack:
        raise error(266, previous=count, current=now)
    return None


def _executed_as(found: SchemaObject) -> tuple[str, str]:
    """Whom the module's EXECUTE AS names: (word, CALLER | SELF | OWNER) or (user, name)."""
    for option in found.definition.node.options:
        if option.startswith("EXECUTE AS "):
            who = option.removeprefix("EXECUTE AS ")
            return ("user", who.strip("'")) if who.startswith("'") else ("word", who)
    return "", ""


def run_trigger(frame: Frame, table: Table, trigger: SchemaObject) -> Steps:
    """Run an AFTER trigger's body with `inserted` and `deleted`; an error in it ends the batch."""
    from mssql_cdc.sandbox.exec.routine import Frame as NewFrame
    from mssql_cdc.sandbox.exec.statements.triggers import virtual_tables

    session = frame.session
    routine = module_routine(session, trigger, virtual_tables(table))
    inner = NewFrame(session, routine, in_procedure=True)
    outside, session.current_database = session.current_database, trigger.definition.database
    started = session.transactions.current
    depth, session.try_depth = session.try_depth, session.try_depth + 1
    try:
        yield from _run(session, inner, trigger)
    finally:
        session.try_depth = depth
        session.current_database = outside
    if session.transactions.current is not started:
        raise error(3609)
    return None


__all__ = [
    "Field",
    "Module",
    "call_procedure",
    "plan_table_function",
    "plan_view",
    "run_trigger",
    "scalar_function",
    "t",
]
