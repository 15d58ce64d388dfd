"""The start of every schema change of a table, and its record in the log for capture."""

from __future__ import annotations

from typing import Any

from mssql_sandbox.engine.lock_modes import LockMode
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction


def begin_ddl(table: Table, transaction: Transaction) -> None:
    """Lock the table's schema and stamp the change, so that older snapshots get error 3961."""
    if not table.private:
        transaction.manager.locks.acquire(transaction, table.resource, LockMode.SCH_M)
        transaction.log_part(table.database).log.append()
    before, modified = table.schema_sequence, table.modify_date

    def undo() -> None:
        table.schema_sequence, table.modify_date = before, modified

    transaction.on_undo(undo)
    table.schema_sequence = transaction.manager.sequence + 1
    table.modify_date = transaction.manager.clock.local_datetime()


def log_ddl(
    table: Table, transaction: Transaction, kind: str, command: str, *, column: str = "", details: Any = None
) -> None:
    """Write the DDL record that capture turns into cdc.ddl_history; only tracked tables need one."""
    if table.tracked:
        now = transaction.manager.clock.local_datetime()
        transaction.log_part(table.database).ddl(
            table.object_id, kind, command, time=now, column=column, details=details
        )
