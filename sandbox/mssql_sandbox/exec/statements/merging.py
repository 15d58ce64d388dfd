"""MERGE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Fn
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.commontables import with_common_tables
from mssql_sandbox.exec.query.matching import Keys, Matcher
from mssql_sandbox.exec.query.operators import gather
from mssql_sandbox.exec.query.sargs import conjuncts
from mssql_sandbox.exec.query.sources import SourcePlanner
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.exec.statements import triggers
from mssql_sandbox.exec.statements.changes import RowLimit, assignments, row_limit
from mssql_sandbox.exec.statements.instead import instead_of
from mssql_sandbox.exec.statements.output import OutputPlan, compile_output
from mssql_sandbox.exec.statements.updatable import Source, target_source
from mssql_sandbox.exec.statements.view_columns import base_column, check_rows
from mssql_sandbox.exec.tables.cells import complete, insert_columns, stored
from mssql_sandbox.exec.tables.rows import insert_rows
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


@dataclass(frozen=True, slots=True)
class Clause:
    """A compiled WHEN clause. Functions take the joined row: the target's, with row id, and the source's."""

    match: str
    condition: Fn | None
    action: str
    cells: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A compiled MERGE. Rows of `target` end with the row of the table that is changed, and its row id."""

    table: Table
    target: Operator
    source: Operator
    keys: Keys
    clauses: tuple[Clause, ...]
    identity: int
    explicit: bool
    output: OutputPlan | None
    checks: tuple[Fn, ...]
    top: RowLimit


def compile_merge(compiler: Compiler, node: st.Merge) -> MergePlan:
    """Compile a MERGE; errors such as 10739 for columns that cannot be written come from the column checks."""
    with with_common_tables(compiler, node.ctes):
        found = _target(compiler, node)
        table, target = found.table, found.leaf.operator
        assert target is not None
        planner = SourcePlanner(compiler, None)
        source = planner.plan(node.source, None, None, prefer_order=False)
        keys = Matcher(compiler, planner.scope).keys(target.fields, source.fields, conjuncts(node.condition))
        scope = planner.scope([*target.fields, *source.fields])
        clauses = tuple(_clause(compiler, clause, found, node, scope) for clause in node.clauses)
        identity = next((place for place, col in enumerate(table.columns) if col.identity is not None), -1)
        explicit = any(
            clause.action == "insert" and identity in _places(compiler, clause, found, node) for clause in node.clauses
        )
        if explicit and compiler.session.identity_insert is not table:
            raise error(544, table=table.name)
        output = None
        if node.output:
            joined = planner.scope(source.fields)
            output = compile_output(
                compiler, node.output, table, inserted=True, deleted=True, source=joined, merge=True
            )
    top = row_limit(compiler, node.top)
    return MergePlan(table, target, source, keys, clauses, identity, explicit, output, found.checks, top)


def _target(compiler: Compiler, node: st.Merge) -> Source:
    """The target: a table, or a view or common table expression over one."""
    name = node.target
    bare = ast.VariableTable(name[0], node.alias) if name[0].startswith("@") else ast.NamedTable(name, node.alias)
    wanted = [set_.column[-1] for clause in node.clauses for set_ in clause.assignments if set_.column]
    wanted += [column for clause in node.clauses for column in clause.columns]
    hints = frozenset(hint.lower() for hint in node.hints)
    actions = sorted({clause.action.upper() for clause in node.clauses})
    found = next(target_source(compiler, bare, hints, wanted or None, action) for action in actions)
    for action in actions:
        if instead_of(compiler.session, found.table, action) is not None:
            raise SqlError(
                5316, f"The target '{found.table.full_name}' of the MERGE statement has an INSTEAD OF trigger, which "
                "this server does not fire for MERGE. Use INSERT, UPDATE and DELETE."
            )  # fmt: skip
    return found


def _clause(compiler: Compiler, clause: st.MergeClause, found: Source, node: st.Merge, scope: Scope) -> Clause:
    condition = compiler.condition(clause.condition, scope).fn if clause.condition is not None else None
    cells: tuple[Any, ...] = ()
    if clause.action == "update":
        cells, _ = assignments(compiler, clause.assignments, found.table, scope, found.names)
    elif clause.action == "insert":
        places = _places(compiler, clause, found, node)
        cells = complete(found.table, _given(compiler, found.table, places, clause.values or (), scope))
    return Clause(clause.match, condition, clause.action, cells)


def _places(compiler: Compiler, clause: st.MergeClause, found: Source, node: st.Merge) -> list[int]:
    """The columns that an INSERT clause fills."""
    names: Sequence[str] = clause.columns
    if found.names is not None:
        shown = names or [field.name for field in found.leaf.fields if not field.hidden]
        names = [base_column(found.names, name, compiler, node.target[-1]) for name in shown]
    return insert_columns(found.table, names, implicit=clause.values is not None)


def _given(
    compiler: Compiler, table: Table, places: Sequence[int], values: Sequence[ast.Expression], scope: Any
) -> dict[int, Fn]:
    if len(values) != len(places):
        raise error(109 if len(values) < len(places) else 110)
    given: dict[int, Fn] = {}
    for place, node in zip(places, values, strict=True):
        if not (isinstance(node, ast.Literal) and node.kind == "default"):
            given[place] = stored(compiler.value(node, scope), table, place)
    return given


@dataclass(slots=True)
class Changes:
    """The changes of a MERGE, in the order in which they are reported."""

    actions: list[str]
    new: list[tuple | None]
    old: list[tuple | None]
    joined: list[tuple]


@dataclass(slots=True)
class _Change:
    """One row to change: its id and row (-1 and empty for a new one), its change, the source's row."""

    action: str
    rowid: int
    row: tuple
    other: tuple


def _decide(plan: MergePlan, joined: tuple, match: str, context: Context) -> Clause | None:
    for clause in plan.clauses:
        if clause.match == match and (clause.condition is None or clause.condition(joined, context) is True):
            return clause
    return None


def _candidates(plan: MergePlan, targets: list[tuple], context: Context) -> Callable[[tuple], list[tuple]]:
    """The target rows that match a source row: found by equal keys if there are some, otherwise among all."""
    keys = plan.keys
    found: dict[Any, list[tuple]] = {}
    if keys.left is not None:
        for row in targets:
            key = keys.left(row, context)
            if key is not None:
                found.setdefault(key, []).append(row)

    def matching(other: tuple) -> list[tuple]:
        near = targets if keys.right is None else found.get(keys.right(other, context), [])
        if keys.residual is None:
            return near
        return [row for row in near if keys.residual(row + other, context) is True]

    return matching


def _decisions(plan: MergePlan, context: Context) -> list[_Change]:
    """The change of each row; 8672 if a row would be changed twice."""
    targets, sources = gather(plan.target.open(context)), gather(plan.source.open(context))
    width = len(plan.table.columns)
    blank_target, blank_source = (None,) * len(plan.target.fields), (None,) * len(plan.source.fields)
    matching = _candidates(plan, targets, context)
    touched: set[int] = set()
    matched: set[int] = set()
    changes: list[_Change] = []

    def act(clause: Clause | None, target: tuple, other: tuple) -> None:
        if clause is None:
            return
        rowid, row = target[-1], target[-1 - width : -1]
        if rowid in touched:
            raise error(8672)
        touched.add(rowid)
        if clause.action == "update":
            fresh = list(row)
            for place, fn in clause.cells:
                fresh[place] = fn(target + other, context)
            row = tuple(fresh)
        changes.append(_Change(clause.action, rowid, row, other))

    for other in sources:
        hits = matching(other)
        for target in hits:
            matched.add(target[-1])
            act(_decide(plan, target + other, "matched", context), target, other)
        joined = blank_target + other
        clause = None if hits else _decide(plan, joined, "target", context)
        if clause is not None:
            changes.append(_Change("insert", -1, tuple([cell(joined, context) for cell in clause.cells]), other))
    for target in targets:
        if target[-1] not in matched:
            act(_decide(plan, target + blank_source, "source", context), target, blank_source)
    return plan.top(changes, context)


def apply_merge(plan: MergePlan, context: Context) -> Changes:
    """Change the table."""
    table, transaction = plan.table, context.transaction
    assert transaction is not None
    decided = _decisions(plan, context)
    inserts, updates, deletes = ([one for one in decided if one.action == a] for a in ("insert", "update", "delete"))
    gone = table.delete(transaction, [one.rowid for one in deletes], statement="MERGE")
    pairs = table.update(transaction, [(one.rowid, one.row) for one in updates], statement="MERGE")
    fresh = insert_rows(
        context.session, table, transaction, [one.row for one in inserts],
        place=plan.identity, explicit=plan.explicit, wanted=plan.output is not None,
    ) if inserts else []  # fmt: skip
    check_rows(plan.checks, [*fresh, *(new for _, new in pairs)], context)
    changes = Changes(
        ["INSERT"] * len(fresh) + ["UPDATE"] * len(pairs) + ["DELETE"] * len(gone),
        [*fresh, *(new for _, new in pairs), *([None] * len(gone))],
        [*([None] * len(fresh)), *(old for old, _ in pairs), *gone],
        [one.other for kind in (inserts, updates, deletes) for one in kind],
    )
    if plan.output is not None:
        plan.output.store(context, "", changes.new, changes.old, changes.joined, changes.actions)
    return changes


def merge(frame: Frame, node: st.Merge) -> Steps:
    """Run a MERGE."""
    session = frame.session
    plan = frame.compiled(node, lambda compiler: compile_merge(compiler, node))
    for clause in plan.clauses:
        triggers.refuse_output(plan.table, clause.action.upper(), plan.output)
    then = _triggers(frame, plan) if plan.table.triggers else None
    changes: Changes = yield from session.transactions.run(lambda tx: apply_merge(plan, frame.context(tx)), then)
    count = len(changes.actions)
    if plan.output is not None and plan.output.columns:
        rows = plan.output.rows(
            frame.context(), "", changes.new, changes.old, changes.joined, None, changes.actions
        )  # fmt: skip
        yield from plan.output.emit(rows)
    session.row_count = count
    yield session.done(frame, count, "merge")
    return None


def _triggers(frame: Frame, plan: MergePlan) -> Any:
    """One firing per kind of change that took place."""

    def fire(changes: Changes) -> Steps:
        for action in ("INSERT", "UPDATE", "DELETE"):
            places = [place for place, done in enumerate(changes.actions) if done == action]
            if places:
                new = [row for place in places if (row := changes.new[place]) is not None]
                old = [row for place in places if (row := changes.old[place]) is not None]
                columns = [col.name for col in plan.table.columns]
                step = triggers.after(frame, plan.table, action, lambda _r, new=new, old=old: (new, old), columns)
                if step is not None:
                    yield from step(changes)
        return None

    return fire
