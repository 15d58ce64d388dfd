"""Storing complete rows, and generating identity values."""

from __future__ import annotations

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.versions import newest
from mssql_sandbox.exec.session_state import SessionState


def insert_rows(
    session: SessionState, table: Table, transaction: Transaction, rows: list[tuple],
    *, place: int, explicit: bool, wanted: bool = False,
) -> list[tuple]:  # fmt: skip
    """Store complete rows; returns them as stored if they are `wanted` or the table has triggers.

    `place` is the identity column's position, -1 if there is none; its values are generated unless `explicit`.
    """
    if place >= 0:
        identity = table.columns[place].identity
        assert identity is not None
        if explicit:
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
    if not wanted and not table.triggers:
        return rows
    return [_stored_row(table, rowid) for rowid in rowids]


def _stored_row(table: Table, rowid: int) -> tuple:
    row = newest(table.heap[rowid])
    assert row is not None
    return row
