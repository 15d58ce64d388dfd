"""INSERT BULK and the rows that follow it.

The statement only announces the rows, which come in a separate message. Options as in BULK INSERT: without
CHECK_CONSTRAINTS, checks and foreign keys are skipped and no longer trusted; without FIRE_TRIGGERS, triggers do not
run; without KEEP_NULLS, a NULL takes the column's default. A listed identity column keeps the values sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import BulkData
from mssql_sandbox.engine.lock_modes import LockMode
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.statements import triggers
from mssql_sandbox.exec.statements.targets import target_table
from mssql_sandbox.exec.tables.cells import insert_columns, row_builder
from mssql_sandbox.exec.tables.rows import insert_rows
from mssql_sandbox.tsql import statements as st

_STREAM = "The incoming tabular data stream (TDS) protocol stream is incorrect."
# Types between which the bytes of a bulk load may differ from those announced.
_KINDS = {
    "char": "text", "varchar": "text", "text": "text", "nchar": "national", "nvarchar": "national", "ntext": "national",
    "binary": "bytes", "varbinary": "bytes", "image": "bytes", "rowversion": "bytes", "hierarchyid": "bytes",
    "geometry": "bytes", "geography": "bytes", "numeric": "decimal",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BulkTarget:
    """The load that an INSERT BULK statement announced."""

    frame: Frame
    table: Table
    places: tuple[int, ...]
    types: tuple[t.SqlType, ...]
    options: frozenset[str]


def insert_bulk(frame: Frame, node: st.InsertBulk) -> Steps:
    """Prepare for the rows. Errors such as 208 and 207 come now; clients send the rows only without an error."""
    session = frame.session
    compiler = frame.compiler()
    table = target_table(compiler, node.target, "INSERT")
    types = tuple(compiler.type_of(type_, ordinal=n) for n, (_, type_) in enumerate(node.columns, 1))
    places = insert_columns(table, [name for name, _ in node.columns])
    session.bulk = BulkTarget(frame, table, tuple(places), types, node.options)
    yield session.done(frame, None, "insert bulk")
    return None


def load(target: BulkTarget, data: BulkData) -> Steps:
    """Store the rows as one statement. 4816 for a column whose type is not the announced one."""
    frame, table, options = target.frame, target.table, target.options
    session = frame.session
    if data.columns and len(data.columns) != len(target.places):
        raise _wrong_type(min(len(data.columns), len(target.places)) + 1)
    for number, (sent, announced) in enumerate(zip(data.columns, target.types, strict=False), 1):
        if sent.name != announced.name and _KINDS.get(sent.name, sent.name) != _KINDS.get(
            announced.name, announced.name
        ):
            raise _wrong_type(number)
    build = _rows(target, data)
    identity = next((place for place, column in enumerate(table.columns) if column.identity is not None), -1)

    def work(transaction: Transaction) -> list[tuple]:
        if "TABLOCK" in options and not table.private:
            transaction.manager.locks.acquire(transaction, table.resource, LockMode.X)
        with _unchecked(table, transaction, checked="CHECK_CONSTRAINTS" in options):
            rows = build(frame.context(transaction))
            return insert_rows(session, table, transaction, rows, place=identity, explicit=identity in target.places)

    asleep = "FIRE_TRIGGERS" not in options
    then = triggers.after(frame, table, "INSERT", lambda rows: (rows, []), (), asleep=asleep)
    rows = yield from session.transactions.run(work, then)
    session.row_count = len(rows)
    yield session.done(frame, len(rows), "insert bulk")
    return None


def _wrong_type(number: int) -> SqlError:
    return SqlError(4816, f"Invalid column type from bcp client for colid {number}.")


def _rows(target: BulkTarget, data: BulkData) -> Callable[[Any], list[tuple]]:
    """How sent rows become complete rows of the table."""
    table, places = target.table, target.places
    fields = [Field(name, type_) for name, type_ in zip(data.names, data.columns, strict=True)]
    cells = row_builder(table, places, fields, named=True) if data.rows else ()
    defaults: dict[int, Any] = {}
    if "KEEP_NULLS" not in target.options:
        columns = ((place, table.columns[place].default) for place in places)
        defaults = {place: found.evaluate for place, found in columns if found is not None}

    def build(context: Any) -> list[tuple]:
        rows = []
        for sent in data.rows:
            row = [cell(sent, context) for cell in cells]
            for place, evaluate in defaults.items():
                if row[place] is None:
                    row[place] = evaluate(context)
            rows.append(tuple(row))
        return rows

    return build


@contextmanager
def _unchecked(table: Table, transaction: Transaction, *, checked: bool) -> Iterator[None]:
    """Checks and foreign keys are disabled during the load, and not trusted afterwards (sys.check_constraints)."""
    sleeping: Sequence[Any] = [] if checked else [rule for rule in (*table.checks, *table.foreign_keys) if rule.enabled]
    trusted = [(rule, rule.trusted) for rule in sleeping]
    for rule in sleeping:
        rule.enabled = False
    try:
        yield
    finally:
        for rule in sleeping:
            rule.enabled = True
    for rule, was in trusted:
        rule.trusted = False
        transaction.on_undo(lambda rule=rule, was=was: setattr(rule, "trusted", was))


def bulk_load(session: SessionState, data: BulkData) -> Steps:
    """Store the rows of a bulk load message for the INSERT BULK statement before it; 4002 if there was none."""
    target, session.bulk = session.bulk, None
    if not isinstance(target, BulkTarget):
        raise SqlError(4002, f"{_STREAM} INSERT BULK was expected before a bulk load.", severity=20)
    return (yield from load(target, data))
