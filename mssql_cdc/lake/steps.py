"""The rows of `_offsets` as values: one function per kind of step builds a row, and the same types are read back.

A row contains the tables that a step advanced and their positions. Its facts contain what is needed later: the log end
that a snapshot must pass, the rows to sweep, the answered signal. `lake/offset_rows.py` stores rows,
`lake/offsets.py` derives their combined meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from mssql_cdc.source.values import LogMark, Witness

Status = Literal["streaming", "snapshot", "lost", "failed", "excluded"]
Kind = Literal["range", "snapshot", "idle", "status", "epoch", "incremental"]


@dataclass(frozen=True, slots=True, order=True)
class Reached:
    """A reached source position in its epoch; later epochs are larger."""

    epoch: int
    to: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A row's entry for one table.

    `folder` is its home below the database's root, fixed at first capture. `instance` is the identity of the capture
    instance that was read up to `to`, `shown` those of all instances that the source showed then, joined by blanks
    (B14). `schema` is the structure version of its newest rows, `filled` the one under which its last snapshot was
    read, `object_id` the source table's identity (B15).
    """

    status: Status
    to: str | None = None
    epoch: int = 0
    delta_table_id: str | None = None
    delta_version: int | None = None
    batch: int | None = None
    rows: int = 0
    incarnation: int = 1
    folder: str | None = None
    reason: str | None = None
    instance: str | None = None
    schema: int | None = None
    filled: int | None = None
    object_id: int | None = None
    shown: str | None = None

    @property
    def reached(self) -> Reached | None:
        """The position of the table in this entry."""
        return None if self.to is None else Reached(self.epoch, self.to)

    def to_in(self, epoch: int) -> str | None:
        """The table's position in an epoch; None: it has none there. One of another epoch means nothing (A7)."""
        return self.to if self.epoch == epoch else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A range passed the snapshots of these tables (`TableId.text`): their current tables may be filled (C18)."""

    step: Literal["opened"] = "opened"
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotBegun:
    """A snapshot began, took the positions of tables without reading rows (`data` False), or answered a signal.

    `mark` is the log's end at that time: the rows that are read must come from the history that it belongs to (A7).
    `signals` is the newest `_batch` of `_signals` that does not concern the snapshot: later signals may pause or stop
    it (None: none may).
    """

    step: Literal["snapshot begun"] = "snapshot begun"
    snapshot: str
    number: int | None = None
    signal: str | None = None
    data: bool = True
    mark: LogMark | None = None
    signals: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBound:
    """Rows of the current table below (`low`, `number`) were gone when the snapshot was taken (C19)."""

    low: str
    number: int


CHANGES_WENT = "changes went"
"""What stopped a snapshot of part of a table: the changes it was to continue from were removed in the meantime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEnded:
    """A table's snapshot ended.

    The current table stays closed until capture has passed `mark` (C18). `low` is the lowest position of its rows,
    `sweep` what has to be deleted afterwards; `gap`: changes were cleaned up while the snapshot ran. `stopped` is the
    id of the signal that stopped it, or CHANGES_WENT: the snapshot does not stand for the whole table. `chunk` is the
    first of its chunks that counts: two runs may have read a table.
    """

    step: Literal["snapshot ended"] = "snapshot ended"
    table: str
    snapshot: str
    number: int
    signal: str | None
    mark: LogMark
    low: str
    sweep: SweepBound | None = None
    gap: bool = False
    stopped: str | None = None
    chunk: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalEnded:
    """An incremental snapshot of a whole table ended; `sweep` is what has to be deleted afterwards (C19).

    `batch` is the `_batch` of its last rows: until they are part of a complete cut, they would look deleted.
    `object_id` is the source table's identity.
    """

    step: Literal["incremental ended"] = "incremental ended"
    table: str
    object_id: int
    number: int
    batch: int
    sweep: SweepBound


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """The sweep after snapshot `number` is done for the table, whose identity at the source is `object_id`."""

    step: Literal["swept"] = "swept"
    table: str
    object_id: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochBegun:
    """The source went back in time; `by` is who decided to continue, None when `snapshot.mode` did (A7)."""

    step: Literal["epoch begun"] = "epoch begun"
    restored: str
    by: str | None


START_SIGNAL = "start-"
"""The prefix of the ids of signals that a start sends to itself; a UUID follows."""
_AT_START = re.compile(rf"{START_SIGNAL}[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}@\d+:")


def is_of_start(signal: str | None) -> bool:
    """Whether a start requested the snapshot itself: to Debezium, such a snapshot is initial.

    Args:
        signal: The identity of the signal that requested the snapshot.
    """
    return signal is not None and _AT_START.fullmatch(signal) is not None


Facts = Opened | SnapshotBegun | SnapshotEnded | IncrementalEnded | Swept | EpochBegun


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """One row of `_offsets`; `number` is its `_batch`.

    `failed` lists the members that a complete cut excludes. A row of kind `epoch` starts an epoch: positions of earlier
    epochs become meaningless (A7).
    """

    kind: Kind
    at: datetime
    tables: Mapping[str, Entry]
    to: str | None = None
    epoch: int = 0
    complete: bool = False
    failed: tuple[str, ...] = ()
    scanned: str | None = None
    partition: str | None = None
    run_id: str | None = None
    witness: Witness | None = None
    facts: Facts | None = None
    number: int = 0

    @property
    def reached(self) -> Reached | None:
        """The end of the range."""
        return None if self.to is None else Reached(self.epoch, self.to)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The common facts of every step: when, by which run, in which epoch."""

    at: datetime
    run_id: str
    epoch: int


def range_done(
    stamp: Stamp,
    tables: Mapping[str, Entry],
    *,
    to: str,
    partition: str,
    read: bool,
    complete: bool,
    opens: Sequence[str] = (),
    scanned: str | None = None,
    witness: Witness | None = None,
) -> OffsetRow:
    """A range was read to `to`; without `read`, its tables only advanced.

    Args:
        stamp: when, by whom, in which epoch.
        tables: the new entries, by `TableId.text`.
        to: the end of the range.
        partition: the range's key.
        read: whether change tables were read; otherwise the kind is `idle`.
        complete: whether every streaming table has reached the end.
        opens: the tables whose snapshots this range passed.
        scanned: the position up to which the source had been scanned.
        witness: what proves later that the source's history is still the same (A7).
    """
    return OffsetRow(
        kind="range" if read else "idle",
        at=stamp.at,
        tables=tables,
        to=to,
        epoch=stamp.epoch,
        complete=complete,
        scanned=scanned,
        partition=partition,
        run_id=stamp.run_id,
        witness=witness,
        facts=Opened(tables=tuple(opens)) if opens else None,
    )


def chunks_emitted(
    stamp: Stamp, tables: Mapping[str, Entry], *, to: str, complete: bool, witness: Witness | None
) -> OffsetRow:
    """Rows of an incremental snapshot were written at the position that their table had already reached.

    Args:
        stamp: When, by whom, in which epoch.
        tables: The new entries, by `TableId.text`.
        to: That position.
        complete: Whether every streaming table has reached it.
        witness: What proves later that the source's history is still the same (A7).
    """
    return OffsetRow(
        "incremental",
        stamp.at,
        tables,
        to=to,
        epoch=stamp.epoch,
        complete=complete,
        run_id=stamp.run_id,
        witness=witness,
    )


def status_changed(stamp: Stamp, tables: Mapping[str, Entry]) -> OffsetRow:
    """Tables were lost or given up; they keep their positions."""
    return OffsetRow("status", stamp.at, tables, epoch=stamp.epoch, run_id=stamp.run_id)


def snapshot_begun(
    stamp: Stamp,
    tables: Mapping[str, Entry],
    *,
    snapshot: str,
    number: int,
    signal: str | None,
    mark: LogMark,
    signals: int,
    witness: Witness | None,
) -> OffsetRow:
    """These tables are being snapshotted now; they take no part in ranges until their snapshot has ended.

    Args:
        stamp: When, by which run, in which epoch.
        tables: The new entries by `TableId.text`.
        snapshot: The snapshot's partition key.
        number: The snapshot's number in `_pos`.
        signal: The id of the signal that requested it; None: no signal did.
        mark: The log's end before anything is read.
        signals: The newest `_batch` of `_signals` that does not concern it.
        witness: What proves later that the source's history is still the same (A7).
    """
    begun = SnapshotBegun(snapshot=snapshot, number=number, signal=signal, mark=mark, signals=signals)
    return _snapshot(stamp, tables, begun, witness)


def positions_taken(stamp: Stamp, tables: Mapping[str, Entry], *, snapshot: str, witness: Witness | None) -> OffsetRow:
    """These tables stream from here on, without their rows being read (SNP-05).

    Args:
        stamp: When, by which run, in which epoch.
        tables: The new entries by `TableId.text`.
        snapshot: The snapshot's partition key.
        witness: What proves later that the source's history is still the same (A7).
    """
    return _snapshot(stamp, tables, SnapshotBegun(snapshot=snapshot, data=False), witness)


def snapshot_ended(stamp: Stamp, entry: Entry, ended: SnapshotEnded, *, witness: Witness | None) -> OffsetRow:
    """One table's snapshot has ended; it streams again.

    Args:
        stamp: When, by which run, in which epoch.
        entry: The new entry of the table.
        ended: What is known about the end.
        witness: What proves later that the source's history is still the same (A7).
    """
    return _snapshot(stamp, {ended.table: entry}, ended, witness)


def signal_answered(stamp: Stamp, *, snapshot: str, signal: str) -> OffsetRow:
    """A signal led to no read: without a row that names the signal, it would be carried out again.

    Args:
        stamp: When, by which run, in which epoch.
        snapshot: The snapshot's partition key.
        signal: The id of the signal.
    """
    facts = SnapshotBegun(snapshot=snapshot, signal=signal, data=False)
    return OffsetRow("status", stamp.at, {}, epoch=stamp.epoch, run_id=stamp.run_id, facts=facts)


def incremental_ended(stamp: Stamp, *, table: str, object_id: int, number: int, batch: int, low: str) -> OffsetRow:
    """Every row of a table was read by an incremental snapshot, or has changed since it began.

    Args:
        stamp: When, by which run, in which epoch.
        table: `TableId.text` of the table.
        object_id: The table's identity at the source.
        number: The snapshot's number.
        batch: The `_batch` of its last rows.
        low: What was captured when it began.
    """
    sweep = SweepBound(low=low, number=number)
    facts = IncrementalEnded(table=table, object_id=object_id, number=number, batch=batch, sweep=sweep)
    return OffsetRow("status", stamp.at, {}, epoch=stamp.epoch, run_id=stamp.run_id, facts=facts)


def rows_swept(stamp: Stamp, *, table: str, object_id: int, number: int) -> OffsetRow:
    """The sweep after snapshot `number` is done.

    Args:
        stamp: When, by which run, in which epoch.
        table: `TableId.text` of the table.
        object_id: The table's identity at the source.
        number: The snapshot's number.
    """
    facts = Swept(table=table, object_id=object_id, number=number)
    return OffsetRow("status", stamp.at, {}, epoch=stamp.epoch, run_id=stamp.run_id, facts=facts)


def epoch_begun(stamp: Stamp, *, restored: str, by: str | None) -> OffsetRow:
    """A new epoch begins: every table is read again.

    Args:
        stamp: When, by which run, in which epoch.
        restored: What showed that the source went back in time.
        by: Who decided to continue; None: `snapshot.mode` did.
    """
    facts = EpochBegun(restored=restored, by=by)
    return OffsetRow("epoch", stamp.at, {}, epoch=stamp.epoch, run_id=stamp.run_id, facts=facts)


def witness_text(witness: Witness | None) -> str | None:
    """The witness as `_offsets` keeps it."""
    return None if witness is None else _witnesses().dump_json(witness).decode()


def witness_of_text(text: str | None) -> Witness | None:
    """The witness from this text."""
    return None if text is None else _witnesses().validate_json(text)


def facts_text(facts: Facts | None) -> str | None:
    """The facts as `_offsets` keeps them."""
    return None if facts is None else _facts().dump_json(facts).decode()


def facts_of_text(text: str | None) -> Facts | None:
    """The facts from this text."""
    return None if text is None else _facts().validate_json(text)


def _snapshot(
    stamp: Stamp,
    tables: Mapping[str, Entry],
    facts: SnapshotBegun | SnapshotEnded,
    witness: Witness | None = None,
) -> OffsetRow:
    return OffsetRow(
        kind="snapshot",
        at=stamp.at,
        tables=tables,
        epoch=stamp.epoch,
        partition=facts.snapshot,
        run_id=stamp.run_id,
        witness=witness,
        facts=facts,
    )


@cache
def _facts() -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[Facts, Field(discriminator="step")])


@cache
def _witnesses() -> TypeAdapter[Witness]:
    return TypeAdapter(Witness)
