"""One query specification to a plan: FROM and WHERE, grouping, windows, select list, DISTINCT, ORDER BY, TOP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.types import ResultColumn
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.expressions.base import Expr, coerce, column
from mssql_cdc.sandbox.exec.query.grouping import NAMES as AGGREGATES
from mssql_cdc.sandbox.exec.query.grouping import Aggregate, Group, aggregate
from mssql_cdc.sandbox.exec.query.operators import Filter, Operator, Projection
from mssql_cdc.sandbox.exec.query.sorting import Distinct, Sort, SortKey, order_key, row_key
from mssql_cdc.sandbox.exec.query.sources import SourcePlanner
from mssql_cdc.sandbox.exec.query.windows import Window, window_function
from mssql_cdc.sandbox.exec.scope import Field, Scope
from mssql_cdc.sandbox.exec.variables import walk
from mssql_cdc.sandbox.tsql import ast

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.compiler import Compiler


class GroupedScope(Scope):
    """Columns after grouping: only what is grouped by can be named; 8120 for the rest."""

    __slots__ = ("_before",)

    def __init__(self, before: Scope, fields: Sequence[Field]) -> None:
        super().__init__(fields, before.fold, parent=before.parent, level=before.level)
        self._before = before

    @property
    def base(self) -> Scope:
        """The scope before grouping."""
        return self._before

    def find(self, parts: tuple[str, ...]) -> int | None:
        """The place of a grouping column."""
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


@dataclass(frozen=True, slots=True)
class Item:
    """An element of the select list after `*` is resolved."""

    expr: Expr
    name: str
    node: ast.Expression | None


def plan_select(compiler: Compiler, node: ast.Select, query: ast.Query | None, parent: Scope | None) -> Operator:
    """The plan of a query specification; with `query` its ORDER BY, OFFSET and FETCH too."""
    return SelectPlanner(compiler, node, query, parent).plan()


class SelectPlanner:
    """Keeps what the steps of planning one SELECT hand on."""

    def __init__(self, compiler: Compiler, node: ast.Select, query: ast.Query | None, parent: Scope | None) -> None:
        self.compiler = compiler
        self.node = node
        self.query = query
        self.sources = SourcePlanner(compiler, parent)
        self.order = query.order if query is not None else ()

    def plan(self) -> Operator:
        """Put the operators together."""
        node = self.node
        grouped = bool(node.group_by) or node.having is not None or self._has_aggregates()
        limited = node.top is not None or (self.query is not None and self.query.offset is not None)
        wanted = None if grouped or node.distinct or not self.order else self._wanted
        plan = self.sources.plan(node.source, node.where, wanted, prefer_order=limited)
        scope = self.sources.scope(plan.fields)
        if grouped:
            plan, scope = self._group(plan, scope)
        plan, scope = self._windows(plan, scope)
        items = self._items(scope)
        if node.distinct:
            return self._distinct(plan, items, scope)
        return self._ordered(plan, items, scope)

    # ---- ORDER BY ---------------------------------------------------------------------------------------

    def _wanted(self, scope: Scope) -> list[tuple[int, bool]]:
        """The order that ORDER BY asks for, as far as its items are plain columns of this source."""
        result = []
        for item in self.order:
            node = self._order_node(item.expression)
            if not isinstance(node, ast.ColumnRef):
                return []
            try:
                found, place = scope.resolve(node.parts)
            except SqlError:
                return []
            if found.level != scope.level:
                return []
            result.append((place, item.descending))
        return result

    def _order_node(self, node: ast.Expression) -> ast.Expression:
        """What an item of ORDER BY stands for: an alias or a position of the select list, or itself."""
        items = self.node.items
        if (
            isinstance(node, ast.Literal)
            and node.kind == "int"
            and not any(isinstance(i.expression, ast.Star) for i in items)
        ):
            place = int(str(node.value)) - 1
            if 0 <= place < len(items):
                return items[place].expression
        if isinstance(node, ast.ColumnRef) and len(node.parts) == 1:
            fold = self.compiler.fold
            for item in items:
                if item.alias and fold(item.alias) == fold(node.parts[0]):
                    return item.expression
        return node

    def _ordered(self, plan: Operator, items: list[Item], scope: Scope) -> Operator:
        from mssql_cdc.sandbox.exec.query.planner import limited

        keys: list[SortKey] = []
        places: list[tuple[int, bool]] | None = []
        for item in self.order:
            expr = self._order_expr(item.expression, items, scope)
            if expr.constant and not expr.varying:
                continue
            keys.append((order_key(expr), item.descending))
            if places is not None:
                places = [*places, (expr.column, item.descending)] if expr.column >= 0 else None
        if keys and not (places is not None and delivers(plan, places)):
            plan = Sort(plan, keys, tuple(places or ()))
        plan = limited(self.compiler, plan, self.node.top, self.query, keys)
        return self._project(plan, items)

    def _order_expr(self, node: ast.Expression, items: list[Item], scope: Scope) -> Expr:
        if isinstance(node, ast.Literal):
            if node.kind == "int":
                place = int(str(node.value)) - 1
                if not 0 <= place < len(items):
                    raise error(108, position=place + 1)
                return items[place].expr
            raise SqlError(408, "A constant expression was encountered in the ORDER BY list, position 1.")
        if isinstance(node, ast.ColumnRef) and len(node.parts) == 1:
            fold = self.compiler.fold
            named = [item for item in items if item.name and fold(item.name) == fold(node.parts[0])]
            if named:
                return named[0].expr
        return self.compiler.value(node, scope)

    def _distinct(self, plan: Operator, items: list[Item], scope: Scope) -> Operator:
        from mssql_cdc.sandbox.exec.query.planner import limited

        plan = Distinct(self._project(plan, items))
        keys: list[SortKey] = []
        for item in self.order:
            expr = self._order_expr(item.expression, items, scope)
            place = next((i for i, one in enumerate(items) if one.expr is expr or self._same(one, item, scope)), None)
            if place is None:
                raise error(145)
            out = plan.fields[place]
            keys.append((order_key(column(place, out.type, nullable=out.nullable)), item.descending))
        return limited(self.compiler, Sort(plan, keys) if keys else plan, self.node.top, self.query, keys)

    def _same(self, item: Item, order: ast.OrderItem, scope: Scope) -> bool:
        from mssql_cdc.sandbox.exec.compiler import canonical

        return item.node is not None and canonical(item.node, scope) == canonical(order.expression, scope)

    # ---- select list ----------------------------------------------------------------------------------------

    def _items(self, scope: Scope) -> list[Item]:
        result: list[Item] = []
        for item in self.node.items:
            if isinstance(item.expression, ast.Star):
                if not scope.fields and self.node.source is None:
                    raise SqlError(263, "Must specify table to select from.")
                for place in scope.base.star(item.expression.qualifier):
                    field = scope.base.fields[place]
                    qualified = (*field.qualifier, field.name) if field.qualifier else (field.name,)
                    made = column(place, field.type, nullable=field.nullable, origin=field.origin)
                    if scope.base is not scope:
                        scope.find(qualified)
                    result.append(Item(replace(made, value=field.special), field.name, None))
                continue
            expr = self.compiler.value(item.expression, scope)
            name = item.alias or _implied_name(item.expression)
            result.append(Item(expr, name, item.expression))
        return result

    def _project(self, plan: Operator, items: list[Item]) -> Operator:
        fields = [self._field(item) for item in items]
        return Projection(plan, [item.expr.fn for item in items], [item.expr.column for item in items], fields)

    def _field(self, item: Item) -> Field:
        expr = item.expr
        origin = expr.origin
        if origin is not None:
            origin = replace(origin, name=item.name, type=expr.type, nullable=origin.nullable or expr.nullable)
        else:
            # What is computed from columns is reported as computed and not updatable.
            origin = ResultColumn(item.name, expr.type, nullable=expr.nullable, computed=not expr.literal)
        special = "null" if expr.null else "identity" if origin.identity else ""
        return Field(item.name, expr.type, expr.nullable, (), origin, False, special)

    # ---- grouping -----------------------------------------------------------------------------------------------

    def _has_aggregates(self) -> bool:
        nodes: list[Any] = [item.expression for item in self.node.items]
        nodes += [item.expression for item in self.order]
        return any(is_aggregate(part) for node in nodes for part in own_nodes(node))

    def _group(self, plan: Operator, scope: Scope) -> tuple[Operator, Scope]:
        from mssql_cdc.sandbox.exec.compiler import canonical

        keys = [self.compiler.value(node, scope) for node in self.node.group_by]
        for expr in keys:
            if expr.type.name in t.LEGACY_LOBS:
                raise error(306)
        fields = [
            scope.fields[expr.column] if expr.column >= 0 else Field("", expr.type, expr.nullable) for expr in keys
        ]
        grouped = GroupedScope(scope, fields)
        for place, (node, expr) in enumerate(zip(self.node.group_by, keys, strict=True)):
            made = column(place, expr.type, nullable=expr.nullable, origin=expr.origin)
            grouped.replacements[canonical(node, scope)] = made
        specs = self._aggregates(scope, grouped, len(keys))
        group = Group(plan, [expr.fn for expr in keys], row_key([expr.type for expr in keys]), specs, grouped.fields)
        result: Operator = group
        if self.node.having is not None:
            result = Filter(group, self.compiler.condition(self.node.having, grouped).fn)
        return result, grouped

    def _aggregates(self, scope: Scope, grouped: GroupedScope, first: int) -> list[Aggregate]:
        from mssql_cdc.sandbox.exec.compiler import canonical

        nodes: list[Any] = [item.expression for item in self.node.items]
        nodes += [item.expression for item in self.order]
        nodes += [self.node.having] if self.node.having is not None else []
        specs: list[Aggregate] = []
        for node in nodes:
            for part in own_nodes(node):
                if not is_aggregate(part):
                    continue
                key = canonical(part, grouped)
                if key in grouped.replacements:
                    continue
                spec = compile_aggregate(self.compiler, part, scope)
                place = first + len(specs)
                specs.append(spec)
                grouped.fields.append(Field("", spec.type, spec.nullable))
                grouped.replacements[key] = column(place, spec.type, nullable=spec.nullable)
        return specs

    # ---- windows ------------------------------------------------------------------------------------------------

    def _windows(self, plan: Operator, scope: Scope) -> tuple[Operator, Scope]:
        from mssql_cdc.sandbox.exec.compiler import canonical

        nodes: list[Any] = [item.expression for item in self.node.items]
        nodes += [item.expression for item in self.order]
        found: dict[Any, ast.Function] = {}
        for node in nodes:
            for part in own_nodes(node):
                if isinstance(part, ast.Function) and part.over is not None:
                    found.setdefault(canonical(part, scope), part)
        if not found:
            return plan, scope
        functions = []
        width = len(plan.fields)
        extended: list[Field] = list(plan.fields)
        for part in found.values():
            function = window_function(self.compiler, part, scope)
            functions.append(function)
            extended.append(Field("", function.type, function.nullable, hidden=True))
        scope.fields[:] = extended
        for place, (key, function) in enumerate(zip(found, functions, strict=True), width):
            scope.replacements[key] = column(place, function.type, nullable=function.nullable)
        return Window(plan, functions, extended), scope


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


def compile_aggregate(compiler: Compiler, node: ast.Function, scope: Scope) -> Aggregate:
    """An aggregate over rows of `scope`; 130 for aggregates inside aggregates."""
    name = node.name[0].lower()
    if node.star:
        return aggregate(name, None)
    if not node.arguments:
        raise error(174, name=name, count=1)
    if any(
        is_aggregate(part) or isinstance(part, ast.ScalarSubquery) for arg in node.arguments for part in own_nodes(arg)
    ):
        raise error(130)
    argument = compiler.value(node.arguments[0], scope)
    if name == "string_agg":
        if argument.type.name not in t.STRINGS:
            argument = coerce(argument, t.nvarchar(4000, collation=compiler.collation))
        separator = compiler.value(node.arguments[1], scope)
        order = tuple((order_key(compiler.value(o.expression, scope)), o.descending) for o in node.within)
        return aggregate(name, argument, separator=separator, order=order)
    return aggregate(name, argument, distinct=node.distinct)


def delivers(plan: Operator, wanted: Sequence[tuple[int, bool]]) -> bool:
    """Whether the plan's rows already come in the wanted order."""
    return tuple(plan.order[: len(wanted)]) == tuple(wanted)


def _implied_name(node: ast.Expression) -> str:
    return node.parts[-1] if isinstance(node, ast.ColumnRef) else ""
