"""UPDATE, DELETE, TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.definition_rights import require_alter
from mssql_sandbox.exec.expressions.base import Expr, Fn, coerce, hoist
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.query.commontables import with_common_tables
from mssql_sandbox.exec.query.index_hints import check_index_hints
from mssql_sandbox.exec.query.masks import as_seen
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.exec.statements import triggers
from mssql_sandbox.exec.statements.instead import instead_of, view_of, view_target
from mssql_sandbox.exec.statements.joined import joined_target
from mssql_sandbox.exec.statements.output import OutputPlan, compile_output, finish
from mssql_sandbox.exec.statements.own_columns import of_target
from mssql_sandbox.exec.statements.positioned import current_target
from mssql_sandbox.exec.statements.targets import Target, single_target, target_table
from mssql_sandbox.exec.statements.view_columns import base_column, check_rows
from mssql_sandbox.exec.tables.cells import cell, default, nothing, stored
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


def compile_target(
    compiler: Compiler, name: ast.Name, source: ast.TableSource | None, where: ast.Expression | None,
    hints: Sequence[str], permission: str, wanted: Sequence[str] | None = None,
) -> Target:  # fmt: skip
    """Find the target of UPDATE (of the columns `wanted`) or DELETE; with FROM it may be named by its alias."""
    lowered = frozenset(hint.lower() for hint in hints)
    if isinstance(where, ast.CurrentOf):
        return current_target(compiler, name, where, permission)
    if source is not None:
        return joined_target(compiler, name, source, where, lowered, permission, wanted)
    view = view_of(compiler, name, permission)
    if view is not None:
        return view_target(compiler, view, where)
    if not name[0].startswith("@"):
        common = len(name) == 1 and compiler.fold(name[0]) in compiler.common_tables
        found = None if common else compiler.names.find(name)
        if common or (found is not None and found.type_code == "V"):
            return joined_target(compiler, name, ast.NamedTable(name), where, lowered, permission, wanted)
    table = target_table(compiler, name, permission, columns=wanted)
    check_index_hints(table, name, hints)
    return single_target(compiler, table, "", where, lowered)


RowLimit = Callable[[list[Any], Context], list[Any]]
ChangedRows = tuple[list[tuple], list[tuple], list[tuple]]
"""New, old and joined rows of a change."""


def row_limit(compiler: Compiler, top: ast.Top | None) -> RowLimit:
    """TOP (n) [PERCENT] of a change: selects among the rows found. 1060, 127 for a negative number, 1031."""
    if top is None:
        return lambda rows, _context: rows
    count = hoist(coerce(compiler.value(top.count), t.FLOAT if top.percent else t.BIGINT)).fn

    def limited(rows: list[Any], context: Context) -> list[Any]:
        number = count((), context)
        if number is None or number < 0:
            raise error(1060 if number is None else 127)
        if top.percent:
            if number > 100:
                raise error(1031)
            number = -int(-(len(rows) * float(number)) // 100)
        return rows[:number]

    return limited


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """A compiled UPDATE: new cells by position, and variables to set."""

    target: Target
    cells: tuple[tuple[int, Fn], ...]
    variables: tuple[tuple[int, Fn, int], ...]
    output: OutputPlan | None
    top: RowLimit


def compile_update(compiler: Compiler, node: st.Update) -> UpdatePlan:
    """Compile an UPDATE."""
    with with_common_tables(compiler, node.ctes):
        wanted = [assignment.column[-1] for assignment in node.assignments if assignment.column]
        target = compile_target(compiler, node.target, node.source, node.where, node.hints, "UPDATE", wanted)
        cells, variables = assignments(
            compiler, node.assignments, target.table, target.scope, target.names, alias=node.target[-1]
        )
        output = (
            compile_output(compiler, node.output, target.table, inserted=True, deleted=True, source=target.scope)
            if node.output else None
        )  # fmt: skip
    return UpdatePlan(target, cells, variables, output, row_limit(compiler, node.top))


def assignments(
    compiler: Compiler,
    nodes: Sequence[st.Assignment],
    table: Table,
    scope: Scope,
    names: Mapping[object, str | None] | None = None,
    *,
    alias: str = "",
) -> tuple[tuple[tuple[int, Fn], ...], tuple[tuple[int, Fn, int], ...]]:
    """SET elements: (position, new value) and (variable slot, value, position of the column it follows or -1)."""
    cells: dict[int, Fn] = {}
    variables: list[tuple[int, Fn, int]] = []
    for node in nodes:
        value = node.value
        if not node.column:
            slot = compiler.variables.scalar(node.variable)
            assert slot.type is not None
            if node.operator != "=":
                value = ast.Binary(node.operator[:-1], ast.Variable(node.variable), value)
            variables.append((slot.place, coerce(compiler.value(value, scope), slot.type).fn, -1))
            continue
        written = node.column[-1]
        if names is not None:
            written = base_column(names, written, compiler, table.name)
        place = table.ordinal(written)
        if place is None:
            raise error(207, name=written)
        column = table.columns[place]
        if place in cells:
            raise error(264, name=column.name)
        if column.computed is not None:
            raise error(271, name=column.name)
        if column.is_rowversion:
            raise error(272)
        if column.generated:
            raise SqlError(13537, f"Cannot update GENERATED ALWAYS columns in table '{table.long_name}'.")
        if column.identity is not None:
            raise SqlError(8102, f"Cannot update identity column '{column.name}'.")
        if isinstance(value, ast.Literal) and value.kind == "default":
            cells[place] = default(column.default.evaluate) if column.default is not None else nothing
            continue
        if node.operator != "=":
            value = ast.Binary(node.operator[:-1], ast.ColumnRef(node.column), value)
        value = of_target(value, scope, alias or table.name, node.column)
        cells[place] = stored(as_seen(value, compiler.value(value, scope), scope), table, place)
        if node.variable:
            slot = compiler.variables.scalar(node.variable)
            assert slot.type is not None
            source = Expr(column.type, cell(place))
            variables.append((slot.place, coerce(source, slot.type).fn, place))
    return tuple(cells.items()), tuple(variables)


def changed_rows(
    entries: Sequence[tuple[int, tuple, tuple]], cells: Sequence[tuple[int, Fn]],
    variables: Sequence[tuple[int, Fn, int]], context: Context,
) -> list[tuple[int, tuple]]:  # fmt: skip
    """(row id, new row) for each entry; each row once, even if a join returns it more often."""
    changes: list[tuple[int, tuple]] = []
    seen: set[int] = set()
    values = context.values
    for rowid, row, joined in entries:
        if rowid in seen:
            continue
        seen.add(rowid)
        for slot, fn, place in variables:
            if place < 0:
                values[slot] = fn(joined, context)
        fresh = list(row)
        for place, fn in cells:
            fresh[place] = fn(joined, context)
        new = tuple(fresh)
        for slot, fn, place in variables:
            if place >= 0:
                values[slot] = fn(new, context)
        changes.append((rowid, new))
    return changes


def apply_update(plan: UpdatePlan, context: Context, instead: Any = None) -> ChangedRows:
    """Change the rows, or with an INSTEAD OF trigger only find them: new, old and joined rows."""
    assert context.transaction is not None
    entries = plan.top(plan.target.entries(context), context)
    changes = changed_rows(entries, plan.cells, plan.variables, context)
    if instead is not None:
        rows = {rowid: row for rowid, row, _ in entries}
        return [new for _, new in changes], [rows[rowid] for rowid, _ in changes], []
    pairs = plan.target.table.update(context.transaction, changes, assigned=[place for place, _ in plan.cells])
    check_rows(plan.target.checks, [after for _, after in pairs], context)
    joined = [entry[2] for entry in entries]
    new, old = [after for _, after in pairs], [before for before, _ in pairs]
    if plan.output is not None:
        plan.output.store(context, "UPDATE", new, old, joined)
    return new, old, joined


def update(frame: Frame, node: st.Update) -> Steps:
    """Run an UPDATE."""
    session = frame.session
    plan = frame.compiled(node, lambda compiler: compile_update(compiler, node))
    table = plan.target.table
    columns = [table.columns[place].name for place, _ in plan.cells]
    instead = instead_of(session, plan.target.changed, "UPDATE")
    triggers.refuse_output(table, "UPDATE", plan.output)
    then = triggers.then(frame, table, "UPDATE", lambda result: result[:2], columns, instead)
    new, old, joined = yield from session.transactions.run(
        lambda transaction: apply_update(plan, frame.context(transaction), instead), then
    )
    yield from finish(frame, "update", len(new), plan.output, new, old, joined)
    return None


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """A compiled DELETE."""

    target: Target
    output: OutputPlan | None
    top: RowLimit


def compile_delete(compiler: Compiler, node: st.Delete) -> DeletePlan:
    """Compile a DELETE."""
    with with_common_tables(compiler, node.ctes):
        target = compile_target(compiler, node.target, node.source, node.where, node.hints, "DELETE")
        output = (
            compile_output(compiler, node.output, target.table, inserted=False, deleted=True, source=target.scope)
            if node.output else None
        )  # fmt: skip
    return DeletePlan(target, output, row_limit(compiler, node.top))


def apply_delete(plan: DeletePlan, context: Context, instead: Any = None) -> tuple[list[tuple], list[tuple]]:
    """Delete the rows, or with an INSTEAD OF trigger only find them: the rows, and the joined ones."""
    assert context.transaction is not None
    found: dict[int, tuple] = {}
    rows: dict[int, tuple] = {}
    for rowid, row, whole in plan.target.entries(context):
        found.setdefault(rowid, whole)
        rows.setdefault(rowid, row)
    rowids = plan.top(list(found), context)
    if instead is not None:
        return [rows[rowid] for rowid in rowids], []
    gone = plan.target.table.delete(context.transaction, rowids)
    joined = [found[rowid] for rowid in rowids]
    if plan.output is not None:
        plan.output.store(context, "DELETE", None, gone, joined)
    return gone, joined


def delete(frame: Frame, node: st.Delete) -> Steps:
    """Run a DELETE."""
    session = frame.session
    plan = frame.compiled(node, lambda compiler: compile_delete(compiler, node))
    table = plan.target.table
    instead = instead_of(session, plan.target.changed, "DELETE")
    triggers.refuse_output(table, "DELETE", plan.output)
    then = triggers.then(frame, table, "DELETE", lambda result: ([], result[0]), (), instead)
    gone, joined = yield from session.transactions.run(
        lambda transaction: apply_delete(plan, frame.context(transaction), instead), then
    )
    yield from finish(frame, "delete", len(gone), plan.output, None, gone, joined)
    return None


def truncate(frame: Frame, node: st.Truncate) -> Steps:
    """TRUNCATE TABLE."""
    session = frame.session
    table = frame.compiled(node, lambda compiler: target_table(compiler, node.table))
    require_alter(session, table)
    if table.history is not None:
        raise SqlError(
            13545, f"Truncate failed on table '{table.long_name}' because it is not a supported operation on "
            "system-versioned tables."
        )  # fmt: skip
    yield from session.transactions.run(table.truncate)
    yield session.done(frame, None, "truncate")
    return None
