"""How far a stream of records has come: everything that is needed to continue after it, and nothing else.

The state travels with the records: an output stores it together with them, as Debezium stores its offsets.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from mssql_cdc.records.envelope import Envelopes, SourceInfo, offset_of
from mssql_cdc.records.numbering import SerialNumbers
from mssql_cdc.records.transactions import Transaction


@dataclass(frozen=True, slots=True)
class InSnapshot:
    """A snapshot that is written up to the row at `position` in `table` (`ChangeLog.identity`).

    The tables that are `done` are written, too: by now, the configuration may put the others in a different order.
    None: the state is from before they were stored. The snapshot's records show `kind` and `commit_lsn` in their
    offsets.
    """

    number: str
    table: str | None = None
    position: str = ""
    kind: str = "INITIAL"
    commit_lsn: str | None = None
    done: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Changes before `position` are written if their batch is not larger than the table's.

    `batches` are newer than those of the stream's state, whose position is larger.
    """

    position: str
    batches: dict[str, int]


@dataclass(frozen=True, slots=True)
class StreamState:
    """The state of one database's stream after a record.

    Changes before `position` are written if their batch is not larger than the table's (by `ChangeLog.identity`). Of
    later batches, those that `late` describes are written, too, the largest position and the oldest batches first: they
    come in order, and writing can end among them.

    The `snapshots` and `announced` schema versions are written, heartbeats up to `beat_ms`, and notifications up to the
    number `notified` (None: those before the position).
    """

    position: str = ""
    records: int = 0
    batches: dict[str, int] = field(default_factory=dict[str, int])
    snapshots: tuple[str, ...] = ()
    within: InSnapshot | None = None
    announced: tuple[str, ...] = ()
    beat_ms: int | None = None
    notified: int | None = None
    newest: SourceInfo | None = None
    serial: SerialNumbers = field(default_factory=SerialNumbers)
    transaction: Transaction = field(default_factory=Transaction)
    late: tuple[Late, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> StreamState:
        """Return the state that `to_json()` turned into this text."""
        return _STATE.validate_json(text)

    def to_json(self) -> str:
        """Return the state as text."""
        return _STATE.dump_json(self).decode()

    def reaching(self, position: str, batches: dict[str, int]) -> StreamState:
        """Return the state in which everything before a position is written.

        Args:
            position: The position.
            batches: The newest batch of each table at the cut that is rendered; no earlier cut has newer ones. A change
                log that does not exist now has none, and what is written of it stays.
        """
        batches = {**self.batches, **batches}
        if position >= self.position:
            return replace(self, position=position, batches=batches, late=())
        further = (one for one in self.late if one.position > position)
        return replace(self, late=(*further, Late(position, batches)))

    def written(self, log: str) -> list[tuple[str, int]]:
        """Return pairs of a position and a batch: changes before the position, and of no later batch, are written.

        Args:
            log: The change log's identity.
        """
        return [(one.position, one.batches.get(log, 0)) for one in (self, *self.late)]

    def after(self, envelopes: Envelopes) -> StreamState:
        """Return the state with what the envelopes have counted."""
        transaction = envelopes.transaction
        return replace(
            self,
            newest=envelopes.newest,
            serial=replace(envelopes.serial),
            transaction=Transaction(transaction.id, dict(transaction.events), transaction.buckets),
        )

    def source_offset(self) -> dict[str, Any] | None:
        """Return Debezium's offset after the last record; None before the first one.

        An initial snapshot that is only partly written has to be sent again; Debezium does not repeat a blocking one,
        but continues streaming from its position.
        """
        if self.newest is None:
            return None
        if self.within is not None:
            commit_lsn = self.within.commit_lsn or self.newest.commit_lsn
            return {"snapshot": self.within.kind, "snapshot_completed": False, "commit_lsn": commit_lsn}
        if self.newest.event_serial_no is not None:
            return offset_of(self.newest, self.transaction.offset())
        return {"snapshot": "INITIAL", "snapshot_completed": True, "commit_lsn": self.newest.commit_lsn}

    def restore(self, envelopes: Envelopes) -> None:
        """Make the envelopes continue from here."""
        envelopes.newest, envelopes.serial = self.newest, replace(self.serial)
        held = self.transaction
        envelopes.transaction = Transaction(held.id, dict(held.events), held.buckets)


_STATE: TypeAdapter[StreamState] = TypeAdapter(StreamState)
