"""Read views: the version of each row that a statement sees, and the locks that reading takes.

`open_view` maps isolation level, database options and table hints to a `ReadView`; scans use it for every row that has
an uncommitted or recent version. What does not belong here: walking indexes (scan.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mssql_sandbox.engine.lock_modes import LockMode
from mssql_sandbox.engine.lock_requests import Duration, LockOwner, MustWait, Resource
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.transaction_scopes import Isolation
from mssql_sandbox.engine.versions import Slot, Version, ViewMode, committed_before
from mssql_sandbox.errors import error

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.database import Database
    from mssql_sandbox.engine.storage.table import Table

ESCALATION = 5000
"""The number of row locks of one view on one table after which the table is locked instead."""
_LOCKING = frozenset({"readcommittedlock", "repeatableread", "holdlock", "serializable", "updlock", "xlock",
                      "tablock", "tablockx", "readpast"})  # fmt: skip


@dataclass(slots=True)
class ReadView:
    """How one statement reads one table reference."""

    transaction: Transaction
    mode: ViewMode
    sequence: int = 0
    row_mode: LockMode = LockMode.S
    table_mode: LockMode = LockMode.IS
    table_duration: Duration = "statement"
    skip_locked: bool = False
    key_mode: LockMode | None = None
    """SERIALIZABLE: point reads on a unique key that find their row lock only the row, in this mode."""
    _locked: int = 0

    def open(self, table: Table) -> None:
        """Take the table lock of the view; raises `MustWait`. Temporary tables need none."""
        if table.private or self.transaction.replica is not None:
            return
        self.transaction.manager.locks.acquire(
            self.transaction, table.resource, self.table_mode, duration=self.table_duration
        )
        if table.schema_sequence > self.sequence and self._unversioned(table):
            raise error(3961, database=table.database.name)

    def _unversioned(self, table: Table) -> bool:
        """Whether the table's newer definition is another transaction's, seen by a snapshot of a whole transaction.

        A statement's own snapshot (READ_COMMITTED_SNAPSHOT) is taken after it has waited for the schema.
        """
        if self.mode != "snapshot" or self.transaction.isolation is not Isolation.SNAPSHOT:
            return False
        return self.transaction.locks[table.resource].mode is not LockMode.SCH_M

    def resolve(self, table: Table, rowid: int, slot: Slot) -> tuple | None:
        """The row as this view sees it, None if there is none; raises `MustWait` for another transaction's change."""
        mode = self.mode
        if mode == "snapshot":
            return committed_before(slot, self.sequence, self.transaction)
        if type(slot) is not Version:
            if mode == "held" and slot is not None and not self._hold(table, rowid):
                return None
            return slot  # type: ignore[return-value]
        if mode == "dirty" or slot.transaction is self.transaction:
            return slot.row
        if slot.transaction is not None:
            self._wait(table, rowid, slot.transaction)
            return None
        if mode == "held" and slot.row is not None and not self._hold(table, rowid):
            return None
        return slot.row

    def _wait(self, table: Table, rowid: int, writer: LockOwner) -> None:
        """Queue for the writer's row; returns only if locked rows are skipped."""
        if self.skip_locked:
            return
        duration: Duration = "transaction" if self.mode == "held" else "instant"
        locks = self.transaction.manager.locks
        locks.acquire_from(writer, self.transaction, table.row_resource(rowid), self.row_mode, duration=duration)

    def _hold(self, table: Table, rowid: int) -> bool:
        """Lock a committed row for the transaction; False if it is locked and locked rows are skipped."""
        if table.private:
            return True
        locks = self.transaction.manager.locks
        resource = table.row_resource(rowid)
        if self.skip_locked:
            return locks.try_acquire(self.transaction, resource, self.row_mode)
        self._locked += 1
        if self._locked > ESCALATION and locks.try_acquire(self.transaction, table.resource, self.row_mode):
            return True
        locks.acquire(self.transaction, resource, self.row_mode)
        return True

    @property
    def needs_row_locks(self) -> bool:
        """Whether even plainly committed rows must go through `resolve`."""
        return self.mode == "held"


def open_view(
    transaction: Transaction, database: Database, *, hints: frozenset[str] = frozenset(), for_update: bool = False
) -> ReadView:
    """The view for a table reference with lower-case `hints`; `for_update`: the target of UPDATE, DELETE or MERGE.

    Errors: 3952 when SNAPSHOT is not allowed in the database, 3906 for an update on a readable secondary. Waits come
    later, with `ReadView.open` and the scan.
    """
    if transaction.replica is not None and not database.is_system:
        if for_update:
            raise error(3906, database=database.name)
        return ReadView(transaction, "snapshot", transaction.snapshot())
    level = _level(transaction.isolation, hints, for_update=for_update)
    versions_only = not for_update and not hints & _LOCKING
    if level is Isolation.SNAPSHOT:
        if not (database.options.allow_snapshot_isolation or database.is_system):
            raise error(3952, database=database.name)
        sequence = transaction.snapshot()
        if not hints & (_LOCKING - {"tablock"}):
            mode = LockMode.IX if for_update else LockMode.SCH_S
            return ReadView(
                transaction, "snapshot", sequence, LockMode.U, mode, "transaction" if for_update else "statement"
            )
        level = Isolation.READ_COMMITTED
    if level is Isolation.READ_UNCOMMITTED:
        return ReadView(transaction, "dirty", table_mode=LockMode.SCH_S)
    if level is Isolation.READ_COMMITTED and database.options.read_committed_snapshot and versions_only:
        return ReadView(transaction, "snapshot", transaction.statement_snapshot(), table_mode=LockMode.SCH_S)
    return _locking_view(transaction, level, hints, for_update=for_update)


def _level(isolation: Isolation, hints: frozenset[str], *, for_update: bool) -> Isolation:
    if hints & {"holdlock", "serializable"}:
        return Isolation.SERIALIZABLE
    if "repeatableread" in hints:
        return Isolation.REPEATABLE_READ
    if hints & {"readcommitted", "readcommittedlock"} and isolation is not Isolation.SNAPSHOT:
        return Isolation.READ_COMMITTED
    dirty = bool(hints & {"nolock", "readuncommitted"}) or isolation is Isolation.READ_UNCOMMITTED
    if dirty:
        locking = for_update or hints & {"updlock", "xlock", "tablockx"}
        return Isolation.READ_COMMITTED if locking else Isolation.READ_UNCOMMITTED
    return isolation


def _locking_view(transaction: Transaction, level: Isolation, hints: frozenset[str], *, for_update: bool) -> ReadView:
    row = LockMode.X if "xlock" in hints else LockMode.U if for_update or "updlock" in hints else LockMode.S
    held = level >= Isolation.REPEATABLE_READ or bool(hints & {"updlock", "xlock"})
    writes = for_update or row is LockMode.X
    table = LockMode.IX if writes or row is LockMode.U else LockMode.IS
    duration: Duration = "transaction" if held or writes else "statement"
    key_mode: LockMode | None = None
    if "tablockx" in hints or ("tablock" in hints and writes):
        return ReadView(transaction, "committed", 0, row, LockMode.X, "transaction")
    if "tablock" in hints:
        whole = LockMode.U if row is LockMode.U else LockMode.S
        return ReadView(transaction, "committed", 0, row, whole, duration)
    if level is Isolation.SERIALIZABLE:
        key_mode = row
        table = LockMode.SIX if for_update else {LockMode.S: LockMode.S, LockMode.U: LockMode.U}.get(row, LockMode.X)
        return ReadView(transaction, "committed", 0, row, table, "transaction", key_mode=key_mode)
    mode: ViewMode = "held" if held else "committed"
    return ReadView(transaction, mode, 0, row, table, duration, skip_locked="readpast" in hints)


def row_view(view: ReadView) -> ReadView:
    """The view for a point read under SERIALIZABLE: the row is locked instead of the table."""
    table_mode = LockMode.IX if view.key_mode is not LockMode.S else LockMode.IS
    return ReadView(
        view.transaction, "held", 0, view.key_mode or LockMode.S, table_mode, "transaction", view.skip_locked
    )


def wait_for_row(transaction: Transaction, table: Table, rowid: int, writer: LockOwner) -> None:
    """Queue for an exclusive lock on a row that `writer` has changed; always raises `MustWait` or 1205."""
    resource: Resource = table.row_resource(rowid)
    transaction.manager.locks.acquire_from(writer, transaction, resource, LockMode.X, duration="transaction")
    raise AssertionError("a changed row was not locked by its writer")


__all__ = ["ESCALATION", "MustWait", "ReadView", "open_view", "row_view", "wait_for_row"]
