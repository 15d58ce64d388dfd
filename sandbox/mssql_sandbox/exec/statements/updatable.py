"""Views, common table expressions and derived tables as targets of UPDATE, DELETE and INSERT.

Their rows carry hidden columns: the row of the base table and its row id. A query that cannot be a target (grouping,
DISTINCT, set operations, several tables at once) is an error with SQL Server's number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Fn, column
from mssql_sandbox.exec.modules import inside
from mssql_sandbox.exec.query import commontables
from mssql_sandbox.exec.query.aggregation import is_aggregate, own_nodes
from mssql_sandbox.exec.query.commontables import CommonTable, Renamed, named
from mssql_sandbox.exec.query.leaves import Leaf
from mssql_sandbox.exec.query.operators import Rows
from mssql_sandbox.exec.query.row_filters import refuse_filtered
from mssql_sandbox.exec.query.scans import Access, scan_entries
from mssql_sandbox.exec.query.select import Item, SelectPlanner
from mssql_sandbox.exec.query.sources import SourcePlanner
from mssql_sandbox.exec.scope import Field, Scope, table_fields
from mssql_sandbox.exec.security import require
from mssql_sandbox.exec.statements.targets import target_table
from mssql_sandbox.tsql import ast

ROWID = "$rowid"
_BASE = "$base"


@dataclass(frozen=True, slots=True)
class Source:
    """A target in FROM: a leaf whose rows end with the base table's row and its row id.

    `names` maps a visible column to a base column (None: none); itself None if the base table is used directly.
    `checks` must hold for new rows of the base table (WITH CHECK OPTION).
    """

    table: Table
    leaf: Leaf
    names: Mapping[object, str | None] | None = None
    checks: tuple[Fn, ...] = ()


class TargetPlanner(SourcePlanner):
    """Plans FROM so that rows of the target come with their row id, read for update."""

    def __init__(self, compiler: Compiler, target: ast.TableSource, source: Source) -> None:
        super().__init__(compiler, None)
        self._target = target
        self._source = source

    def leaf(self, source: ast.TableSource) -> Leaf:
        """The target is the one found before, everything else as usual."""
        return self._source.leaf if source is self._target else super().leaf(source)


def target_source(
    compiler: Compiler, node: ast.TableSource, hints: frozenset[str], wanted: Sequence[str] | None, action: str
) -> Source:
    """A source in FROM as a target; `wanted` names the columns to change (None: whole rows)."""
    if isinstance(node, ast.DerivedTable):
        return query_source(compiler, node.query, node.columns, node.alias, wanted, hints, action)
    if isinstance(node, ast.NamedTable):
        common = compiler.common_tables.get(compiler.fold(node.name[0])) if len(node.name) == 1 else None
        if isinstance(common, CommonTable):
            outside, compiler.common_tables = compiler.common_tables, dict(common.around)
            try:
                alias = node.alias or node.name[0]
                return query_source(compiler, common.node.query, common.node.columns, alias, wanted, hints, action)
            finally:
                compiler.common_tables = outside
        found = compiler.names.find(node.name)
        if found is not None and found.type_code == "V":
            return _view_source(compiler, node, found, wanted, action)
    return _table_source(compiler, node, hints, wanted, action)


def _table_source(
    compiler: Compiler, node: Any, hints: frozenset[str], wanted: Sequence[str] | None, action: str
) -> Source:
    name = node.name if isinstance(node, ast.NamedTable) else (node.name,)
    table = target_table(compiler, name, action, columns=wanted)
    refuse_filtered(table)
    plain = SourcePlanner(compiler, None).leaf(node)
    fields = [*plain.fields, Field(ROWID, t.BIGINT, False, (ROWID,), hidden=True)]
    used = hints | plain.hints

    def rows(context: Context) -> list[tuple]:
        return [(*row, rowid) for slice_ in scan_entries(table, context, Access(), used) for rowid, row in slice_]

    return Source(table, Leaf(fields, operator=Rows(fields, rows)))


def _view_source(
    compiler: Compiler, node: ast.NamedTable, found: Any, wanted: Sequence[str] | None, action: str
) -> Source:
    database = compiler.names.place(node.name).database
    if not compiler.module_depth:
        require(compiler.session, database, action, found.schema.name, found.name)
    definition = found.definition.node
    assert definition.query is not None
    own = inside(compiler, found)
    alias = node.alias or found.name
    source = query_source(
        own, definition.query, definition.columns, alias, wanted, frozenset(), action, view=found.name
    )
    qualifier = (node.alias,) if node.alias else (database.name, found.schema.name, found.name)
    fields = [field if field.hidden else replace(field, qualifier=qualifier) for field in source.leaf.fields]
    assert source.leaf.operator is not None
    checks = source.checks
    if "CHECK OPTION" in definition.options:
        checks += _conditions(own, definition.query, source.table)
    return Source(source.table, Leaf(fields, operator=Renamed(source.leaf.operator, fields)), source.names, checks)


def _conditions(compiler: Compiler, query: ast.Query, table: Table) -> tuple[Fn, ...]:
    """WHERE of a view over one table, as a condition on the table's rows."""
    body = query.body
    assert isinstance(body, ast.Select)
    if body.where is None or not isinstance(body.source, ast.NamedTable):
        return ()
    alias = body.source.alias
    qualifier = (alias,) if alias else (table.database.name, table.schema.name, table.name)
    return (compiler.condition(body.where, Scope(table_fields(table, qualifier), compiler.fold)).fn,)


def query_source(
    compiler: Compiler, query: ast.Query, columns: Sequence[str], alias: str, wanted: Sequence[str] | None,
    hints: frozenset[str], action: str, *, view: str = "",
) -> Source:  # fmt: skip
    """A query as a target: its rows, each followed by the base table's row and row id."""
    body = _updatable_body(query, view or alias)
    names = list(columns) or None
    target = _base_of(compiler, body, names, wanted, view or alias)
    inner = None if wanted is None else [_inner_name(body, names, name, compiler) for name in wanted]
    source = target_source(compiler, target, hints, None if inner is None else [n for n in inner if n], action)
    outside = dict(compiler.common_tables)
    try:
        for common in query.ctes:
            commontables.define(compiler, common, None, query)
        planner = _ItemPlanner(compiler, body, query, TargetPlanner(compiler, target, source), source)
        plan = planner.plan()
    finally:
        compiler.common_tables = outside
    hidden = len(source.table.columns) + 1
    visible = named(plan.fields[:-hidden], columns, alias, alias)
    kept = [Field("", field.type, True, (_BASE,), hidden=True) for field in plan.fields[-hidden:-1]]
    fields = [*visible, *kept, Field(ROWID, t.BIGINT, False, (ROWID,), hidden=True)]
    known = {compiler.fold(field.name): planner.bases[place] for place, field in enumerate(visible)}
    return Source(source.table, Leaf(fields, operator=Renamed(plan, fields)), known, source.checks)


def _updatable_body(query: ast.Query, name: str) -> ast.Select:
    body = query.body
    if isinstance(body, ast.Nested):
        return _updatable_body(body.query, name)
    if not isinstance(body, ast.Select):
        raise SqlError(4416, f"UNION ALL view '{name}' is not updatable because the definition contains a disallowed "
                       "construct.")  # fmt: skip
    grouped = body.distinct or body.group_by or body.grouping_sets or body.having is not None
    if grouped or any(is_aggregate(part) for item in body.items for part in own_nodes(item.expression)):
        raise SqlError(
            4403, f"Cannot update the view or function '{name}' because it contains aggregates, or a DISTINCT or GROUP "
            "BY clause, or PIVOT or UNPIVOT operator."
        )  # fmt: skip
    if body.source is None:
        raise SqlError(4406, f"Update or insert of view or function '{name}' failed because it contains a derived or "
                       "constant field.")  # fmt: skip
    return body


def _inner_name(body: ast.Select, names: Sequence[str] | None, name: str, compiler: Compiler) -> str:
    """The column behind a visible one in the query's own FROM; empty if it is computed or comes from `*`."""
    fold = compiler.fold
    for place, item in enumerate(body.items):
        shown = names[place] if names else item.alias
        node = item.expression
        if not shown and isinstance(node, ast.ColumnRef):
            shown = node.parts[-1]
        if shown and fold(shown) == fold(name) and isinstance(node, ast.ColumnRef):
            return node.parts[-1]
    return name if any(isinstance(item.expression, ast.Star) for item in body.items) else ""


def _base_of(
    compiler: Compiler, body: ast.Select, names: Sequence[str] | None, wanted: Sequence[str] | None, name: str
) -> ast.TableSource:
    """The one source whose rows change; 4405 if the change concerns several."""
    assert body.source is not None
    leaves = list(leaves_of(body.source))
    if len(leaves) == 1:
        return leaves[0]
    planner = SourcePlanner(compiler, None)
    fields = [planner.leaf(leaf).fields for leaf in leaves]
    meant: set[int] = set()
    for column_name in wanted or ():
        inner = _inner_name(body, names, column_name, compiler)
        having = [n for n, own in enumerate(fields) if any(compiler.fold(f.name) == compiler.fold(inner) for f in own)]
        reference = _reference(body, names, column_name, compiler)
        if len(having) > 1 and reference is not None and len(reference.parts) > 1:
            having = [
                n for n in having
                if any(f.qualifier and compiler.fold(f.qualifier[-1]) == compiler.fold(reference.parts[-2])
                       for f in fields[n])
            ]  # fmt: skip
        meant.update(having)
    if len(meant) != 1:
        raise SqlError(4405, f"View or function '{name}' is not updatable because the modification affects multiple "
                       "base tables.")  # fmt: skip
    return leaves[meant.pop()]


def _reference(body: ast.Select, names: Sequence[str] | None, name: str, compiler: Compiler) -> ast.ColumnRef | None:
    for place, item in enumerate(body.items):
        node = item.expression
        if isinstance(node, ast.ColumnRef):
            shown = names[place] if names else item.alias or node.parts[-1]
            if compiler.fold(shown) == compiler.fold(name):
                return node
    return None


def leaves_of(source: ast.TableSource) -> Sequence[Any]:
    """Sources of a FROM clause that are not joins."""
    if isinstance(source, ast.Join):
        return [*leaves_of(source.left), *leaves_of(source.right)]
    return [source]


class _ItemPlanner(SelectPlanner):
    """A SELECT whose rows end with the target's row and row id; `bases` names base columns."""

    def __init__(
        self, compiler: Compiler, node: ast.Select, query: ast.Query, sources: TargetPlanner, source: Source
    ) -> None:
        super().__init__(compiler, node, query, None)
        self.sources = sources
        self._source = source
        self.bases: list[str | None] = []

    def _items(self, scope: Scope) -> list[Item]:
        items = super()._items(scope)
        fields = scope.base.fields
        rowid = next(place for place, field in enumerate(fields) if field.name == ROWID)
        width = len(self._source.table.columns)
        first, names = rowid - width, self._source.names
        for item in items:
            place = item.expr.column
            if names is None:
                inside = first <= place < rowid
                self.bases.append(self._source.table.columns[place - first].name if inside else None)
            else:
                start = rowid + 1 - len(self._source.leaf.fields)
                inside = start <= place < first
                self.bases.append(names.get(self.compiler.fold(fields[place].name)) if inside else None)
        for place in range(first, rowid + 1):
            items.append(Item(column(place, fields[place].type, nullable=True), "", None))
        return items
