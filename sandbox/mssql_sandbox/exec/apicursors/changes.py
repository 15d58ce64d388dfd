"""sp_cursor: changing the table through a cursor's fetch buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mssql_sandbox.engine.conversion import assigner
from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.engine.lock_modes import LockMode
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.storage.views import open_view
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import declaration
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.apicursors.cursor import ApiCursor, ConcurrencyOption
from mssql_sandbox.exec.apicursors.messages import cursor_error
from mssql_sandbox.exec.apicursors.rows import Keyset
from mssql_sandbox.exec.calls.texts import run_text
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.statements import triggers


def writable(cursor: ApiCursor) -> Keyset:
    """The rows of a cursor through which the table can be changed; 16929 for any other."""
    if cursor.concurrency & ConcurrencyOption.READ_ONLY or not isinstance(cursor.rows, Keyset):
        raise cursor_error(16929)
    return cursor.rows


def rows_meant(cursor: ApiCursor, row: int) -> list[int]:
    """Row ids of the buffer's `row`-th row; of all its rows for 0."""
    rows = writable(cursor)
    places = [cursor.place(row)] if row else range(cursor.start, cursor.start + cursor.size)
    return [rows.rowids[place] for place in places]


def _current(rows: Keyset, transaction: Transaction, rowid: int, *, check: bool) -> tuple:
    """The current row; 16947 if it is gone, 16934 if it differs from the fetched one."""
    view = open_view(transaction, rows.table.database, for_update=True)
    view.open(rows.table)
    now = rows.table.fetch(view, rowid)
    if now is None:
        raise cursor_error(16947)
    if check and rows.before.get(rowid) != now:
        raise cursor_error(16934)
    return now


def _optimistic(cursor: ApiCursor) -> bool:
    return bool(cursor.concurrency & (ConcurrencyOption.OPTIMISTIC | ConcurrencyOption.OPTIMISTIC_VALUES))


def update(session: SessionState, cursor: ApiCursor, row: int, values: Sequence[RpcParameter]) -> Steps:
    """Positioned UPDATE of the named columns."""
    rows = writable(cursor)
    table = rows.table
    cells = [_cell(table, value) for value in values]
    rowids = rows_meant(cursor, row)

    def work(transaction: Transaction) -> tuple[list[tuple], list[tuple]]:
        changes = []
        for rowid in rowids:
            fresh = list(_current(rows, transaction, rowid, check=_optimistic(cursor)))
            for place, value in cells:
                fresh[place] = value
            changes.append((rowid, tuple(fresh)))
        pairs = table.update(transaction, changes)
        for rowid, (_, new) in zip(rowids, pairs, strict=True):
            rows.before[rowid] = new
        return [new for _, new in pairs], [old for old, _ in pairs]

    names = [table.columns[place].name for place, _ in cells]
    then = triggers.after(rows.frame, table, "UPDATE", lambda result: result, names)
    new, _ = yield from session.transactions.run(work, then)
    session.row_count = len(new)
    yield session.done(rows.frame, len(new), "update")
    return None


def delete(session: SessionState, cursor: ApiCursor, row: int) -> Steps:
    """Positioned DELETE."""
    rows = writable(cursor)
    table = rows.table
    rowids = rows_meant(cursor, row)

    def work(transaction: Transaction) -> list[tuple]:
        for rowid in rowids:
            _current(rows, transaction, rowid, check=_optimistic(cursor))
        return table.delete(transaction, rowids)

    then = triggers.after(rows.frame, table, "DELETE", lambda gone: ([], gone), ())
    gone = yield from session.transactions.run(work, then)
    session.row_count = len(gone)
    yield session.done(rows.frame, len(gone), "delete")
    return None


def insert(session: SessionState, cursor: ApiCursor, values: Sequence[RpcParameter]) -> Steps:
    """INSERT into the cursor's table: named columns, or a whole statement as text."""
    table = writable(cursor).table
    if len(values) == 1 and not values[0].name and isinstance(values[0].value, str):
        yield from run_text(session, values[0].value, "", ())
        return None
    names = [table.columns[_place(table, value)].name for value in values]
    definitions = ", ".join(f"@v{n} {declaration(value.type)}" for n, value in enumerate(values))
    columns = ", ".join(f"[{name.replace(']', ']]')}]" for name in names)
    places = ", ".join(f"@v{n}" for n in range(len(values)))
    target = ".".join(f"[{part.replace(']', ']]')}]" for part in (table.database.name, table.schema.name, table.name))
    text = f"INSERT INTO {target} ({columns}) VALUES ({places})"
    unnamed = [RpcParameter("", value.type, value.value) for value in values]
    yield from run_text(session, text, definitions, unnamed)
    return None


def lock(session: SessionState, cursor: ApiCursor, row: int) -> Steps:
    """Take an update lock on rows of the buffer."""
    rows = writable(cursor)
    rowids = rows_meant(cursor, row)

    def work(transaction: Transaction) -> None:
        for rowid in rowids:
            _current(rows, transaction, rowid, check=False)
            transaction.manager.locks.acquire(transaction, rows.table.row_resource(rowid), LockMode.U)

    yield from session.transactions.run(work)
    return None


def _place(table: Table, value: RpcParameter) -> int:
    name = value.name.removeprefix("@")
    place = table.ordinal(name) if name else None
    if place is None:
        raise error(207, name=name)
    return place


def _cell(table: Table, value: RpcParameter) -> tuple[int, Any]:
    """Position and stored value of a column to be set."""
    place = _place(table, value)
    column = table.columns[place]
    if column.is_rowversion:
        raise error(272)
    if column.identity is not None:
        raise SqlError(8102, f"Cannot update identity column '{column.name}'.")
    if value.value is None:
        return place, None
    return place, assigner(value.type, column.type, table=table.long_name, column=column.name)(value.value)
