"""INSERT, UPDATE, DELETE, TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.conversion import assigner
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.engine.transaction import Transaction
from mssql_cdc.sandbox.engine.types import SqlType
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.expressions.base import Expr, Fn, coerce, hoist
from mssql_cdc.sandbox.exec.flow import Steps
from mssql_cdc.sandbox.exec.query.operators import Operator, gather
from mssql_cdc.sandbox.exec.query.sargs import conjuncts
from mssql_cdc.sandbox.exec.query.scans import Access, scan_entries
from mssql_cdc.sandbox.exec.query.sources import SourcePlanner, table_fields
from mssql_cdc.sandbox.exec.scope import Field, Scope
from mssql_cdc.sandbox.exec.statements import triggers
from mssql_cdc.sandbox.exec.statements.output import OutputPlan, compile_output
from mssql_cdc.sandbox.tsql import ast
from mssql_cdc.sandbox.tsql import statements as st

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.compiler import Compiler
    from mssql_cdc.sandbox.exec.routine import Frame


def target_table(compiler: Compiler, name: ast.Name) -> Table:
    """The table that a statement changes; views over one table are followed, system objects refused."""
    if name[0].startswith("@"):
        return compiler.variables.table(name[0]).table
    compiler.reads_tables = True
    found = compiler.names.find(name)
    if isinstance(found, Table):
        return found
    if found is not None and found.type_code == "V":
        raise SqlError(
            4406, f"Update or insert of view or function '{'.'.join(name)}' failed: this server changes tables only, "
            "not views."
        )  # fmt: skip
    if found is None and compiler.session.server.catalog is not None:
        place = compiler.names.place(name)
        if compiler.session.server.catalog.view(place.database, place.schema, place.name) is not None:
            raise SqlError(259, "Ad hoc updates to system catalogs are not allowed.")
    raise error(208, name=".".join(name))


def stored(expr: Expr, table: Table, place: int) -> Fn:
    """The value of an expression as the column keeps it; 2628 where text would be cut."""
    column = table.columns[place]
    inner = expr.fn
    if expr.null:
        return lambda _row, _context: None
    if _as_is(expr.type, column.type):
        return inner
    assign = assigner(expr.type, column.type, table=table.long_name, column=column.name)
    if expr.literal:
        try:
            value = None if expr.value is None else assign(expr.value)
        except SqlError:
            pass  # the statement raises it when it runs
        else:
            return lambda _row, _context: value

    def fn(row: tuple, context: Context) -> Any:
        value = inner(row, context)
        return None if value is None else assign(value)

    return fn


def _as_is(source: SqlType, target: SqlType) -> bool:
    if source == target:
        return True
    if source.name == target.name:
        return source.name in ("nvarchar", "varbinary") and 0 < source.length <= target.length
    return source.name in ("tinyint", "smallint", "int") and target.name == "bigint"


@dataclass(frozen=True, slots=True)
class InsertPlan:
    """A compiled INSERT. `rows` builds complete rows from source rows; `values` are VALUES rows of compiled cells."""

    table: Table
    source: Operator | None
    values: tuple[tuple[Fn, ...], ...]
    cells: tuple[Callable[[tuple, Context], Any], ...]
    identity: int
    explicit_identity: bool
    output: OutputPlan | None
    top: Fn | None


def insert_columns(table: Table, names: Sequence[str], *, implicit: bool = True) -> list[int]:
    """Places of the columns that a statement fills: those named, or all that can be written."""
    if not names:
        if not implicit:
            return []
        return [
            place for place, col in enumerate(table.columns)
            if col.writable and col.identity is None and not col.hidden
        ]  # fmt: skip
    places: list[int] = []
    for name in names:
        place = table.ordinal(name)
        if place is None:
            raise error(207, name=name)
        if place in places:
            raise error(264, name=name)
        column = table.columns[place]
        if column.computed is not None:
            raise error(271, name=column.name)
        if column.is_rowversion:
            raise error(273)
        places.append(place)
    return places


def compile_insert(compiler: Compiler, node: st.Insert) -> InsertPlan:
    """Compile INSERT … VALUES, SELECT or DEFAULT VALUES."""
    session = compiler.session
    table = target_table(compiler, node.target)
    on = session.identity_insert is table
    names = node.columns
    places = insert_columns(table, names, implicit=node.source is not None)
    identity = next((place for place, col in enumerate(table.columns) if col.identity is not None), -1)
    explicit = identity in places
    if explicit and not on:
        raise error(544, table=table.name)
    if on and not names and identity >= 0:
        raise SqlError(8101, f"An explicit value for the identity column in table '{table.name}' can only be "
                       "specified when a column list is used and IDENTITY_INSERT is ON.")  # fmt: skip
    if on and not explicit and identity >= 0:
        raise error(545, table=table.name)
    output = compile_output(compiler, node.output, table, inserted=True, deleted=False) if node.output else None
    top = hoist(coerce(compiler.value(node.top.count), t.BIGINT)).fn if node.top is not None else None
    source = node.source
    if isinstance(source, ast.Query) and isinstance(source.body, ast.Values) and not source.order:
        values = _values(compiler, table, places, source.body, named=bool(names))
        return InsertPlan(table, None, values, (), identity, explicit, output, top)
    if source is None:
        return InsertPlan(table, None, (_complete(compiler, table, {}),), (), identity, explicit, output, top)
    assert isinstance(source, ast.Query)
    plan = compiler.query(source)
    cells = row_builder(compiler, table, places, plan.fields, named=bool(names))
    return InsertPlan(table, plan, (), cells, identity, explicit, output, top)


def row_builder(
    compiler: Compiler, table: Table, places: Sequence[int], fields: Sequence[Field], *, named: bool
) -> tuple[Fn, ...]:
    """Cells of a complete row made from rows with `fields` (a query's or a procedure's)."""
    if len(fields) != len(places):
        if not named:
            raise error(213)
        raise error(121 if len(fields) > len(places) else 120)
    given: dict[int, Fn] = {}
    for number, (place, field) in enumerate(zip(places, fields, strict=True)):
        source = Expr(field.type, _cell(number), field.nullable, null=field.special == "null")
        given[place] = stored(source, table, place)
    return _complete(compiler, table, given)


def _cell(number: int) -> Fn:
    return lambda row, _context: row[number]


def _values(
    compiler: Compiler, table: Table, places: Sequence[int], body: ast.Values, *, named: bool
) -> tuple[tuple[Fn, ...], ...]:
    rows = []
    for row in body.rows:
        if len(row) != len(places):
            if not named:
                raise error(213)
            raise error(109 if len(row) < len(places) else 110)
        given: dict[int, Fn] = {}
        for place, node in zip(places, row, strict=True):
            if isinstance(node, ast.Literal) and node.kind == "default":
                continue
            given[place] = stored(compiler.value(node), table, place)
        rows.append(_complete(compiler, table, given))
    return tuple(rows)


def _nothing(_row: tuple, _context: Context) -> None:
    return None


def _complete(_compiler: Compiler, table: Table, given: dict[int, Fn]) -> tuple[Fn, ...]:
    """A cell for every column: what is given, else its default, else NULL."""
    cells: list[Fn] = []
    for place, column in enumerate(table.columns):
        if place in given:
            cells.append(given[place])
        elif column.default is not None and column.computed is None:
            cells.append(_default(column.default.evaluate))
        else:
            cells.append(_nothing)
    return tuple(cells)


def _default(evaluate: Callable[[Any], Any]) -> Fn:
    return lambda _row, context: evaluate(context)


def insert(frame: Frame, node: st.Insert) -> Steps:
    """Run an INSERT."""
    if isinstance(node.source, st.Statement):
        from mssql_cdc.sandbox.exec.statements.insert_execute import insert_execute

        return (yield from insert_execute(frame, node))
    session = frame.session
    plan = frame.compiled(node, lambda compiler: compile_insert(compiler, node))
    if (session.identity_insert is plan.table) is not plan.explicit_identity and plan.identity >= 0:
        frame.routine.plans.pop(id(node), None)
        plan = frame.compiled(node, lambda compiler: compile_insert(compiler, node))

    def work(transaction: Transaction) -> list[tuple]:
        context = frame.context(transaction)
        if plan.source is None:
            rows = [tuple([cell((), context) for cell in cells]) for cells in plan.values]
        else:
            cells = plan.cells
            rows = [tuple([cell(row, context) for cell in cells]) for row in gather(plan.source.open(context))]
        if plan.top is not None:
            rows = rows[: plan.top((), context)]
        rows = insert_rows(session, plan, transaction, rows)
        if plan.output is not None:
            plan.output.store(context, "INSERT", rows, None)
        return rows

    table = plan.table
    then = triggers.after(frame, table, "INSERT", lambda rows: (rows, []), ()) if table.triggers else None
    rows = yield from session.transactions.run(work, then)
    yield from finish(frame, "insert", len(rows), plan.output, rows, None)
    return None


def finish(
    frame: Frame, action: str, count: int, output: OutputPlan | None, new: list[tuple] | None, old: list[tuple] | None,
    joined: list[tuple] | None = None,
) -> Steps:  # fmt: skip
    """OUTPUT rows and the row count of a change."""
    session = frame.session
    if output is not None and output.columns:
        yield from output.emit(output.rows(frame.context(), action.upper(), new, old, joined))
    session.row_count = count
    yield session.done(frame, count, action)
    return None


def insert_rows(session: Any, plan: InsertPlan, transaction: Transaction, rows: list[tuple]) -> list[tuple]:
    """Store complete rows, giving identity values; the rows as stored, where somebody wants them."""
    table, place = plan.table, plan.identity
    if place >= 0:
        identity = table.columns[place].identity
        assert identity is not None
        if plan.explicit_identity:
            for row in rows:
                identity.note(row[place])
            last = rows[-1][place] if rows else None
        else:
            numbered = []
            for row in rows:
                cells = list(row)
                cells[place] = table.next_identity()
                numbered.append(tuple(cells))
            rows = numbered
            last = rows[-1][place] if rows else None
        if last is not None:
            session.note_identity(last)
    rowids = [table.insert(transaction, rows[0])] if len(rows) == 1 else table.insert_many(transaction, rows)
    if plan.output is None and not table.triggers:
        return rows
    return [_stored_row(table, rowid) for rowid in rowids]


def _stored_row(table: Table, rowid: int) -> tuple:
    from mssql_cdc.sandbox.engine.versions import newest

    row = newest(table.heap[rowid])
    assert row is not None
    return row


# ---- UPDATE and DELETE -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """The rows that UPDATE or DELETE touches: a scan of the target, or a plan over FROM that gives row ids.

    `rows` gives (row id, row of the target, whole joined row).
    """

    table: Table
    entries: Callable[[Context], list[tuple[int, tuple, tuple]]]
    scope: Scope


def compile_target(
    compiler: Compiler, name: ast.Name, source: ast.TableSource | None, where: ast.Expression | None,
    hints: Sequence[str],
) -> Target:  # fmt: skip
    """Find the target of UPDATE or DELETE; with FROM it may be named by its alias there."""
    lowered = frozenset(hint.lower() for hint in hints)
    if source is None:
        table = target_table(compiler, name)
        return single_target(compiler, table, "", where, lowered)
    from mssql_cdc.sandbox.exec.statements.joined import joined_target

    return joined_target(compiler, name, source, where, lowered)


def single_target(
    compiler: Compiler, table: Table, alias: str, where: ast.Expression | None, hints: frozenset[str]
) -> Target:
    """The target of a statement that reads no other table."""
    planner = SourcePlanner(compiler, None)
    qualifier = (
        (alias or table.name,) if table.private or alias else (table.database.name, table.schema.name, table.name)
    )
    scope = planner.scope(table_fields(table, qualifier))
    conditions = conjuncts(where)
    access, covered, _ = planner.access(table, scope, conditions, (), prefer_order=False)
    rest = [node for node in conditions if not any(node is done for done in covered)]
    checks = [compiler.condition(node, scope).fn for node in rest]
    return Target(table, entries_of(table, access, hints, checks), scope)


def entries_of(
    table: Table, access: Access, hints: frozenset[str], checks: Sequence[Fn]
) -> Callable[[Context], list[tuple[int, tuple, tuple]]]:
    """Rows of a table that pass all checks, with their row ids."""

    def entries(context: Context) -> list[tuple[int, tuple, tuple]]:
        found: list[tuple[int, tuple, tuple]] = []
        for slice_ in scan_entries(table, context, access, hints):
            for rowid, row in slice_:
                if all(check(row, context) is True for check in checks):
                    found.append((rowid, row, row))
        return found

    return entries


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """A compiled UPDATE: new cells by place, variables set on the way."""

    target: Target
    cells: tuple[tuple[int, Fn], ...]
    variables: tuple[tuple[int, Fn, int], ...]
    output: OutputPlan | None
    top: Fn | None


def compile_update(compiler: Compiler, node: st.Update) -> UpdatePlan:
    """Compile an UPDATE."""
    from mssql_cdc.sandbox.exec.query.planner import with_common_tables

    with with_common_tables(compiler, node.ctes):
        target = compile_target(compiler, node.target, node.source, node.where, node.hints)
        cells, variables = assignments(compiler, node.assignments, target.table, target.scope)
        output = (
            compile_output(compiler, node.output, target.table, inserted=True, deleted=True, source=target.scope)
            if node.output else None
        )  # fmt: skip
    top = hoist(coerce(compiler.value(node.top.count), t.BIGINT)).fn if node.top is not None else None
    return UpdatePlan(target, cells, variables, output, top)


def assignments(
    compiler: Compiler, nodes: Sequence[st.Assignment], table: Table, scope: Scope
) -> tuple[tuple[tuple[int, Fn], ...], tuple[tuple[int, Fn, int], ...]]:
    """SET elements: (place, new value) and (variable slot, value, place of the column it follows or -1)."""
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
        place = table.ordinal(node.column[-1])
        if place is None:
            raise error(207, name=node.column[-1])
        column = table.columns[place]
        if place in cells:
            raise error(264, name=column.name)
        if column.computed is not None:
            raise error(271, name=column.name)
        if column.is_rowversion:
            raise error(272)
        if column.identity is not None:
            raise SqlError(8102, f"Cannot update identity column '{column.name}'.")
        if isinstance(value, ast.Literal) and value.kind == "default":
            cells[place] = _default(column.default.evaluate) if column.default is not None else _nothing
            continue
        if node.operator != "=":
            value = ast.Binary(node.operator[:-1], ast.ColumnRef(node.column), value)
        cells[place] = stored(compiler.value(value, scope), table, place)
        if node.variable:
            slot = compiler.variables.scalar(node.variable)
            assert slot.type is not None
            source = Expr(column.type, _cell(place))
            variables.append((slot.place, coerce(source, slot.type).fn, place))
    return tuple(cells.items()), tuple(variables)


def changed_rows(
    entries: Sequence[tuple[int, tuple, tuple]], cells: Sequence[tuple[int, Fn]],
    variables: Sequence[tuple[int, Fn, int]], context: Context,
) -> list[tuple[int, tuple]]:  # fmt: skip
    """(row id, new row) for each entry; each row once, whatever a join says."""
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


def update(frame: Frame, node: st.Update) -> Steps:
    """Run an UPDATE."""
    session = frame.session
    plan = frame.compiled(node, lambda compiler: compile_update(compiler, node))

    def work(transaction: Transaction) -> tuple[list[tuple], list[tuple], list[tuple]]:
        context = frame.context(transaction)
        entries = plan.target.entries(context)
        if plan.top is not None:
            entries = entries[: plan.top((), context)]
        changes = changed_rows(entries, plan.cells, plan.variables, context)
        pairs = table.update(transaction, changes)
        joined = [entry[2] for entry in entries]
        new, old = [after for _, after in pairs], [before for before, _ in pairs]
        if plan.output is not None:
            plan.output.store(context, "UPDATE", new, old, joined)
        return new, old, joined

    table = plan.target.table
    columns = [table.columns[place].name for place, _ in plan.cells]
    then = triggers.after(frame, table, "UPDATE", lambda result: result[:2], columns) if table.triggers else None
    new, old, joined = yield from session.transactions.run(work, then)
    yield from finish(frame, "update", len(new), plan.output, new, old, joined)
    return None


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """A compiled DELETE."""

    target: Target
    output: OutputPlan | None
    top: Fn | None


def compile_delete(compiler: Compiler, node: st.Delete) -> DeletePlan:
    """Compile a DELETE."""
    from mssql_cdc.sandbox.exec.query.planner import with_common_tables

    with with_common_tables(compiler, node.ctes):
        target = compile_target(compiler, node.target, node.source, node.where, node.hints)
        output = (
            compile_output(compiler, node.output, target.table, inserted=False, deleted=True, source=target.scope)
            if node.output else None
        )  # fmt: skip
    top = hoist(coerce(compiler.value(node.top.count), t.BIGINT)).fn if node.top is not None else None
    return DeletePlan(target, output, top)


def delete(frame: Frame, node: st.Delete) -> Steps:
    """Run a DELETE."""
    session = frame.session
    plan = frame.compiled(node, lambda compiler: compile_delete(compiler, node))

    def work(transaction: Transaction) -> tuple[list[tuple], list[tuple]]:
        context = frame.context(transaction)
        found: dict[int, tuple] = {}
        for rowid, _, whole in plan.target.entries(context):
            found.setdefault(rowid, whole)
        rowids = list(found)
        if plan.top is not None:
            rowids = rowids[: plan.top((), context)]
        gone = table.delete(transaction, rowids)
        joined = [found[rowid] for rowid in rowids]
        if plan.output is not None:
            plan.output.store(context, "DELETE", None, gone, joined)
        return gone, joined

    table = plan.target.table
    then = triggers.after(frame, table, "DELETE", lambda result: ([], result[0]), ()) if table.triggers else None
    gone, joined = yield from session.transactions.run(work, then)
    yield from finish(frame, "delete", len(gone), plan.output, None, gone, joined)
    return None


def truncate(frame: Frame, node: st.Truncate) -> Steps:
    """TRUNCATE TABLE."""
    session = frame.session
    table = frame.compiled(node, lambda compiler: target_table(compiler, node.table))
    yield from session.transactions.run(table.truncate)
    yield session.done(frame, None, "truncate")
    return None
