"""GROUP BY of a query specification: grouping columns, grouping sets, the aggregates and GROUPING() over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.product import require_function
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, coerce, column
from mssql_sandbox.exec.expressions.canonical import canonical
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.grouping import NAMES as AGGREGATES
from mssql_sandbox.exec.query.grouping import Aggregate, Group, GroupingSets, aggregate
from mssql_sandbox.exec.query.operators import Filter
from mssql_sandbox.exec.query.sorting import order_key, row_key
from mssql_sandbox.exec.scope import Field, Scope
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast

_GROUPING = ("grouping", "grouping_id")


class GroupedScope(Scope):
    """Columns after grouping: only grouping columns can be used; 8120 for others."""

    __slots__ = ("_before",)

    def __init__(self, before: Scope, fields: Sequence[Field]) -> None:
        super().__init__(fields, before.fold, parent=before.parent, level=before.level)
        self._before = before

    @property
    def base(self) -> Scope:
        """The scope before grouping."""
        return self._before

    def find(self, parts: tuple[str, ...]) -> int | None:
        """The position of a grouping column."""
        place = self._before.find(parts)
        if place is None:
            return None
        known = self.replacements.get(("column", self.level, place))
        if known is None:
            name = ".".join(parts) if len(parts) > 1 else _shown(self._before.fields[place])
            raise error(8120, column=name)
        return known.column


def _shown(field: Field) -> str:
    return f"{field.qualifier[-1]}.{field.name}" if field.qualifier else field.name


def plan_group(
    compiler: Compiler, node: ast.Select, nodes: Sequence[ast.Expression], plan: Operator, scope: Scope
) -> tuple[Operator, Scope]:
    """GROUP BY and HAVING over a plan; the scope has the grouping columns and the aggregates of `nodes`."""
    keys = [compiler.value(part, scope) for part in node.group_by]
    for expr in keys:
        if expr.type.name in t.LEGACY_LOBS:
            raise error(306)
    sets = node.grouping_sets
    fields = [_key_field(expr, scope, nullable=sets is not None) for expr in keys]
    grouped = GroupedScope(scope, fields)
    for place, (part, expr) in enumerate(zip(node.group_by, keys, strict=True)):
        made = column(place, expr.type, nullable=fields[place].nullable, origin=expr.origin)
        grouped.replacements[canonical(part, scope)] = made
    places = [canonical(part, scope) for part in node.group_by]
    if sets is not None:
        grouped.fields.append(Field("", t.INT, False))
    having = [node.having] if node.having is not None else []
    _replace_grouping(grouped, places, [*nodes, *having], mask=len(keys) if sets is not None else -1)
    specs = _aggregates(compiler, scope, grouped, [*nodes, *having])
    equal = row_key([expr.type for expr in keys])
    functions = [expr.fn for expr in keys]
    result: Operator
    if sets is None:
        result = Group(plan, functions, equal, specs, grouped.fields)
    else:
        members = [frozenset(places.index(canonical(part, scope)) for part in chosen) for chosen in sets]
        order = [order_key(column(place, expr.type)) for place, expr in enumerate(keys)]
        result = GroupingSets(plan, functions, equal, specs, grouped.fields, members, order)
    if node.having is not None:
        result = Filter(result, compiler.condition(node.having, grouped).fn)
    return result, grouped


def _key_field(expr: Expr, scope: Scope, *, nullable: bool) -> Field:
    if nullable or expr.column < 0:
        return Field(
            scope.fields[expr.column].name if expr.column >= 0 else "", expr.type, expr.nullable or nullable,
            scope.fields[expr.column].qualifier if expr.column >= 0 else (),
        )  # fmt: skip
    return scope.fields[expr.column]


def _replace_grouping(grouped: GroupedScope, keys: list[Any], nodes: Sequence[ast.Expression], *, mask: int) -> None:
    """GROUPING(column) and GROUPING_ID(columns) read the mask of columns outside a row's grouping; 8161 for others."""
    for node in nodes:
        for part in own_nodes(node):
            if not (isinstance(part, ast.Function) and len(part.name) == 1 and part.name[0].lower() in _GROUPING):
                continue
            name = part.name[0].lower()
            places = []
            for number, argument in enumerate(part.arguments, 1):
                key = canonical(argument, grouped)
                if key not in keys:
                    raise SqlError(
                        8161, f"Argument {number} of the {name.upper()} function does not match any of the "
                        "expressions in the GROUP BY clause."
                    )  # fmt: skip
                places.append(keys.index(key))
            if not places or (name == "grouping" and len(places) > 1):
                raise error(174, name=name, count=1)
            type_ = t.TINYINT if name == "grouping" else t.INT
            grouped.replacements[canonical(part, grouped)] = _mask_reader(type_, mask, tuple(places))


def _mask_reader(type_: t.SqlType, mask: int, places: tuple[int, ...]) -> Expr:
    def fn(row: tuple, _context: Context) -> int:
        bits = row[mask] if mask >= 0 else 0
        result = 0
        for place in places:
            result = result << 1 | (bits >> place & 1)
        return result

    return Expr(type_, fn, False)


def _aggregates(
    compiler: Compiler, scope: Scope, grouped: GroupedScope, nodes: Sequence[ast.Expression]
) -> list[Aggregate]:
    """The aggregates in expressions, each once; their values follow the grouping columns in the rows."""
    specs: list[Aggregate] = []
    for node in nodes:
        for part in own_nodes(node):
            if not is_aggregate(part):
                continue
            key = canonical(part, grouped)
            if key in grouped.replacements:
                continue
            spec = compile_aggregate(compiler, part, scope)
            specs.append(spec)
            grouped.replacements[key] = column(len(grouped.fields), spec.type, nullable=spec.nullable)
            grouped.fields.append(Field("", spec.type, spec.nullable))
    return specs


def own_nodes(node: Any) -> Any:
    """Nodes of an expression without those of subqueries in it."""
    skipped: set[int] = set()
    for part in walk(node):
        if id(part) in skipped:
            continue
        if isinstance(part, ast.Query):
            skipped.update(id(inner) for inner in walk(part))
            continue
        yield part


def is_aggregate(node: Any) -> bool:
    """Whether a node is an aggregate function that groups (a window function does not)."""
    return (
        isinstance(node, ast.Function) and node.over is None and len(node.name) == 1
        and node.name[0].lower() in AGGREGATES
    )  # fmt: skip


def _known(node: ast.Function, scope: Scope) -> bool:
    """Whether grouping has already computed an aggregate, so that a window may use it: SUM(SUM(n)) OVER ()."""
    return canonical(node, scope) in scope.replacements


def compile_aggregate(compiler: Compiler, node: ast.Function, scope: Scope) -> Aggregate:
    """An aggregate over rows of `scope`; 130 for aggregates inside aggregates."""
    require_function(compiler.session.server.version, node.name[0])
    name = node.name[0].lower()
    if node.star:
        return aggregate(name, None)
    wanted = 2 if name == "string_agg" else 1
    if len(node.arguments) != wanted:
        raise error(174, name=name, count=wanted)
    for part in (part for argument in node.arguments for part in own_nodes(argument)):
        if isinstance(part, ast.Function) and part.over is not None:
            raise SqlError(
                4109, "Windowed functions cannot be used in the context of another windowed function or aggregate.",
                severity=15,
            )  # fmt: skip
        if isinstance(part, ast.ScalarSubquery) or (is_aggregate(part) and not _known(part, scope)):
            raise error(130)
    argument = compiler.value(node.arguments[0], scope)
    if name == "string_agg":
        if argument.type.name not in t.STRINGS:
            argument = coerce(argument, t.nvarchar(4000, collation=compiler.collation))
        separator = compiler.value(node.arguments[1], scope)
        order = tuple((order_key(compiler.value(o.expression, scope)), o.descending) for o in node.within)
        return aggregate(name, argument, separator=separator, order=order)
    return aggregate(name, argument, distinct=node.distinct)
