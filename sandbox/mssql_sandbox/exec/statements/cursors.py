"""T-SQL cursors: DECLARE CURSOR, OPEN, FETCH, CLOSE, DEALLOCATE. Every cursor reads its rows when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.events import Columns, Rows
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.query.masks import concealed
from mssql_sandbox.exec.query.operators import gather
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.statements.positioned import cursor_changes
from mssql_sandbox.exec.statements.queries import result_columns_of
from mssql_sandbox.exec.statements.updatable import query_source
from mssql_sandbox.tsql import statements as st


@dataclass(slots=True)
class Cursor:
    """A declared cursor; `rows` is None while it is closed, `place` the current row (-1 before the first)."""

    node: st.DeclareCursor
    frame: Frame
    scroll: bool
    columns: tuple[ResultColumn, ...] = ()
    rows: list[tuple] | None = None
    place: int = -1
    table: Any = None
    rowids: list[int] = field(default_factory=list)
    marks: dict[str, Any] = field(default_factory=dict)


def _declare(frame: Frame, node: st.DeclareCursor) -> Steps:
    session = frame.session
    scroll = not {"FAST_FORWARD", "FORWARD_ONLY"} & set(node.options) and bool(
        {"SCROLL", "STATIC", "KEYSET", "DYNAMIC", "INSENSITIVE"} & set(node.options)
    )
    cursor = Cursor(node, frame, scroll)
    if node.name.startswith("@"):
        slot = frame.routine.scope.scalar(node.name)
        frame.values[slot.place] = cursor
        return None
    if node.name.lower() in session.cursors:
        raise SqlError(16915, f"A cursor with the name '{node.name}' already exists.")
    session.cursors[node.name.lower()] = cursor
    return None
    yield


def _find(frame: Frame, name: str) -> Cursor:
    if name.startswith("@"):
        found = frame.values[frame.routine.scope.scalar(name).place]
        if found is None:
            raise SqlError(16950, f"The variable '{name}' does not currently have a cursor allocated to it.", state=2)
        return found
    found = frame.session.cursors.get(name.lower())
    if found is None:
        raise SqlError(16916, f"A cursor with the name '{name}' does not exist.")
    return found


def _act(frame: Frame, node: st.CursorAction) -> Steps:
    session = frame.session
    cursor = _find(frame, node.cursor)
    if node.action == "open":
        if cursor.rows is not None:
            raise SqlError(16905, "The cursor is already open.")
        yield from _open(frame, cursor)
    elif node.action == "close":
        if cursor.rows is None:
            raise SqlError(16917, "Cursor is not open.")
        cursor.rows = None
    elif node.cursor.startswith("@"):
        frame.values[frame.routine.scope.scalar(node.cursor).place] = None
    else:
        del session.cursors[node.cursor.lower()]
    return None


def _open(frame: Frame, cursor: Cursor) -> Steps:
    """Read all rows; with row ids if statements of the batch change rows through the cursor."""
    session = frame.session
    node = cursor.node
    if cursor_changes(node, frame.routine.statements):
        source = cursor.frame.compiled(
            node, lambda compiler: query_source(compiler, node.query, (), node.name, None, frozenset(), "UPDATE")
        )
        fields = source.leaf.fields
        assert source.leaf.operator is not None
        plan, cursor.table = source.leaf.operator, source.table
    else:
        plan = cursor.frame.compiled(node, lambda compiler: concealed(compiler.query(node.query)))
        fields = plan.fields
    rows = yield from session.transactions.run(lambda tx: gather(plan.open(cursor.frame.context(tx))))
    if cursor.table is not None:
        width = sum(not one.hidden for one in fields)
        cursor.rowids = [row[-1] for row in rows]
        rows, fields = [row[:width] for row in rows], fields[:width]
    cursor.rows, cursor.place, cursor.columns = rows, -1, result_columns_of(fields)
    session.cursor_rows = len(rows)
    return None


def _target(cursor: Cursor, direction: str, count: int) -> int:
    assert cursor.rows is not None
    if direction == "next":
        return cursor.place + 1
    if not cursor.scroll:
        raise SqlError(16911, f"fetch: The fetch type {direction} cannot be used with forward only cursors.")
    if direction == "absolute":
        return count - 1 if count > 0 else len(cursor.rows) + count
    return {"prior": cursor.place - 1, "first": 0, "last": len(cursor.rows) - 1, "relative": cursor.place + count}[
        direction
    ]


def _fetch(frame: Frame, node: st.Fetch) -> Steps:
    session = frame.session
    cursor = _find(frame, node.cursor)
    if cursor.rows is None:
        raise SqlError(16917, "Cursor is not open.")
    count = int(frame.evaluate(node.count)) if node.count is not None else 0
    place = _target(cursor, node.direction, count)
    inside = 0 <= place < len(cursor.rows)
    cursor.place = max(-1, min(place, len(cursor.rows)))
    session.fetch_status = 0 if inside else -1
    row = cursor.rows[place] if inside else None
    session.row_count = int(inside)
    if not node.into:
        yield Columns(cursor.columns)
        if row is not None:
            yield Rows([row])
        yield session.done(frame, int(inside), "fetch")
        return None
    if len(node.into) != len(cursor.columns):
        raise SqlError(
            16924, "Cursorfetch: The number of variables declared in the INTO list must match that of selected columns."
        )
    if row is not None:
        for name, value, column in zip(node.into, row, cursor.columns, strict=True):
            slot = frame.routine.scope.scalar(name)
            if slot.type is None:
                raise error(137, name=name)
            frame.values[slot.place] = None if value is None else convert(value, column.type, slot.type)
    yield from session.ended(frame)
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.DeclareCursor: _declare,
    st.CursorAction: _act,
    st.Fetch: _fetch,
}
