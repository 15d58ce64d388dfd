"""The values that a source returns: captured tables, capture instances, marks, witnesses, chunks.

Outside `source/`, positions are opaque except for their order. Each source's package determines these values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import Column, TableId, TableSchema, UniqueKey

_NOT_BEHIND = timedelta(0)
Bound = tuple[str | None, ...]
"""The key of a row, one text per key column; the source that wrote the texts reads them back."""
Texts = tuple[str | None, ...]
"""Canonical texts of some columns of a row (`canonical`)."""


@dataclass(frozen=True, slots=True)
class CaptureInstance:
    """One stream of changes of a table, with the structure it captures (SQL Server: a capture instance).

    Attributes:
        name: unique in its database.
        object_id: identifies the instance together with `created` (B14): a re-created instance has another id.
        change_table: (schema, name) of the change table; None where the login may not read it directly.
        source_object_id: identifies the source table across renames (B15).
        created: when the instance was created.
        start_lsn: the instance holds changes from here on.
        schema: the captured columns.
        ordinals: the place of each captured column in the update mask.
        has_command_id: whether its rows carry a command id.
        warnings: lines about columns whose change rows cannot be trusted (E27), and about missing changes.
        keys: every key that identifies its rows (B12), the best one first.
        streams: whether it has changes; False for a table that is not captured, only read once (SNP-03).
    """

    name: str
    object_id: int
    change_table: tuple[str, str] | None
    source_object_id: int
    created: datetime
    start_lsn: Lsn
    schema: TableSchema
    ordinals: tuple[int, ...]
    has_command_id: bool = True
    warnings: tuple[str, ...] = ()
    keys: tuple[UniqueKey, ...] = ()
    streams: bool = True

    @property
    def identity(self) -> str:
        """Distinguishes this instance from earlier and later ones of the same name (B14).

        Its start LSN does not: cleanup advances it.
        """
        return f"{self.object_id}/{self.created.isoformat()}"


@dataclass(frozen=True, slots=True)
class Concealment:
    """What a source alters or hides when the login reads it, without an error.

    Attributes:
        masked: the columns in which it shows masks in place of values.
        policies: the policies that may hide rows.
    """

    masked: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A source table under capture with its instances, oldest first.

    Attributes:
        table_id: its name.
        object_id: identifies it across renames.
        instances: its capture instances.
        concealed: what of the table the source conceals from the login.
        unproven: lines about what is taken on the operator's word.
    """

    table_id: TableId
    object_id: int
    instances: tuple[CaptureInstance, ...]
    concealed: Concealment = Concealment()
    unproven: tuple[str, ...] = ()

    @property
    def newest(self) -> CaptureInstance:
        """The instance whose structure a new snapshot uses."""
        return self.instances[-1]


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a previously captured table is no longer listed; `lost`: its changes may be gone."""

    reason: str
    lost: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """The progress of capture, read in the order settled, captured, maximum.

    `captured` is the newest captured transaction (or, before the first one, the smallest start of an instance);
    `settled` the newest mapping row that is followed by a newer row; `maximum` what the source itself reports
    as its newest position. None: there is no such row yet.
    """

    captured: Lsn | None
    settled: Lsn | None
    maximum: Lsn | None


@dataclass(frozen=True, slots=True)
class CaptureHealth:
    """The state of capture, by the source's clock.

    Attributes:
        now: the source's clock.
        scanned: when capture last scanned the log; if it never has, when the tables were enabled. None: unknown.
        problem: what is wrong if capture has stalled.
        unread: for each requested position, the commit time of the first captured transaction after it; a position
            that has none is left out.
        behind: how old the changes that the newest complete scan found were; zero: it found none, or this is unknown.
    """

    now: datetime
    scanned: datetime | None = None
    problem: str | None = None
    unread: Mapping[Lsn, datetime] = field(default_factory=dict[Lsn, datetime])
    behind: timedelta = _NOT_BEHIND


@dataclass(frozen=True, slots=True)
class Witness:
    """The newest captured transaction at or below a position, to be recognized later (A7).

    `fork` identifies the history that the transaction belongs to, in case cleanup has removed the transaction by then;
    None where the source does not show it.
    """

    start_lsn: Lsn
    tran_id: str
    tran_begin_lsn: str
    tran_end_time: str
    fork: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class LogMark:
    """An end of the log, with the newest scan session when it was read, and that session's number of empty scans.

    `fork` identifies the history that the log belongs to; None where the source does not show it.
    """

    lsn: Lsn
    session_id: int = 0
    empty_scans: int = 0
    fork: str | None = None


@dataclass(frozen=True, slots=True)
class Volume:
    """How much there is to read: rows by instance name up to `bound` (None: up to the end of every range)."""

    bound: Lsn | None
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows with `lower < key <= upper`; None: no bound. A table without a key has one chunk, unbounded.

    `keys`: only the rows with these keys.
    """

    number: int
    lower: Bound | None = None
    upper: Bound | None = None
    keys: tuple[Bound, ...] | None = None


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table as the source itself describes it, captured or not.

    Attributes:
        table_id: its name.
        object_id: identifies it across renames.
        columns: all of its columns.
        captured: the captured columns of each of its instances, with their positions; empty when it is not captured.
        unique: the columns of each of its unique keys.
    """

    table_id: TableId
    object_id: int
    columns: tuple[Column, ...]
    captured: tuple[Mapping[str, int], ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Buckets:
    """Some of the `count` buckets that the hashes of keys fall into."""

    count: int
    numbers: frozenset[int]


@dataclass(frozen=True, slots=True)
class Checksum:
    """A number of rows, and the sums of two 8-byte lanes of their SHA-256 hashes; sums of parts add up."""

    rows: int = 0
    low: int = 0
    high: int = 0

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows + other.rows, self.low + other.low, self.high + other.high)
