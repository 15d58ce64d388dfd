"""Debezium's counters while it streams: event serial numbers and transactions (EVT-15, TXN-01 to TXN-08).

They require all tables of the database in one order, so the lake does not store them (rule E28).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mssql_cdc.records.names import java_order


@dataclass(slots=True)
class SerialNumbers:
    """`event_serial_no`: the ordinal within one (commit, change) LSN, incremented by 1 per row and 2 per update."""

    _position: tuple[str | None, str | None] = (None, None)
    _number: int = 0

    def next(self, commit_lsn: str | None, change_lsn: str | None, count: int) -> int:
        """Return the number of the next event (EVT-15).

        Args:
            commit_lsn: The LSN of its transaction.
            change_lsn: The LSN of its change; the numbers restart with each pair of LSNs.
            count: The number of change-table rows that it occupies, 1 or 2.
        """
        same = self._position == (commit_lsn, change_lsn)
        self._number = self._number + count if same else count
        self._position = (commit_lsn, change_lsn)
        return self._number


@dataclass(slots=True)
class Transaction:
    """The open transaction: its id (the commit LSN) and the number of events of each table so far."""

    id: str | None = None
    events: dict[str, int] = field(default_factory=dict[str, int])
    _buckets: int = 16

    @property
    def total(self) -> int:
        """The number of events so far."""
        return sum(self.events.values())

    def begin(self, transaction_id: str) -> None:
        """Open a transaction."""
        self.id, self.events = transaction_id, {}

    def count(self, collection: str) -> dict[str, Any]:
        """Count one event and return its `transaction` block."""
        self.events[collection] = self.events.get(collection, 0) + 1
        while len(self.events) > self._buckets * 3 // 4:
            self._buckets *= 2  # Java's map grows and never shrinks, from one transaction to the next.
        return {"id": self.id, "total_order": self.total, "data_collection_order": self.events[collection]}

    def collections(self) -> list[dict[str, Any]]:
        """Return `data_collections` of the END record."""
        return [{"data_collection": n, "event_count": self.events[n]} for n in java_order(self.events, self._buckets)]

    def offset(self) -> dict[str, Any]:
        """Return the transaction's part of a record's offset (TXN-08)."""
        orders = {f"transaction_data_collection_order_{name}": count for name, count in self.events.items()}
        return {"transaction_id": self.id, **orders}
