"""The transaction log of one database: LSNs and the records that change data capture reads.

LSNs follow the reference's simulation rules: the first VLF is 0x27, every commit closes its log block, slots count from
1 inside a block; so a commit's LSN is above all row LSNs of its transaction and above every earlier commit. Only
changes of tracked tables are kept as records, and only until capture has passed them; otherwise the log only advances.
What does not belong here: turning records into change rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Operation = Literal["insert", "delete", "update"]
FIRST_VLF = 0x27
_VLF_OFFSETS = 0x40000
_BLOCK_BYTES = 60 * 1024
_RECORD_BYTES = 120
ZERO_LSN = bytes(10)


def lsn_bytes(lsn: int) -> bytes:
    """The 10 bytes of an LSN stored as an 80-bit integer."""
    return lsn.to_bytes(10, "big")


def lsn_number(lsn: int) -> int:
    """The LSN as `numeric(25,0)`: log file, 10 digits of the block, 5 digits of the slot."""
    return (lsn >> 48) * 10**15 + (lsn >> 16 & 0xFFFFFFFF) * 10**5 + (lsn & 0xFFFF)


def lsn_text(lsn: int | bytes) -> str:
    """Text form as DMVs show it: '00000027:00000160:0011'."""
    digits = (lsn if isinstance(lsn, bytes) else lsn_bytes(lsn)).hex()
    return f"{digits[:8]}:{digits[8:16]}:{digits[16:]}"


@dataclass(slots=True)
class RowChange:
    """A change of one row of a tracked table.

    `lsn` is the row's own log record (seqval). A `deferred` update touches a primary key or unique index column and
    is captured as delete + insert with the same LSN.
    `changed` holds a bit per column position in the table (bit 0 = first column) for updates, -1 otherwise.
    """

    table_id: int
    operation: Operation
    before: tuple | None
    after: tuple | None
    lsn: bytes
    deferred: bool = False
    changed: int = -1


@dataclass(slots=True)
class DdlChange:
    """A DDL statement on a tracked table, logged in its transaction.

    `kind` is 'add column', 'drop column', 'alter column', 'drop table', 'rename'…; `column` names the column that is
    concerned and `details` carries what the kind needs (old and new `Column`).
    """

    table_id: int
    kind: str
    command: str
    lsn: bytes
    time: int
    column: str = ""
    details: Any = None


@dataclass(slots=True)
class InstanceEnabled:
    """The start of a capture instance: it changes no row, but capture sees its transaction in the log."""

    table_id: int
    lsn: bytes


LogEntry = RowChange | DdlChange | InstanceEnabled
"""The entries that capture reads of a transaction."""


@dataclass(slots=True)
class CommittedTransaction:
    """A transaction as capture sees it; times are `datetime` storage values in server local time."""

    commit_lsn: bytes
    begin_lsn: bytes
    transaction_id: int
    begin_time: int
    commit_time: int
    entries: list[LogEntry]


@dataclass(slots=True)
class LogPart:
    """The entries that one transaction has written to one database's log so far."""

    log: Log
    transaction_id: int
    begin_lsn: bytes
    begin_time: int
    entries: list[LogEntry] = field(default_factory=list)

    def change(
        self,
        table_id: int,
        operation: Operation,
        before: tuple | None,
        after: tuple | None,
        *,
        deferred: bool = False,
        changed: int = -1,
    ) -> None:
        """Log a row change of a tracked table."""
        lsn = lsn_bytes(self.log.append())
        self.entries.append(RowChange(table_id, operation, before, after, lsn, deferred, changed))

    def ddl(self, table_id: int, kind: str, command: str, *, time: int, column: str = "", details: Any = None) -> None:
        """Log a DDL statement that concerns a tracked table."""
        lsn = lsn_bytes(self.log.append())
        self.entries.append(DdlChange(table_id, kind, command, lsn, time, column, details))

    def instance_enabled(self, table_id: int) -> bytes:
        """Log that a capture instance of the table begins here; returns the record's LSN."""
        lsn = lsn_bytes(self.log.append())
        self.entries.append(InstanceEnabled(table_id, lsn))
        return lsn

    def mark(self) -> int:
        """A position to return to when a savepoint or a statement is undone."""
        return len(self.entries)

    def undo_to(self, mark: int) -> None:
        """Discard the entries after `mark`: capture does not see what was rolled back."""
        undone = len(self.entries) - mark
        del self.entries[mark:]
        self.log.grow(undone)


class Log:
    """LSN source and committed transactions, in commit order, that capture has not read yet."""

    def __init__(self) -> None:
        self.capturing = False
        self._vlf = FIRST_VLF
        self._offset = 0x20
        self._slot = 0
        self._bytes = 0
        self._last = 0
        self._committed: deque[CommittedTransaction] = deque()
        self._first = 0
        self.active: dict[int, LogPart] = {}
        self.records = 0
        self.append()
        self._close_block()

    # -- LSNs ---------------------------------------------------------------------------------------------

    def append(self, size: int = _RECORD_BYTES) -> int:
        """Write a record of about `size` bytes and return its LSN as an 80-bit integer."""
        if self._bytes > _BLOCK_BYTES:
            self._close_block()
        self._slot += 1
        self._bytes += size
        self.records += 1
        self._last = self._vlf << 48 | self._offset << 16 | self._slot
        return self._last

    def grow(self, records: int = 1) -> None:
        """Write records that capture does not read (changes of untracked tables, compensation records)."""
        for _ in range(records):
            self.append()

    def _close_block(self) -> None:
        self._offset += 8 * max(1, -(-self._bytes // 512))
        self._slot = 0
        self._bytes = 0
        if self._offset >= _VLF_OFFSETS:
            self._vlf += 1
            self._offset = 0x10

    @property
    def end_lsn(self) -> bytes:
        """LSN of the last record written."""
        return lsn_bytes(self._last)

    @property
    def open_block(self) -> int:
        """LSN of the first record of the block that is not closed: every commit lies below it."""
        return self._vlf << 48 | self._offset << 16 | 1

    # -- transactions -------------------------------------------------------------------------------------

    def begin(self, transaction_id: int, begin_time: int) -> LogPart:
        """Write a BEGIN record; called with a transaction's first write in this database."""
        part = LogPart(self, transaction_id, lsn_bytes(self.append()), begin_time)
        self.active[transaction_id] = part
        return part

    def commit(self, part: LogPart, commit_time: int) -> bytes:
        """Write the COMMIT record and close the block; returns the commit LSN."""
        lsn = lsn_bytes(self.append())
        self._close_block()
        self.active.pop(part.transaction_id, None)
        if self.capturing and part.entries:
            self._committed.append(
                CommittedTransaction(
                    lsn, part.begin_lsn, part.transaction_id, part.begin_time, commit_time, part.entries
                )
            )
        return lsn

    def abort(self, part: LogPart) -> None:
        """Write compensation records and the ABORT record; capture sees nothing of the transaction."""
        self.grow(len(part.entries) + 1)
        self._close_block()
        self.active.pop(part.transaction_id, None)

    # -- capture's cursor -----------------------------------------------------------------------------------

    @property
    def end_position(self) -> int:
        """The position after the newest committed transaction."""
        return self._first + len(self._committed)

    def read(self, position: int, limit: int) -> list[CommittedTransaction]:
        """Up to `limit` committed transactions with entries, in commit order, from cursor `position` on.

        Positions count transactions since the server started; the next position is `position + len(result)`.
        """
        start = max(position, self._first) - self._first
        return [self._committed[i] for i in range(start, min(start + limit, len(self._committed)))]

    def pending(self) -> Iterator[CommittedTransaction]:
        """All transactions that are kept, oldest first."""
        return iter(tuple(self._committed))

    def truncate(self, position: int) -> None:
        """Drop the records before cursor `position`: capture has read them."""
        while self._committed and self._first < position:
            self._committed.popleft()
            self._first += 1

    def stop_capturing(self) -> None:
        """Stop keeping records, and discard those kept: change data capture was disabled."""
        self.capturing = False
        self.truncate(self.end_position)

    @property
    def oldest_active_lsn(self) -> bytes | None:
        """BEGIN LSN of the oldest open transaction that has written."""
        return min((part.begin_lsn for part in self.active.values()), default=None)
