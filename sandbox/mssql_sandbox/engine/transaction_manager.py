"""The transactions of a whole server: commit order, snapshots in use, row versions that are no longer visible.

What does not belong here: the work and the undo of one transaction (transaction.py), how rows are stored (storage/).
"""

from __future__ import annotations

import itertools
from collections import deque

from mssql_sandbox.engine.clock import Clock
from mssql_sandbox.engine.locks import LockManager
from mssql_sandbox.engine.replica import Replica
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.transaction_scopes import Isolation
from mssql_sandbox.engine.versions import VersionedRows


class TransactionManager:
    """Commit order, snapshots in use and old row versions of a server."""

    def __init__(self, clock: Clock, locks: LockManager) -> None:
        self.clock = clock
        self.locks = locks
        self.sequence = 0
        """Number of the newest commit; a snapshot sees commits up to the number it was taken at."""
        self.active: dict[int, Transaction] = {}
        self._ids = itertools.count(1)
        self._snapshots: dict[int, int] = {}
        self._garbage: deque[tuple[int, VersionedRows, int]] = deque()
        self.replica: Replica | None = None

    def begin(
        self,
        *,
        spid: int = 0,
        isolation: Isolation = Isolation.READ_COMMITTED,
        name: str = "user_transaction",
        deadlock_priority: int = 0,
    ) -> Transaction:
        """A new transaction; it writes nothing to any log before its first change."""
        transaction = Transaction(self, next(self._ids), spid=spid, isolation=isolation, name=name)
        transaction.deadlock_priority = deadlock_priority
        if self.replica is not None and self.replica.serves(spid):
            transaction.replica = self.replica
        self.active[transaction.id] = transaction
        return transaction

    def take_snapshot(self) -> int:
        """A snapshot of everything committed so far; release it with `drop_snapshot`."""
        sequence = self.sequence
        self._snapshots[sequence] = self._snapshots.get(sequence, 0) + 1
        return sequence

    def share_snapshot(self, sequence: int) -> None:
        """Another user of a snapshot not older than one in use; release it with `drop_snapshot`."""
        self._snapshots[sequence] = self._snapshots.get(sequence, 0) + 1

    def drop_snapshot(self, sequence: int) -> None:
        """Release a snapshot; row versions that are no longer visible are freed."""
        count = self._snapshots[sequence] - 1
        if count:
            self._snapshots[sequence] = count
            return
        del self._snapshots[sequence]
        self.collect_garbage()

    @property
    def snapshots_in_use(self) -> bool:
        """Whether a snapshot is in use, so that commits must keep old row versions."""
        return bool(self._snapshots)

    def keep_until_unseen(self, table: VersionedRows, rowids: list[int]) -> None:
        """Remember committed versions whose predecessors a snapshot may still need."""
        self._garbage.extend((self.sequence, table, rowid) for rowid in rowids)

    def collect_garbage(self) -> None:
        """Free the versions that no snapshot in use can see."""
        oldest = min(self._snapshots, default=self.sequence)
        garbage = self._garbage
        while garbage and garbage[0][0] <= oldest:
            _, table, rowid = garbage.popleft()
            table.collapse(rowid, oldest)
