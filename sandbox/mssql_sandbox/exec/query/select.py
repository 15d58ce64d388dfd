"""One query specification to a plan: FROM and WHERE, grouping, windows, select list, DISTINCT, ORDER BY, TOP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.expressions.base import Expr, column
from mssql_sandbox.exec.expressions.canonical import canonical
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.aggregation import is_aggregate, own_nodes, plan_group
from mssql_sandbox.exec.query.limits import limited
from mssql_sandbox.exec.query.masks import any_masked, mask_of
from mssql_sandbox.exec.query.operators import Projection
from mssql_sandbox.exec.query.sorting import Distinct, Sort, SortKey, order_key
from mssql_sandbox.exec.query.sources import SourcePlanner
from mssql_sandbox.exec.query.windows import plan_windows
from mssql_sandbox.exec.scope import Field, Scope
from mssql_sandbox.tsql import ast


@dataclass(frozen=True, slots=True)
class Item:
    """An element of the select list after `*` is resolved."""

    expr: Expr
    name: str
    node: ast.Expression | None
    source: tuple[str, ...] = ()


def plan_select(compiler: Compiler, node: ast.Select, query: ast.Query | None, parent: Scope | None) -> Operator:
    """The plan of a query specification; with `query` its ORDER BY, OFFSET and FETCH too."""
    return SelectPlanner(compiler, node, query, parent).plan()


class SelectPlanner:
    """Holds the intermediate results of planning one SELECT."""

    def __init__(self, compiler: Compiler, node: ast.Select, query: ast.Query | None, parent: Scope | None) -> None:
        self.compiler = compiler
        self.node = node
        self.query = query
        self.sources = SourcePlanner(compiler, parent)
        self.order = query.order if query is not None else ()
        self._masks: list[str] = []

    def plan(self) -> Operator:
        """Put the operators together."""
        node = self.node
        grouped = bool(node.group_by or node.grouping_sets) or node.having is not None or self._has_aggregates()
        limited = node.top is not None or (self.query is not None and self.query.offset is not None)
        wanted = None if node.distinct else self._extreme if grouped else self._wanted if self.order else None
        plan = self.sources.plan(node.source, node.where, wanted, prefer_order=limited)
        scope = self.sources.scope(plan.fields)
        if grouped:
            plan, scope = plan_group(self.compiler, node, self._nodes(), plan, scope)
        plan, scope = plan_windows(self.compiler, node, self._nodes(), plan, scope)
        items = self._items(scope)
        self._masks = (
            [mask_of(item.node, item.expr, scope) for item in items]
            if any_masked(scope)
            else [item.expr.masking for item in items]
        )
        if node.distinct:
            return self._distinct(plan, items, scope)
        return self._ordered(plan, items, scope)

    def _nodes(self) -> list[ast.Expression]:
        """Expressions that may contain aggregates and window functions."""
        return [*(item.expression for item in self.node.items), *(item.expression for item in self.order)]

    def _has_aggregates(self) -> bool:
        return any(is_aggregate(part) for node in self._nodes() for part in own_nodes(node))

    # ---- ORDER BY ---------------------------------------------------------------------------------------

    def _extreme(self, scope: Scope) -> list[tuple[int, bool]]:
        """The order in which the only MIN or MAX of a query without groups comes first."""
        found = [part for node in self._nodes() for part in own_nodes(node) if is_aggregate(part)]
        alone = len(found) == 1 and found[0].arguments and not self.node.group_by
        name = found[0].name[0].upper() if alone else ""
        if name not in ("MIN", "MAX") or self.node.grouping_sets:
            return []
        return self._plain_order([ast.OrderItem(found[0].arguments[0], descending=name == "MAX")], scope)

    def _wanted(self, scope: Scope) -> list[tuple[int, bool]]:
        """The order of ORDER BY, as far as its items are plain columns of this source."""
        return self._plain_order(
            [replace(item, expression=self._order_node(item.expression)) for item in self.order], scope
        )

    def _plain_order(self, items: Sequence[ast.OrderItem], scope: Scope) -> list[tuple[int, bool]]:
        result = []
        for item in items:
            node = item.expression
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
        """The meaning of an ORDER BY item: an alias or a position of the select list, or itself."""
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
                    result.append(Item(replace(made, value=field.special), field.name, None, field.qualifier))
                continue
            expr = self.compiler.value(item.expression, scope)
            name = item.alias or _implied_name(item.expression)
            # For FOR … AUTO, a computed column belongs to the table of the column before it.
            source = scope.fields[expr.column].qualifier if expr.column >= 0 else result[-1].source if result else ()
            result.append(Item(expr, name, item.expression, source))
        return result

    def _project(self, plan: Operator, items: list[Item]) -> Operator:
        fields = [self._field(item) for item in items]
        if any(self._masks):
            fields = [replace(field, masking=mask) for field, mask in zip(fields, self._masks, strict=True)]
        return Projection(plan, [item.expr for item in items], fields)

    def _field(self, item: Item) -> Field:
        expr = item.expr
        origin = expr.origin
        if origin is not None:
            origin = replace(origin, name=item.name, type=expr.type, nullable=origin.nullable or expr.nullable)
        else:
            # Computed columns are reported as computed and not updatable.
            origin = ResultColumn(item.name, expr.type, nullable=expr.nullable, computed=not expr.literal)
        special = "null" if expr.null else "identity" if origin.identity else ""
        clause = self.query.for_clause if self.query is not None else None
        if clause is None:
            return Field(item.name, expr.type, expr.nullable, (), origin, False, special)
        qualifier = item.source if clause.mode == "AUTO" else ()
        return Field(
            item.name, expr.type, expr.nullable, qualifier, origin, False, "json" if makes_json(item.node) else ""
        )


def delivers(plan: Operator, wanted: Sequence[tuple[int, bool]]) -> bool:
    """Whether the plan's rows already have the wanted order."""
    return tuple(plan.order[: len(wanted)]) == tuple(wanted)


def _implied_name(node: ast.Expression) -> str:
    return node.parts[-1] if isinstance(node, ast.ColumnRef) else ""


_JSON_FUNCTIONS = frozenset({"JSON_QUERY", "JSON_MODIFY", "JSON_OBJECT", "JSON_ARRAY"})


def makes_json(node: ast.Expression | None) -> bool:
    """Whether JSON is inserted unchanged: results of the server's own JSON functions."""
    if isinstance(node, ast.ScalarSubquery):
        return node.query.for_clause is not None and node.query.for_clause.kind == "JSON"
    return isinstance(node, ast.Function) and node.name[-1].upper() in _JSON_FUNCTIONS
