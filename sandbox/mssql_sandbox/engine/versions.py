"""Row versions and read views: the version of a row that a reader may see.

A slot of a table's heap holds the row's tuple if every reader sees it, otherwise a `Version`, and None when it is free.
What does not belong here: indexes and scans (storage/), commit order (transaction.py).
"""

from __future__ import annotations

from typing import Literal, Protocol

from mssql_sandbox.engine.lock_requests import LockOwner

ViewMode = Literal["dirty", "committed", "snapshot", "held"]
"""dirty: READ UNCOMMITTED; committed: wait for writers; snapshot: by commit sequence; held: wait and keep locks."""


class Version:
    """A row's state (None = deleted) by one writer, with the state that it replaced.

    `transaction` is the writer until it commits; then `sequence` is its number in the commit order.
    """

    __slots__ = ("previous", "row", "sequence", "transaction")

    def __init__(self, row: tuple | None, transaction: LockOwner | None, previous: Slot) -> None:
        self.row = row
        self.transaction = transaction
        self.previous = previous
        self.sequence = 0


Slot = tuple | Version | None


class VersionedRows(Protocol):
    """The rows whose versions a transaction publishes, frees or removes."""

    def publish(self, rowids: list[int], oldest: int) -> None:
        """Settle just committed rows if no snapshot is in use."""
        ...

    def collapse(self, rowid: int, oldest: int) -> None:
        """Discard the versions of a row that no snapshot from `oldest` on can see."""
        ...

    def undo_version(self, rowid: int, version: Version) -> None:
        """Remove an uncommitted version."""
        ...


def newest(slot: Slot) -> tuple | None:
    """The newest row of a slot, committed or not."""
    return slot.row if type(slot) is Version else slot  # type: ignore[return-value]


def committed_before(slot: Slot, sequence: int, own: LockOwner | None) -> tuple | None:
    """The row as a snapshot taken at `sequence` sees it, including the transaction's own changes."""
    while type(slot) is Version:
        if slot.transaction is None:
            if slot.sequence <= sequence:
                return slot.row
        elif slot.transaction is own:
            return slot.row
        slot = slot.previous
    return slot  # type: ignore[return-value]


def chain_rows(slot: Slot) -> list[tuple]:
    """All rows of a slot's versions, newest first, without deletions."""
    rows: list[tuple] = []
    while type(slot) is Version:
        if slot.row is not None:
            rows.append(slot.row)
        slot = slot.previous
    if slot is not None:
        rows.append(slot)  # type: ignore[arg-type]
    return rows
