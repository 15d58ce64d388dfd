"""FROM to plans: tables and other sources, joins, and where each condition is applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import STRINGS, ResultColumn, with_collation
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.expressions.base import Expr
from mssql_sandbox.exec.expressions.conditions import conjunction
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query import commontables, tablefunctions
from mssql_sandbox.exec.query.history import plan_history
from mssql_sandbox.exec.query.index_hints import check_index_hints
from mssql_sandbox.exec.query.joins import Apply, FullJoin
from mssql_sandbox.exec.query.leaves import Leaf, computed_values, view_leaf
from mssql_sandbox.exec.query.limits import refuse_order
from mssql_sandbox.exec.query.masks import masked_fields
from mssql_sandbox.exec.query.matching import Matcher
from mssql_sandbox.exec.query.operators import Filter, Single
from mssql_sandbox.exec.query.pivot import pivot_query
from mssql_sandbox.exec.query.row_filters import Filtered, refuse_filtered, row_filters
from mssql_sandbox.exec.query.sargs import choose_access, conjuncts, find_sarg, or_bounds
from mssql_sandbox.exec.query.scans import Access, TableScan
from mssql_sandbox.exec.query.views import plan_view
from mssql_sandbox.exec.scope import Field, Scope, table_fields
from mssql_sandbox.exec.security import permitted_columns, require
from mssql_sandbox.tsql import ast

Order = Sequence[tuple[int, bool]]
OuterFields = Sequence[Field]


class SourcePlanner:
    """Plans one FROM clause with its WHERE at one level."""

    def __init__(self, compiler: Compiler, parent: Scope | None) -> None:
        self.compiler = compiler
        self.parent = parent
        self.level = 0 if parent is None else parent.level + 1
        self._matcher = Matcher(compiler, self.scope)

    def scope(self, fields: Sequence[Field]) -> Scope:
        """A scope of this level."""
        return Scope(fields, self.compiler.fold, parent=self.parent, level=self.level)

    def plan(
        self, source: ast.TableSource | None, where: ast.Expression | None, wanted: Callable[[Scope], Order] | None,
        *, prefer_order: bool,
    ) -> Operator:  # fmt: skip
        """The plan of FROM … WHERE …; `wanted` is the preferred order."""
        conditions = conjuncts(where)
        if source is None:
            return self._filtered(Single(), conditions)
        if not isinstance(source, ast.Join):
            leaf = self.leaf(source)
            order = wanted(self.scope(leaf.fields)) if wanted is not None else ()
            return self._enter(leaf, conditions, order, prefer_order=prefer_order)
        return self._joined(source, conditions, wanted, prefer_order=prefer_order)

    # ---- leaves ---------------------------------------------------------------------------------------

    def leaf(self, source: ast.TableSource) -> Leaf:
        """A source that is not a join."""
        if isinstance(source, ast.NamedTable):
            return self._named(source)
        if isinstance(source, ast.VariableTable):
            slot = self.compiler.variables.table(source.name)
            self.compiler.reads_tables = True
            return Leaf(table_fields(slot.table, (source.alias or source.name,)), table=slot.table)
        if isinstance(source, ast.DerivedTable):
            refuse_order(source.query)
            plan = self.compiler.query(source.query, self.parent)
            fields = commontables.named(plan.fields, source.columns, source.alias, source.alias)
            return Leaf(fields, operator=commontables.Renamed(plan, fields))
        if isinstance(source, (ast.FunctionTable, ast.FullTextTable)):
            plan = tablefunctions.plan_function(self.compiler, source, self.parent)
            return Leaf(plan.fields, operator=plan)
        if isinstance(source, ast.Join):
            plan = self._joined(source, [], None, prefer_order=False)
            return Leaf(plan.fields, operator=plan)
        assert isinstance(source, ast.Pivot)
        return self._pivoted(source)

    def _pivoted(self, source: ast.Pivot) -> Leaf:
        query = pivot_query(source, self._fields_of(source.source), self.compiler.fold)
        return self.leaf(ast.DerivedTable(query, source.alias))

    def _named(self, source: ast.NamedTable) -> Leaf:
        compiler = self.compiler
        name, alias = source.name, source.alias
        if len(name) == 1:
            common = compiler.common_tables.get(compiler.fold(name[0]))
            if common is not None:
                plan = commontables.plan_common(compiler, common, alias or name[0], self.parent)
                return Leaf(plan.fields, operator=plan)
            virtual = compiler.virtual_tables.get(name[0].lower())
            if virtual is not None:
                plan = virtual((alias or name[0],))
                return Leaf(plan.fields, operator=plan)
        compiler.reads_tables = True
        found = compiler.names.find(name)
        if isinstance(found, Table):
            place = compiler.names.place(name)
            may_select: Callable[[str], bool] | None = None
            if not found.private and not compiler.module_depth:
                may_select = permitted_columns(compiler.session, found)
            qualifier = (alias,) if alias else (place.database.name, found.schema.name, found.name)
            if source.system_time is not None:
                refuse_filtered(found)
                plan = plan_history(compiler, found, source, qualifier)
                return Leaf(plan.fields, operator=plan)
            check_index_hints(found, source.name, source.hints)
            fields = masked_fields(compiler.session, found, table_fields(found, qualifier))
            leaf = Leaf(fields, table=found, hints=frozenset(hint.lower() for hint in source.hints))
            if may_select is not None:
                fields = [field if may_select(field.name) else replace(field, denied=True) for field in leaf.fields]
                leaf = replace(leaf, fields=fields) if any(field.denied for field in fields) else leaf
            checks = row_filters(compiler, found)
            if checks:
                scan = TableScan(
                    found, leaf.fields, hints=leaf.hints, access=Access(), order=(), computed=computed_values(found)
                )
                return Leaf(leaf.fields, operator=Filtered(scan, checks))
            return leaf
        if source.system_time is not None:
            raise SqlError(
                13544, "Temporal FOR SYSTEM_TIME clause can only be used with system-versioned tables. "
                f"'{'.'.join(name)}' is not a system-versioned table."
            )  # fmt: skip
        if found is not None and found.type_code == "V":
            return self._view(found, alias, name)
        return self._virtual(source)

    def _view(self, found: Any, alias: str, name: ast.Name) -> Leaf:
        database = self.compiler.names.place(name).database
        if not self.compiler.module_depth:
            require(self.compiler.session, database, "SELECT", found.schema.name, found.name)
        plan = plan_view(self.compiler, found)
        qualifier = (alias,) if alias else (database.name, found.schema.name, found.name)
        fields = [replace(field, qualifier=qualifier) for field in plan.fields]
        return Leaf(fields, operator=commontables.Renamed(plan, fields))

    def _virtual(self, source: ast.NamedTable) -> Leaf:
        """A catalogue view; 208 if the catalogue does not have it either."""
        compiler = self.compiler
        place = compiler.names.place(source.name)
        catalog = compiler.session.server.catalog
        view = None if catalog is None else catalog.view(place.database, place.schema, place.name)
        if view is None:
            failure = error(208, name=".".join(source.name))
            failure.line = source.line
            raise failure
        alias = source.alias
        qualifier = (alias,) if alias else (place.database.name, place.schema, place.name)
        fields = [Field(col.name, _collated(compiler, col), col.nullable, qualifier, col) for col in view.columns]

        return view_leaf(view, fields)

    # ---- entering a leaf with its conditions -------------------------------------------------------------

    def _enter(self, leaf: Leaf, conditions: Sequence[ast.Expression], order: Order, *, prefer_order: bool) -> Operator:
        if leaf.table is None:
            operator = self._narrowed(leaf, conditions) or leaf.operator
            assert operator is not None
            return self._filtered(operator, conditions)
        scope = self.scope(leaf.fields)
        access, covered, given = self.access(leaf.table, scope, conditions, order, prefer_order=prefer_order)
        scan = TableScan(
            leaf.table, leaf.fields, hints=leaf.hints, access=access, order=given, computed=computed_values(leaf.table)
        )
        return self._filtered(scan, [node for node in conditions if not any(node is done for done in covered)])

    def _narrowed(self, leaf: Leaf, conditions: Sequence[ast.Expression]) -> Operator | None:
        """The rows of a catalogue view about one table, if a condition names it."""
        if leaf.narrow is None:
            return None
        place, make = leaf.narrow
        scope = self.scope(leaf.fields)
        for node in conditions:
            sarg = find_sarg(node, lambda n: self.compiler.expr(n, scope), lambda n: self._constant(n, scope))
            if sarg is not None and sarg.column == place and sarg.operator == "=":
                return make(sarg.value.fn)
        return None

    def _constant(self, node: ast.Expression, scope: Scope) -> Expr:
        made = self.compiler.expr(node, scope)
        if not made.constant:
            raise error(102, near="column")
        return made

    def access(
        self, table: Table, scope: Scope, conditions: Sequence[ast.Expression], order: Order, *, prefer_order: bool
    ) -> tuple[Access, list[ast.Expression], Order]:
        """The access path for a table, the conditions that it already guarantees, and its order."""

        def here(node: ast.Expression) -> Expr:
            return self.compiler.expr(node, scope)

        def outside(node: ast.Expression) -> Expr:
            return self._constant(node, scope)

        sargs = [sarg for node in conditions if (sarg := find_sarg(node, here, outside)) is not None]
        ors = [bound for node in conditions for bound in or_bounds(node, lambda n: find_sarg(n, here, outside))]
        choice = choose_access(table, sargs, ors, order, prefer_order=prefer_order)
        return choice.access, choice.covered, choice.order

    def _filtered(self, plan: Operator, conditions: Sequence[ast.Expression]) -> Operator:
        if not conditions:
            return plan
        scope = self.scope(plan.fields)
        compiled = [self.compiler.condition(node, scope) for node in conditions]
        return Filter(plan, conjunction(compiled).fn)

    # ---- joins ------------------------------------------------------------------------------------------

    def _joined(
        self, join: ast.Join, conditions: list[ast.Expression], wanted: Callable[[Scope], Order] | None,
        *, prefer_order: bool,
    ) -> Operator:  # fmt: skip
        if join.kind in ("CROSS APPLY", "OUTER APPLY"):
            left = self._side(join.left, [], wanted, prefer_order=prefer_order)
            return self._filtered(self._apply(join, left), conditions)
        if join.kind in ("RIGHT", "FULL"):
            left, right = self._side(join.left, [], None), self._side(join.right, [], None)
            scope = self.scope((*left.fields, *right.fields))
            condition = self.compiler.condition(join.condition, scope)  # type: ignore[arg-type]
            nullable = join.kind == "FULL"
            joined = FullJoin(left, right, condition.fn, full=nullable)
            joined.fields = (*_nullable(left.fields), *(_nullable(right.fields) if nullable else right.fields))
            return self._filtered(joined, conditions)
        return self._inner_or_left(join, conditions, wanted, prefer_order=prefer_order)

    def _side(
        self, source: ast.TableSource, conditions: list[ast.Expression],
        wanted: Callable[[Scope], Order] | None, *, prefer_order: bool = False,
    ) -> Operator:  # fmt: skip
        if isinstance(source, ast.Join):
            return self._joined(source, conditions, wanted, prefer_order=prefer_order)
        leaf = self.leaf(source)
        order = wanted(self.scope(leaf.fields)) if wanted is not None else ()
        return self._enter(leaf, conditions, order, prefer_order=prefer_order)

    def _inner_or_left(
        self, join: ast.Join, conditions: list[ast.Expression], wanted: Callable[[Scope], Order] | None,
        *, prefer_order: bool,
    ) -> Operator:  # fmt: skip
        """Conditions on one side are pushed down to it; equalities between the sides become a hash or an index join."""
        outer = join.kind == "LEFT"
        own = conjuncts(join.condition)
        left_fields = self._fields_of(join.left)
        right_leaf = None if isinstance(join.right, ast.Join) else self.leaf(join.right)
        right_fields = self._fields_of(join.right) if right_leaf is None else right_leaf.fields
        left_scope, right_scope = self.scope(left_fields), self.scope(right_fields)
        pool = own if outer else own + conditions
        to_left = [
            node for node in (conditions if outer else pool) if self._matcher.only(node, left_scope, right_scope)
        ]
        to_right = [node for node in pool if self._matcher.only(node, right_scope, left_scope)]
        used = [*to_left, *to_right]
        between = [node for node in pool if not any(node is one for one in used)]
        after = [node for node in conditions if outer and not any(node is one for one in to_left)]
        left = self._side(join.left, to_left, wanted, prefer_order=prefer_order)
        right = (
            self._side(join.right, to_right, None) if right_leaf is None
            else self._enter(right_leaf, to_right, (), prefer_order=False)
        )  # fmt: skip
        plan = self._matcher.match(left, right, between, right_leaf, to_right, outer=outer)
        if outer:
            plan.fields = (*left.fields, *_nullable(right.fields))  # type: ignore[misc]
        return self._filtered(plan, after)

    def _fields_of(self, source: ast.TableSource) -> Sequence[Field]:
        if isinstance(source, ast.Join):
            return (*self._fields_of(source.left), *self._fields_of(source.right))
        return self.leaf(source).fields

    def _apply(self, join: ast.Join, left: Operator) -> Operator:
        inner = SourcePlanner(self.compiler, self.scope(left.fields))
        right = inner.plan(join.right, None, None, prefer_order=False)
        outer = join.kind == "OUTER APPLY"
        plan = Apply(left, right, level=self.level, outer=outer)
        if outer:
            plan.fields = (*left.fields, *_nullable(right.fields))
        return plan


def _collated(compiler: Compiler, col: ResultColumn) -> Any:
    if col.type.name in STRINGS and col.type.collation is None:
        return with_collation(col.type, compiler.collation)
    return col.type


def _nullable(fields: Sequence[Field]) -> list[Field]:
    return [
        replace(f, nullable=True, origin=replace(f.origin, nullable=True) if f.origin is not None else None)
        for f in fields
    ]
