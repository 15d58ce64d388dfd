"""CHECK constraints and foreign keys of a table: adding and dropping; all undoable."""

from __future__ import annotations

from mssql_sandbox.engine.storage import references
from mssql_sandbox.engine.storage.constraints import Check, ForeignKey
from mssql_sandbox.engine.storage.schema_change import begin_ddl
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.versions import newest
from mssql_sandbox.errors import error


def add_check(table: Table, transaction: Transaction, check: Check, *, existing: bool) -> None:
    """Add a CHECK constraint; `existing`: error 547 if a row violates it."""
    begin_ddl(table, transaction)
    if existing:
        for slot in table.heap:
            row = newest(slot)
            if row is not None and check.predicate(row) is False:
                column = f", column '{check.column}'" if check.column else ""
                raise error(
                    547, statement="ALTER TABLE", kind="CHECK", constraint=check.name,
                    database=table.database.name, table=table.full_name, column=column,
                )  # fmt: skip
    table.checks.append(check)
    transaction.on_undo(lambda: table.checks.remove(check))


def drop_check(table: Table, transaction: Transaction, check: Check) -> None:
    """Remove a CHECK constraint."""
    begin_ddl(table, transaction)
    table.checks.remove(check)
    transaction.on_undo(lambda: table.checks.append(check))


def add_foreign_key(transaction: Transaction, key: ForeignKey, *, existing: bool) -> None:
    """Add a foreign key. Errors 1769, 1770, 1776, and 547 if `existing` rows have no parent."""
    for name in key.columns:
        if key.table.column(name) is None:
            raise error(1769, name=key.name, column=name, table=key.table.full_name)
    for name in key.referenced_columns:
        if key.referenced.column(name) is None:
            raise error(1770, name=key.name, column=name, table=key.referenced.full_name)
    if references.candidate_key(key.referenced, key.referenced_columns) is None:
        raise error(1776, table=key.referenced.full_name, name=key.name)
    begin_ddl(key.table, transaction)
    if existing and references.violations(key, transaction):
        column = f", column '{key.referenced_columns[0]}'" if len(key.columns) == 1 else ""
        raise error(
            547, statement="ALTER TABLE", kind="FOREIGN KEY", constraint=key.name,
            database=key.table.database.name, table=key.referenced.full_name, column=column,
        )  # fmt: skip
    key.table.foreign_keys.append(key)
    key.referenced.referenced_by.append(key)

    def undo() -> None:
        key.table.foreign_keys.remove(key)
        key.referenced.referenced_by.remove(key)

    transaction.on_undo(undo)


def drop_foreign_key(transaction: Transaction, key: ForeignKey) -> None:
    """Remove a foreign key."""
    begin_ddl(key.table, transaction)
    key.table.foreign_keys.remove(key)
    key.referenced.referenced_by.remove(key)

    def undo() -> None:
        key.table.foreign_keys.append(key)
        key.referenced.referenced_by.append(key)

    transaction.on_undo(undo)
