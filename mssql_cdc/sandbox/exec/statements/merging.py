"""MERGE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.engine.transaction import Transaction
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.expressions.base import Fn
from mssql_cdc.sandbox.exec.flow import Steps
from mssql_cdc.sandbox.exec.query.commontables import with_common_tables
from mssql_cdc.sandbox.exec.query.operators import Operator, gather
from mssql_cdc.sandbox.exec.query.scans import Access, scan_entries
from mssql_cdc.sandbox.exec.query.sources import SourcePlanner
from mssql_cdc.sandbox.exec.scope import Field, table_fields
from mssql_cdc.sandbox.exec.statements import triggers
from mssql_cdc.sandbox.exec.statements.changes import assignments
from mssql_cdc.sandbox.exec.statements.instead import instead_of
from mssql_cdc.sandbox.exec.statements.output import OutputPlan, compile_output
from mssql_cdc.sandbox.exec.statements.targets import target_table
from mssql_cdc.sandbox.exec.statements.updatable import ROWID
from mssql_cdc.sandbox.exec.tables.cells import complete, insert_columns, stored
from mssql_cdc.sandbox.exec.tables.rows import insert_rows
from mssql_cdc.sandbox.tsql import ast
from mssql_cdc.sandbox.tsql import statements as st

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.compiler import Compiler
    from mssql_cdc.sandbox.exec.routine import Frame


@dataclass(frozen=True, slots=True)
class Clause:
    """A compiled WHEN clause. Functions take the joined row: target columns, row id, source columns."""

    match: str
    condition: Fn | None
    action: str
    cells: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A compiled MERGE."""

    table: Table
    source: Operator
    matches: Fn
    clauses: tuple[Clause, ...]
    identity: int
    explicit: bool
    output: OutputPlan | None
    hints: frozenset[str]


def compile_merge(compiler: Compiler, node: st.Merge) -> MergePlan:
    """Compile a MERGE; 10739 style errors for columns that cannot be written come from the column checks."""
    with with_common_tables(compiler, node.ctes):
        table = target_table(compiler, node.target, *sorted({clause.action.upper() for clause in node.clauses}))
        for clause in node.clauses:
            if instead_of(compiler.session, table, clause.action.upper()) is not None:
                raise SqlError(
                    5316, f"The target '{table.full_name}' of the MERGE statement has an INSTEAD OF trigger, which "
                          "this "
                    "server does not fire for MERGE. Use INSERT, UPDATE and DELETE."
                )  # fmt: skip
        planner = SourcePlanner(compiler, None)
        source = planner.plan(node.source, None, None, prefer_order=False)
        qualifier = (node.alias or table.name,)
        target_fields = [*table_fields(table, qualifier), Field(ROWID, t.BIGINT, True, (ROWID,), hidden=True)]
        scope = planner.scope([*target_fields, *source.fields])
        matches = compiler.condition(node.condition, scope).fn
        clauses = []
        explicit = False
        identity = next((place for place, col in enumerate(table.columns) if col.identity is not None), -1)
        for clause in node.clauses:
            condition = compiler.condition(clause.condition, scope).fn if clause.condition is not None else None
            cells: tuple[Any, ...] = ()
            if clause.action == "update":
                cells, _ = assignments(compiler, clause.assignments, table, scope)
            elif clause.action == "insert":
                places = insert_columns(table, clause.columns, implicit=clause.values is not None)
                explicit = explicit or identity in places
                if explicit and compiler.session.identity_insert is not table:
                    raise error(544, table=table.name)
                given = _given(compiler, table, places, clause.values or (), scope)
                cells = complete(table, given)
            clauses.append(Clause(clause.match, condition, clause.action, cells))
        output = (
            compile_output(
                compiler,
                node.output,
                table,
                inserted=True,
                deleted=True,
                source=planner.scope(source.fields),
                merge=True,
            )
            if node.output
            else None
        )
    hints = frozenset(hint.lower() for hint in node.hints)
    return MergePlan(table, source, matches, tuple(clauses), identity, explicit, output, hints)


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
    """What a MERGE does, in the order in which it is reported."""

    actions: list[str]
    new: list[tuple | None]
    old: list[tuple | None]
    joined: list[tuple]


def _decide(plan: MergePlan, joined: tuple, match: str, context: Context) -> Clause | None:
    for clause in plan.clauses:
        if clause.match == match and (clause.condition is None or clause.condition(joined, context) is True):
            return clause
    return None


def _work(frame: Frame, plan: MergePlan, transaction: Transaction) -> Changes:
    context = frame.context(transaction)
    table = plan.table
    entries = [entry for slice_ in scan_entries(table, context, Access(), plan.hints) for entry in slice_]
    source = gather(plan.source.open(context))
    blank_target = (None,) * (len(table.columns) + 1)
    blank_source = (None,) * len(plan.source.fields)
    touched: set[int] = set()
    matched: set[int] = set()
    updates: list[tuple[int, tuple, tuple]] = []
    deletes: list[tuple[int, tuple, tuple]] = []
    inserts: list[tuple[tuple, tuple]] = []

    def act(clause: Clause | None, rowid: int, row: tuple, joined: tuple, from_source: tuple) -> None:
        if clause is None:
            return
        if rowid in touched:
            raise error(8672)
        touched.add(rowid)
        if clause.action == "delete":
            deletes.append((rowid, row, from_source))
            return
        fresh = list(row)
        for place, fn in clause.cells:
            fresh[place] = fn(joined, context)
        updates.append((rowid, tuple(fresh), from_source))

    for other in source:
        hit = False
        for rowid, row in entries:
            joined = (*row, rowid, *other)
            if plan.matches(joined, context) is True:
                hit = True
                matched.add(rowid)
                act(_decide(plan, joined, "matched", context), rowid, row, joined, other)
        if not hit:
            joined = blank_target + other
            clause = _decide(plan, joined, "target", context)
            if clause is not None:
                inserts.append((tuple([cell(joined, context) for cell in clause.cells]), other))
    for rowid, row in entries:
        if rowid not in matched:
            joined = (*row, rowid, *blank_source)
            act(_decide(plan, joined, "source", context), rowid, row, joined, blank_source)
    return _apply(frame, plan, transaction, updates, deletes, inserts)


def _apply(
    frame: Frame, plan: MergePlan, transaction: Transaction, updates: list[tuple[int, tuple, tuple]],
    deletes: list[tuple[int, tuple, tuple]], inserts: list[tuple[tuple, tuple]],
) -> Changes:  # fmt: skip
    table = plan.table
    gone = table.delete(transaction, [rowid for rowid, _, _ in deletes], statement="MERGE")
    pairs = table.update(transaction, [(rowid, new) for rowid, new, _ in updates], statement="MERGE")
    fresh = insert_rows(
        frame.session, table, transaction, [row for row, _ in inserts],
        place=plan.identity, explicit=plan.explicit, wanted=plan.output is not None,
    ) if inserts else []  # fmt: skip
    changes = Changes(
        ["INSERT"] * len(fresh) + ["UPDATE"] * len(pairs) + ["DELETE"] * len(gone),
        [*fresh, *(new for _, new in pairs), *([None] * len(gone))],
        [*([None] * len(fresh)), *(old for old, _ in pairs), *gone],
        [*(other for _, other in inserts), *(other for _, _, other in updates), *(other for _, _, other in deletes)],
    )
    if plan.output is not None:
        plan.output.store(frame.context(transaction), "", changes.new, changes.old, changes.joined, changes.actions)
    return changes


def merge(frame: Frame, node: st.Merge) -> Steps:
    """Run a MERGE."""
    session = frame.session
    plan = frame.compiled(node, lambda compiler: compile_merge(compiler, node))
    then = _triggers(frame, plan) if plan.table.triggers else None
    changes: Changes = yield from session.transactions.run(lambda tx: _work(frame, plan, tx), then)
    count = len(changes.actions)
    if plan.output is not None and plan.output.columns:
        rows = plan.output.rows(
            frame.context(),
            "",
            changes.new,
            changes.old,
            changes.joined,
            None,
            changes.actions,
        )
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
                yield from step(changes)
        return None

    return fire
