"""Transactions: undo, savepoints, statement scopes, snapshots, commit.

A `Transaction` exists for every statement, explicit or autocommit; @@TRANCOUNT and the rules of nested BEGIN TRAN
belong to the session. What does not belong here: commit order and snapshots of the whole server
(transaction_manager.py), how rows are stored (storage/), which errors doom a transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from mssql_sandbox.engine.clock import Clock
from mssql_sandbox.engine.lock_requests import Granted, Resource
from mssql_sandbox.engine.locks import LockManager
from mssql_sandbox.engine.log import Log, LogPart
from mssql_sandbox.engine.replica import Replica
from mssql_sandbox.engine.transaction_scopes import Isolation, Savepoint, Snapshots, StatementScopes
from mssql_sandbox.engine.versions import VersionedRows
from mssql_sandbox.errors import error


class CommitOrder(Snapshots, Protocol):
    """What a transaction needs from the manager of all transactions."""

    clock: Clock
    locks: LockManager
    sequence: int
    active: dict[int, Transaction]
    replica: Replica | None

    @property
    def snapshots_in_use(self) -> bool:
        """Whether a snapshot is in use, so that commits must keep old row versions."""
        ...

    def keep_until_unseen(self, table: VersionedRows, rowids: list[int]) -> None:
        """Remember committed versions whose predecessors a snapshot may still need."""
        ...


class Writable(Protocol):
    """Whether a database may be written."""

    read_only: bool


class LoggedDatabase(Protocol):
    """What a transaction needs from a database that it writes."""

    id: int
    name: str
    log: Log

    @property
    def is_system(self) -> bool:
        """Whether it is one of the server's own."""
        ...

    @property
    def options(self) -> Writable:
        """Its options."""
        ...


class Transaction:
    """One transaction over any number of databases.

    `id` is also the descriptor sent to clients. `undo` holds, oldest first, row changes as (table, rowid, version)
    and everything else as (callable, None, None).
    """

    __slots__ = (
        "_snapshot", "_statement", "_statement_snapshots", "begin_ticks", "begin_time", "deadlock_priority", "doomed",
        "id", "isolation", "locks", "manager", "name", "parts", "replica", "savepoints", "spid", "state", "undo",
        "variable_writes",
    )  # fmt: skip

    def __init__(self, manager: CommitOrder, id_: int, *, spid: int, isolation: Isolation, name: str) -> None:
        self.manager = manager
        self.id = id_
        self.spid = spid
        self.isolation = isolation
        self.name = name
        self.deadlock_priority = 0
        self.replica: Replica | None = None
        """The readable secondary on which the transaction runs."""
        self.doomed = False
        self.state: Literal["active", "committed", "rolled back"] = "active"
        self.begin_time = manager.clock.local_datetime()
        self.begin_ticks = manager.clock.utc_ticks()
        """Begin in UTC as datetime2 ticks, for the period columns of system-versioned tables."""
        self.locks: dict[Resource, Granted] = {}
        self.undo: list[tuple[Any, Any, Any]] = []
        self.savepoints: list[Savepoint] = []
        self.parts: dict[int, LogPart] = {}
        self.variable_writes = False
        self._snapshot: int | None = None
        self._statement: list[tuple[int, dict[int, int]]] = []
        self._statement_snapshots: list[int | None] = []

    def rollback_cost(self) -> int:
        """Number of changes to undo; deadlock victims are chosen by it."""
        return len(self.undo)

    # -- statements -------------------------------------------------------------------------------------------

    def begin_statement(self) -> None:
        """Open a statement scope: an implicit savepoint. Scopes nest (triggers, procedures, functions)."""
        self._statement.append(self._mark())
        self._statement_snapshots.append(None)

    def end_statement(self) -> None:
        """Close the scope of a statement that succeeded: release its short locks and its snapshot.

        Nothing happens if the statement itself has ended the transaction.
        """
        if not self._statement:
            return
        position, _ = self._statement.pop()
        if self.variable_writes:
            self._settle_variables(position)
        self._close_scope()

    def undo_statement(self) -> None:
        """Undo the statement and close its scope; locks taken for the transaction stay."""
        if not self._statement:
            return
        self._undo_to(*self._statement.pop())
        self._close_scope()

    def exchange(self, scopes: StatementScopes) -> None:
        """Make another request's scopes the current ones, and save those that are open now."""
        self._statement, scopes.statements = scopes.statements, self._statement
        self._statement_snapshots, scopes.snapshots = scopes.snapshots, self._statement_snapshots

    def _settle_variables(self, position: int) -> None:
        """Changes of a statement to table variables stay, whatever happens to the transaction."""
        kept = []
        for entry in self.undo[position:]:
            table, rowid, version = entry
            if version is None or table.kind != "variable":
                kept.append(entry)
                continue
            version.transaction = None
            table.collapse(rowid, self.manager.sequence)
        self.undo[position:] = kept
        self.variable_writes = False

    def _close_scope(self) -> None:
        snapshot = self._statement_snapshots.pop()
        if snapshot is not None:
            self.manager.drop_snapshot(snapshot)
        if not self._statement and self.locks:
            self.manager.locks.release_statement(self)

    # -- snapshots ----------------------------------------------------------------------------------------------

    def snapshot(self) -> int:
        """The transaction's snapshot (SNAPSHOT isolation), taken with its first access to data."""
        if self._snapshot is None and self.replica is not None:
            self._snapshot = self.replica.sequence()
            self.manager.share_snapshot(self._snapshot)
        elif self._snapshot is None:
            self._snapshot = self.manager.take_snapshot()
        return self._snapshot

    def statement_snapshot(self) -> int:
        """The running statement's snapshot (READ COMMITTED with row versions), taken with its first access."""
        if not self._statement_snapshots:
            raise AssertionError("a statement snapshot needs begin_statement() first")
        current = self._statement_snapshots[-1]
        if current is None:
            current = self._statement_snapshots[-1] = self.manager.take_snapshot()
        return current

    @property
    def snapshot_sequence(self) -> int | None:
        """The snapshot number if one was taken, for sys.dm_tran_active_snapshot_database_transactions."""
        return self._snapshot

    # -- writing --------------------------------------------------------------------------------------------------

    def log_part(self, database: LoggedDatabase) -> LogPart:
        """This transaction's part in a database's log; the first call writes the BEGIN record.

        Raises:
            SqlError: 3906, the database is read-only, or this is a readable secondary.
        """
        part = self.parts.get(database.id)
        if part is None:
            if database.options.read_only or (self.replica is not None and not database.is_system):
                raise error(3906, database=database.name)
            part = self.parts[database.id] = database.log.begin(self.id, self.begin_time)
        return part

    def on_undo(self, action: Callable[[], object]) -> None:
        """Register the undo of a non-row change (DDL); actions run newest first."""
        self.undo.append((action, None, None))

    # -- savepoints and end -----------------------------------------------------------------------------------------

    def save(self, name: str) -> None:
        """SAVE TRANSACTION; a repeated name makes a new savepoint that hides the older one."""
        position, marks = self._mark()
        self.savepoints.append(Savepoint(name.lower(), position, marks, frozenset(self.locks)))

    def has_savepoint(self, name: str) -> bool:
        """Whether `rollback_to(name)` would find its savepoint."""
        return any(name.lower() == savepoint.name for savepoint in self.savepoints)

    def rollback_to(self, name: str) -> None:
        """ROLLBACK TRANSACTION to a savepoint; error 6401 if none has this name.

        Locks acquired after the savepoint are released; those converted since stay as they are [doc].
        """
        for number in range(len(self.savepoints) - 1, -1, -1):
            savepoint = self.savepoints[number]
            if savepoint.name == name.lower():
                self._undo_to(savepoint.position, savepoint.marks)
                del self.savepoints[number + 1 :]
                # The lock on a changed row is written down when somebody waits for it, perhaps after the savepoint.
                changed = {table.row_resource(rowid) for table, rowid, _ in self.undo if rowid is not None}
                for resource in [held for held in self.locks if held not in savepoint.locks | changed]:
                    self.manager.locks.release(self, resource)
                return
        raise error(6401, name=name)

    def commit(self) -> None:
        """Make all changes visible at once, at one point of the commit order, and write the COMMIT records."""
        if self.doomed:
            raise error(3930)
        if self.undo:
            self._publish()
        if self.parts:
            self._end_parts(committed=True)
        self._end("committed")

    def rollback(self) -> None:
        """Undo everything."""
        self._undo_to(0, {})
        if self.parts:
            self._end_parts(committed=False)
        self._end("rolled back")

    def _publish(self) -> None:
        manager = self.manager
        manager.sequence += 1
        keep = manager.snapshots_in_use
        sequence = manager.sequence
        oldest = None
        tables: dict[VersionedRows, list[int]] = {}
        for table, rowid, version in self.undo:
            if rowid is None:
                continue
            version.transaction = None
            version.sequence = sequence
            tables.setdefault(table, []).append(rowid)
        for table, rowids in tables.items():
            if keep:
                manager.keep_until_unseen(table, rowids)
            else:
                oldest = sequence
                table.publish(rowids, oldest)
        if manager.replica is not None:
            manager.replica.committed(sequence)

    def _end_parts(self, *, committed: bool) -> None:
        now = self.manager.clock.local_datetime()
        for part in self.parts.values():
            if committed:
                part.log.commit(part, now)
            else:
                part.log.abort(part)

    def _end(self, state: Literal["committed", "rolled back"]) -> None:
        self.state = state
        self.undo.clear()
        self.savepoints.clear()
        self.manager.active.pop(self.id, None)
        while self._statement:
            self._statement.pop()
            self._close_scope()
        if self._snapshot is not None:
            self.manager.drop_snapshot(self._snapshot)
            self._snapshot = None
        if self.locks:
            self.manager.locks.release_all(self)

    def _mark(self) -> tuple[int, dict[int, int]]:
        return len(self.undo), {database: part.mark() for database, part in self.parts.items()}

    def _undo_to(self, position: int, marks: dict[int, int]) -> None:
        undo = self.undo
        while len(undo) > position:
            target, rowid, version = undo.pop()
            if rowid is None:
                target()
            else:
                target.undo_version(rowid, version)
        for database, part in self.parts.items():
            part.undo_to(marks.get(database, 0))
