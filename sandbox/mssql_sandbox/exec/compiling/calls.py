"""Function calls: syntax-like functions, the engine's built-ins, the session's, the catalogue's, users' functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion_columns import lifted
from mssql_sandbox.engine.functions import UNSUPPORTED
from mssql_sandbox.engine.functions.definition import KEYWORD, Call, ScalarFunction
from mssql_sandbox.engine.product import require_function
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.compiling import statefunctions
from mssql_sandbox.exec.compiling.methods import of_column
from mssql_sandbox.exec.compiling.partitions import partition_number
from mssql_sandbox.exec.compiling.user_functions import scalar_function
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions import sessionfunctions, values
from mssql_sandbox.exec.expressions.base import Expr, chain_of, chained, coerce, constant, derived
from mssql_sandbox.exec.expressions.builtins import BUILTINS
from mssql_sandbox.exec.query.grouping import NAMES
from mssql_sandbox.exec.query.select import makes_json
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.exec.sequences import Sequence
from mssql_sandbox.tsql import ast

Special = Callable[["Compiler", ast.Function, Scope], Expr]


def function(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    """A call that is neither an aggregate nor a window function (those are computed before)."""
    name = node.name[-1]
    if len(node.name) == 1:
        upper = name.upper()
        require_function(compiler.session.server.version, name)
        special = _SPECIALS.get(upper)
        if special is not None:
            return special(compiler, node, scope)
        builtin = BUILTINS.get(upper)
        if builtin is not None:
            return _builtin(compiler, builtin, node, scope)
        own = sessionfunctions.FUNCTIONS.get(upper)
        if own is not None:
            return sessionfunctions.call(own, upper, [compiler.value(arg, scope) for arg in node.arguments])
        _refuse_aggregate(node, upper)
    return _named(compiler, node, scope)


def _refuse_aggregate(node: ast.Function, upper: str) -> None:
    if node.over is not None:
        raise SqlError(4108, "Windowed functions can only appear in the SELECT or ORDER BY clauses.", severity=15)
    if upper.lower() in NAMES:
        raise error(147)


def _arguments(
    compiler: Compiler, node: ast.Function, scope: Scope, minimum: int, maximum: int | None = None
) -> list[Expr]:
    count = len(node.arguments)
    if count < minimum or (maximum is not None and count > maximum):
        raise error(174, name=node.name[-1].lower(), count=minimum)
    return [compiler.value(argument, scope) for argument in node.arguments]


def _coalesce(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    return values.coalesce(_arguments(compiler, node, scope, 2))


def _isnull(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    first, second = _arguments(compiler, node, scope, 2, 2)
    return values.is_null_function(first, second)


def _nullif(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    first, second = _arguments(compiler, node, scope, 2, 2)
    return values.nullif(first, second)


def _iif(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    if len(node.arguments) != 3:
        raise error(174, name="iif", count=3)
    condition, yes, no = node.arguments
    when = compiler.condition(condition, scope)
    return values.case(None, [(when, compiler.value(yes, scope))], compiler.value(no, scope))


def _choose(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    found = _arguments(compiler, node, scope, 2)
    return values.choose(found[0], found[1:])


def _update(compiler: Compiler, node: ast.Function, _scope: Scope) -> Expr:
    """UPDATE(column) inside a trigger."""
    reference = node.arguments[0] if len(node.arguments) == 1 else None
    if not isinstance(reference, ast.ColumnRef):
        raise error(174, name="update", count=1)
    name = compiler.fold(reference.parts[-1])
    fold = compiler.fold

    def fn(_row: tuple, context: Context) -> bool:
        return any(fold(column) == name for column in context.session.trigger_columns())

    return Expr(t.BIT, fn, False, constant=True, varying=True, predicate=True)


_SPECIALS: dict[str, Special] = {
    "COALESCE": _coalesce,
    "ISNULL": _isnull,
    "NULLIF": _nullif,
    "IIF": _iif,
    "CHOOSE": _choose,
    "UPDATE": _update,
    **statefunctions.SPECIALS,
}


# ---- built-ins of the engine --------------------------------------------------------------------------


def _builtin(compiler: Compiler, definition: ScalarFunction, node: ast.Function, scope: Scope) -> Expr:
    definition.check_arity(len(node.arguments))
    parts: list[Expr] = []
    for place, argument in enumerate(node.arguments):
        if place in definition.keywords:
            parts.append(_keyword(argument, definition.name))
        else:
            parts.append(compiler.value(argument, scope))
    return bound(definition, parts, compiler, node.arguments if definition.name == "JSON_MODIFY" else ())


def _keyword(argument: ast.Expression, name: str) -> Expr:
    """A bare word such as DATEADD's datepart."""
    if not isinstance(argument, ast.ColumnRef) or len(argument.parts) != 1:
        raise SqlError(1023, f"Invalid parameter 1 specified for {name.lower()}.", severity=15)
    return replace(constant(argument.parts[0].lower(), KEYWORD))


def bound(
    definition: ScalarFunction, parts: list[Expr], compiler: Compiler, nodes: tuple[ast.Expression, ...] = ()
) -> Expr:  # fmt: skip
    """An engine function bound to the types of its arguments."""
    json = frozenset(place for place, node in enumerate(nodes) if makes_json(node))
    call = Call(
        tuple(part.type for part in parts), tuple(part.value if part.literal else None for part in parts),
        compiler.collation, json,
    )  # fmt: skip
    caller = definition.caller(call)
    type_ = definition.result(call)
    functions = tuple(part.fn for part in parts)
    fn: Callable[[tuple, Context], Any]
    if definition.environment:
        fn = lambda row, context: caller(context, *[f(row, context) for f in functions])  # noqa: E731
    elif len(functions) == 1:
        only = functions[0]
        fn = lambda row, context: caller(only(row, context))  # noqa: E731
    elif len(functions) == 2:
        first, second = functions
        fn = lambda row, context: caller(first(row, context), second(row, context))  # noqa: E731
    else:
        fn = lambda row, context: caller(*[f(row, context) for f in functions])  # noqa: E731
    nullable = not definition.environment or bool(parts)
    made = derived(type_, fn, *parts, nullable=nullable)
    if len(parts) == 1 and chain_of(parts[0]) and definition.of_value_only:
        made = replace(made, chain=chained(parts[0], lifted(definition.bind(call))))
    if not definition.deterministic and definition.name in _EACH_ROW:
        made = replace(made, varying=True, constant=False)
    if type_.name in t.STRINGS and type_.collation is None:
        made = replace(made, type=t.with_collation(type_, compiler.collation))
    return made


_EACH_ROW = frozenset({"NEWID", "NEWSEQUENTIALID", "CRYPT_GEN_RANDOM"})


def at_time_zone(compiler: Compiler, node: ast.AtTimeZone, scope: Scope) -> Expr:
    """Value AT TIME ZONE zone."""
    parts = [compiler.value(node.operand, scope), compiler.value(node.zone, scope)]
    return bound(BUILTINS["AT TIME ZONE"], parts, compiler)


def global_variable(_compiler: Compiler, node: ast.GlobalVariable, _scope: Scope) -> Expr:
    """@@NAME; 137 for unknown ones, as for any variable."""
    found = sessionfunctions.GLOBALS.get(node.name)
    if found is None:
        raise error(137, name=node.name)
    type_, read = found
    return Expr(type_, lambda _row, context: read(context.session), True, constant=True, varying=True)


# ---- functions with names -------------------------------------------------------------------------------


def _named(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    """A method of an xml column, a metadata function, `sys.fn_…`, or a user's scalar function."""
    qualifier = node.name[:-1]
    called = of_column(compiler, node, scope)
    if called is not None:
        return called
    place = compiler.names.place(node.name)
    catalog = compiler.session.server.catalog
    if catalog is not None:
        found = catalog.function(place.database, place.schema, place.name)
        if found is not None:
            return _system(compiler, found, node, scope)
    first, shown = node.name[0], ".".join(node.name)
    if qualifier and qualifier[-1].upper() == "$PARTITION":
        return partition_number(compiler, node, scope)
    if len(node.name) == 1:
        if first.upper() in UNSUPPORTED:
            raise error(40517, option=first)
        raise error(195, name=first, kind="built-in function name")
    module = compiler.names.find(node.name)
    if module is not None and module.type_code == "FN":
        return scalar_function(compiler, module, node, scope)
    raise SqlError(
        4121, f'Cannot find either column "{first}" or the user-defined function or aggregate "{shown}", '
        "or the name is ambiguous."
    )  # fmt: skip


def _system(compiler: Compiler, found: Any, node: ast.Function, scope: Scope) -> Expr:
    count = len(node.arguments)
    low, high = len(found.arguments) - found.optional, len(found.arguments)
    if not low <= count <= high:
        function = node.name[-1].lower()
        raise error(313, name=".".join(node.name)) if len(node.name) > 1 else error(174, name=function, count=high)
    parts = []
    for argument, type_ in zip(node.arguments, found.arguments, strict=False):
        part = compiler.value(argument, scope)
        parts.append(coerce(part, t.with_collation(type_, compiler.collation)))
    functions = tuple(part.fn for part in parts)

    def fn(row: tuple, context: Context) -> Any:
        return found.call(context.session, context.transaction, *[f(row, context) for f in functions])

    return derived(t.with_collation(found.result, compiler.collation), fn, *parts, nullable=True)


def next_value(compiler: Compiler, node: ast.NextValueFor, _scope: Scope) -> Expr:
    """NEXT VALUE FOR sequence: a new value for each row."""
    found = compiler.names.find(node.sequence)
    if found is None or found.type_code != "SO":
        raise error(208, name=".".join(node.sequence))
    sequence = found.definition
    assert isinstance(sequence, Sequence)
    return Expr(sequence.type, lambda _row, _context: sequence.take(), False, varying=True)
