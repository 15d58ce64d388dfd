"""FROM to plans: tables and what stands for them, joins, and which conditions are used where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.engine.storage.views import open_view
from mssql_cdc.sandbox.engine.types import ResultColumn
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.expressions.base import Expr, coerce
from mssql_cdc.sandbox.exec.expressions.conditions import common_type, conjunction, keyed
from mssql_cdc.sandbox.exec.query import commontables, tablefunctions
from mssql_cdc.sandbox.exec.query.joins import Apply, FullJoin, HashJoin, LoopJoin
from mssql_cdc.sandbox.exec.query.operators import Filter, Operator, Rows, Single, Slice
from mssql_cdc.sandbox.exec.query.sargs import Sarg, choose_access, conjuncts, find_sarg, or_bounds
from mssql_cdc.sandbox.exec.query.scans import Access, TableScan
from mssql_cdc.sandbox.exec.scope import Field, Scope
from mssql_cdc.sandbox.exec.security import require
from mssql_cdc.sandbox.exec.variables import walk
from mssql_cdc.sandbox.tsql import ast

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.compiler import Compiler

Order = Sequence[tuple[int, bool]]
OuterFields = Sequence[Field]


@dataclass(slots=True)
class Leaf:
    """A source that can be entered in several ways: `plan` makes its operator once conditions are known."""

    fields: Sequence[Field]
    table: Table | None = None
    hints: frozenset[str] = frozenset()
    operator: Operator | None = None
    rename: Callable[[Operator], Operator] | None = None
    filters: list[ast.Expression] = field(default_factory=list)


def table_fields(table: Table, qualifier: tuple[str, ...]) -> list[Field]:
    """The fields of a stored table."""
    fields = []
    for col in table.columns:
        special = "identity" if col.identity is not None else "rowguid" if col.rowguid else ""
        origin = ResultColumn(
            col.name, col.type, nullable=col.nullable, identity=col.identity is not None,
            computed=col.computed is not None, updatable=col.writable and col.identity is None,
            table=(table.name,) if table.private else (table.database.name, table.schema.name, table.name),
        )  # fmt: skip
        fields.append(Field(col.name, col.type, col.nullable, qualifier, origin, col.hidden, special))
    return fields


class SourcePlanner:
    """Plans one FROM clause with its WHERE at one level."""

    def __init__(self, compiler: Compiler, parent: Scope | None) -> None:
        self.compiler = compiler
        self.parent = parent
        self.level = 0 if parent is None else parent.level + 1

    def scope(self, fields: Sequence[Field]) -> Scope:
        """A scope of this level."""
        return Scope(fields, self.compiler.fold, parent=self.parent, level=self.level)

    def plan(
        self, source: ast.TableSource | None, where: ast.Expression | None, wanted: Callable[[Scope], Order] | None,
        *, prefer_order: bool,
    ) -> Operator:  # fmt: skip
        """The plan of FROM … WHERE …; `wanted` tells the order that would be welcome."""
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
        """A source that is no join."""
        if isinstance(source, ast.NamedTable):
            return self._named(source)
        if isinstance(source, ast.VariableTable):
            slot = self.compiler.variables.table(source.name)
            return self._stored(slot.table, (source.alias or source.name,), frozenset())
        if isinstance(source, ast.DerivedTable):
            plan = self.compiler.query(source.query, self.parent)
            fields = commontables.named(plan.fields, source.columns, source.alias, source.alias)
            return Leaf(fields, operator=commontables.Renamed(plan, fields))
        if isinstance(source, ast.FunctionTable):
            plan = tablefunctions.plan_function(self.compiler, source, self.parent)
            return Leaf(plan.fields, operator=plan)
        if isinstance(source, ast.Join):
            plan = self._joined(source, [], None, prefer_order=False)
            return Leaf(plan.fields, operator=plan)
        raise AssertionError(type(source))

    def _named(self, source: ast.NamedTable) -> Leaf:
        compiler = self.compiler
        name, alias = source.name, source.alias
        if len(name) == 1:
            common = compiler.common_tables.get(compiler.fold(name[0]))
            if common is not None:
                plan = commontables.plan_common(compiler, common, alias or name[0])
                return Leaf(plan.fields, operator=plan)
            virtual = compiler.virtual_tables.get(name[0].lower())
            if virtual is not None:
                plan = virtual((alias or name[0],))
                return Leaf(plan.fields, operator=plan)
        compiler.reads_tables = True
        found = compiler.names.find(name)
        if isinstance(found, Table):
            place = compiler.names.place(name)
            if not found.private and not compiler.module_depth:
                require(compiler.session, place.database, "SELECT", found.schema.name, found.name)
            qualifier = (alias,) if alias else (place.database.name, found.schema.name, found.name)
            hints = frozenset(hint.lower() for hint in source.hints)
            if source.system_time is not None:
                return self._temporal(found, source, qualifier)
            return self._stored(found, qualifier, hints)
        if found is not None and found.type_code == "V":
            return self._view(found, alias, name)
        return self._virtual(source)

    def _stored(self, table: Table, qualifier: tuple[str, ...], hints: frozenset[str]) -> Leaf:
        return Leaf(table_fields(table, qualifier), table=table, hints=hints)

    def _view(self, found: Any, alias: str, name: ast.Name) -> Leaf:
        from mssql_cdc.sandbox.exec.modules import plan_view

        database = self.compiler.names.place(name).database
        if not self.compiler.module_depth:
            require(self.compiler.session, database, "SELECT", found.schema.name, found.name)
        plan = plan_view(self.compiler, found)
        qualifier = (alias,) if alias else (database.name, found.schema.name, found.name)
        fields = [replace(field, qualifier=qualifier) for field in plan.fields]
        return Leaf(fields, operator=commontables.Renamed(plan, fields))

    def _virtual(self, source: ast.NamedTable) -> Leaf:
        """A view of the catalogue; 208 when the catalogue does not know it either."""
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

        def rows(context: Context) -> Any:
            return view.rows(context.session, context.transaction)

        return Leaf(fields, operator=Rows(fields, rows))

    def _temporal(self, table: Table, source: ast.NamedTable, qualifier: tuple[str, ...]) -> Leaf:
        from mssql_cdc.sandbox.exec.temporal import plan_history

        plan = plan_history(self, table, source, qualifier)
        return Leaf(plan.fields, operator=plan)

    # ---- entering a leaf with its conditions -------------------------------------------------------------

    def _enter(self, leaf: Leaf, conditions: Sequence[ast.Expression], order: Order, *, prefer_order: bool) -> Operator:
        if leaf.table is None:
            assert leaf.operator is not None
            return self._filtered(leaf.operator, conditions)
        scope = self.scope(leaf.fields)
        access, covered, given = self.access(leaf.table, scope, conditions, order, prefer_order=prefer_order)
        scan = TableScan(
            leaf.table, leaf.fields, hints=leaf.hints, access=access, order=given, computed=computed_values(leaf.table)
        )
        return self._filtered(scan, [node for node in conditions if not any(node is done for done in covered)])

    def access(
        self, table: Table, scope: Scope, conditions: Sequence[ast.Expression], order: Order, *, prefer_order: bool
    ) -> tuple[Access, list[ast.Expression], Order]:
        """The access path for a table, the conditions that it already guarantees, and the order it gives."""

        def here(node: ast.Expression) -> Expr:
            return self.compiler.expr(node, scope)

        def outside(node: ast.Expression) -> Expr:
            made = self.compiler.expr(node, scope)
            if not made.constant:
                raise error(102, near="column")
            return made

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
        """Conditions on one side go down to it; equalities between the sides become a hash or an index join."""
        outer = join.kind == "LEFT"
        own = conjuncts(join.condition)
        left_fields = self._fields_of(join.left)
        right_leaf = None if isinstance(join.right, ast.Join) else self.leaf(join.right)
        right_fields = self._fields_of(join.right) if right_leaf is None else right_leaf.fields
        left_scope, right_scope = self.scope(left_fields), self.scope(right_fields)
        pool = own if outer else own + conditions
        to_left = [node for node in (conditions if outer else pool) if self._only(node, left_scope, right_scope)]
        to_right = [node for node in pool if self._only(node, right_scope, left_scope)]
        used = [*to_left, *to_right]
        between = [node for node in pool if not any(node is one for one in used)]
        after = [node for node in conditions if outer and not any(node is one for one in to_left)]
        left = self._side(join.left, to_left, wanted, prefer_order=prefer_order)
        right = (
            self._side(join.right, to_right, None) if right_leaf is None
            else self._enter(right_leaf, to_right, (), prefer_order=False)
        )  # fmt: skip
        plan = self._match(left, right, between, right_leaf, to_right, outer=outer)
        if outer:
            plan.fields = (*left.fields, *_nullable(right.fields))  # type: ignore[misc]
        return self._filtered(plan, after)

    def _fields_of(self, source: ast.TableSource) -> Sequence[Field]:
        if isinstance(source, ast.Join):
            return (*self._fields_of(source.left), *self._fields_of(source.right))
        if isinstance(source, ast.FunctionTable):
            return self.leaf(source).fields
        return self.leaf(source).fields

    def _only(self, node: ast.Expression, mine: Scope, other: Scope) -> bool:
        """Whether a condition refers to `mine` and not to `other`; subqueries stay where they are."""
        found = False
        for part in walk(node):
            if isinstance(part, (ast.ScalarSubquery, ast.Exists, ast.Quantified)) or (
                isinstance(part, ast.In) and part.query is not None
            ):
                return False
            if isinstance(part, ast.ColumnRef):
                if other.find(part.parts) is not None:
                    return False
                found = found or mine.find(part.parts) is not None
        return found

    def _match(
        self, left: Operator, right: Operator, between: list[ast.Expression], leaf: Leaf | None,
        to_right: list[ast.Expression], *, outer: bool,
    ) -> HashJoin | LoopJoin:  # fmt: skip
        left_scope, right_scope = self.scope(left.fields), self.scope(right.fields)
        both = self.scope((*left.fields, *right.fields))
        pairs = [(node, pair) for node in between if (pair := self._equality(node, left_scope, right_scope))]
        if not pairs:
            condition = conjunction([self.compiler.condition(node, both) for node in between]) if between else None
            return LoopJoin(left, right, None if condition is None else condition.fn, outer=outer)
        rest = [node for node in between if not any(node is done for done, _ in pairs)]
        residual = conjunction([self.compiler.condition(node, both) for node in rest]).fn if rest else None
        left_key, right_key = _key([p[0] for _, p in pairs]), _key([p[1] for _, p in pairs])
        seek, worth = self._seek(leaf, [node for node, _ in pairs], left_scope, right_scope, to_right)
        return HashJoin(left, right, left_key, right_key, residual, outer=outer, seek=seek, worth=worth)

    def _equality(
        self, node: ast.Expression, left: Scope, right: Scope
    ) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
        """Comparison keys of `left expression = right expression`."""
        if not isinstance(node, ast.Comparison) or node.operator != "=":
            return None
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if self._only(one, left, right) and self._only(other, right, left):
                a, b = self.compiler.value(one, left), self.compiler.value(other, right)
                type_ = common_type(a, b)
                return keyed(coerce(a, type_), type_), keyed(coerce(b, type_), type_)
        return None

    def _seek(
        self, leaf: Leaf | None, nodes: list[ast.Expression], left: Scope, right: Scope, to_right: list[ast.Expression]
    ) -> tuple[Callable[[tuple, Context], Slice] | None, Callable[[], int] | None]:
        """How to find the right rows of one left row through an index of the right table."""
        if leaf is None or leaf.table is None or computed_values(leaf.table) is not None:
            return None, None
        table = leaf.table
        sargs: list[Sarg] = []
        for node in nodes:
            sarg = find_sarg(node, lambda n: self.compiler.expr(n, right), lambda n: self.compiler.expr(n, left))
            if sarg is not None:
                sargs.append(sarg)
        choice = choose_access(table, sargs, (), (), prefer_order=False)
        access = choice.access
        if access.index is None or not access.equal:
            return None, None
        checks = conjunction([self.compiler.condition(node, right) for node in to_right]).fn if to_right else None
        hints, index, values = leaf.hints, access.index, access.equal

        def seek(row: tuple, context: Context) -> Slice:
            assert context.transaction is not None
            view = open_view(context.transaction, table.database, hints=hints)
            wanted = [fn(row, context) for fn in values]
            found = [] if None in wanted else [entry[1] for entry in table.seek(view, index, wanted)]
            return found if checks is None else [item for item in found if checks(item, context) is True]

        return seek, lambda: max(10, table.row_count // 10) if table.row_count > 50 else 0

    def _apply(self, join: ast.Join, left: Operator) -> Operator:
        inner = SourcePlanner(self.compiler, self.scope(left.fields))
        right = inner.plan(join.right, None, None, prefer_order=False)
        outer = join.kind == "OUTER APPLY"
        plan = Apply(left, right, level=self.level, outer=outer)
        if outer:
            plan.fields = (*left.fields, *_nullable(right.fields))
        return plan


def _collated(compiler: Compiler, col: ResultColumn) -> Any:
    from mssql_cdc.sandbox.engine.types import STRINGS, with_collation

    if col.type.name in STRINGS and col.type.collation is None:
        return with_collation(col.type, compiler.collation)
    return col.type


def _nullable(fields: Sequence[Field]) -> list[Field]:
    return [
        replace(f, nullable=True, origin=replace(f.origin, nullable=True) if f.origin is not None else None)
        for f in fields
    ]


def _key(functions: list[Callable[..., Any]]) -> Callable[[tuple, Context], Any]:
    """The key of a row: None as soon as one part is NULL."""
    if len(functions) == 1:
        return functions[0]
    parts = tuple(functions)

    def key(row: tuple, context: Context) -> tuple | None:
        values = tuple([part(row, context) for part in parts])
        return None if None in values else values

    return key


def computed_values(table: Table) -> Callable[[Slice, Context], Slice] | None:
    """Fills in computed columns whose values are not stored because they are not deterministic."""
    places = [
        (place, col.computed.evaluate) for place, col in enumerate(table.columns)
        if col.computed is not None and not col.computed.stored
    ]  # fmt: skip
    if not places:
        return None

    def fill(rows: Slice, _context: Context) -> Slice:
        out = []
        for row in rows:
            cells = list(row)
            for place, evaluate in places:
                cells[place] = evaluate(row)
            out.append(tuple(cells))
        return out

    return fill


__all__ = ["Leaf", "SourcePlanner", "SqlError", "computed_values", "table_fields"]
