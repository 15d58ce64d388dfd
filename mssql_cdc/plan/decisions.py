"""The planner's decisions: values only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.plan.facts import Instance
from mssql_cdc.schema import TableId

RESTORED_ADVICE = (
    "Capture stays stopped until an operator continues with `mssql-cdc acknowledge --restored` or the action "
    "go_on_after_restore of the signals asset. Every table is then read again"
)


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now; `until` is set if a retry is being held back, `alarm` if that needs an operator.

    `ended`: capture has ended, and later changes are not read.
    """

    reason: str
    until: datetime | None = None
    alarm: bool = False
    ended: bool = False

    def because_of(self, problem: str | None) -> Wait:
        """The same wait, with the problem of the source that causes it (None: there is none)."""
        return self if problem is None else replace(self, reason=f"{self.reason}; {problem}", alarm=True)


@dataclass(frozen=True, slots=True)
class Slice:
    """One table's part of a range: `(from_, to]` through one capture instance.

    Reading begins at `read_from`, which is just below the instance's start if nothing lies in between (B14).
    """

    table: TableId
    from_: Lsn
    to: Lsn
    instance: Instance
    read_from: Lsn


@dataclass(frozen=True, slots=True)
class Range:
    """Read the slices, then write one `_offsets` row; with `complete` that row is a cut.

    `idle` tables advance to `range.to` without reading (rule A8), `opens` may be merged afterwards for the first time
    (rule C18), `give_up` are set to `failed` so that cuts continue without them. `beside`: meanwhile, other tables wait
    for the retry of an earlier range.
    """

    range: LsnRange
    slices: tuple[Slice, ...]
    complete: bool
    attempt: int = 1
    idle: tuple[TableId, ...] = ()
    opens: tuple[TableId, ...] = ()
    give_up: tuple[TableId, ...] = ()
    beside: bool = False

    @property
    def tables(self) -> tuple[TableId, ...]:
        """The tables to read."""
        return tuple(part.table for part in self.slices)

    @property
    def key(self) -> str:
        """The partition key."""
        return self.range.partition_key


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Start or resume the snapshot `id` of these tables.

    `signal` is the id of the signal that requested it; `by_hand`: an operator requested it.
    """

    id: str
    tables: tuple[TableId, ...]
    attempt: int = 1
    signal: str | None = None
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge these current tables up to the newest complete cut, number `cut`; there is nothing new to read."""

    tables: tuple[TableId, ...]
    cut: int
    reason: str


@dataclass(frozen=True, slots=True)
class Loss:
    """Changes of `table` after `position` that may be gone; `former`: of the table that had this name before (B15)."""

    table: TableId
    position: Lsn
    reason: str
    former: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The source no longer has the next changes of these tables.

    The losses are recorded and the tables stop; `repaired`: `snapshot.mode` then requests a snapshot of them.
    """

    losses: tuple[Loss, ...]
    repaired: bool = False

    @property
    def tables(self) -> tuple[TableId, ...]:
        """The tables that lost changes."""
        return tuple(loss.table for loss in self.losses)

    @property
    def stopped(self) -> tuple[TableId, ...]:
        """The tables that stop; a table that has the name of a lost one continues."""
        return tuple(loss.table for loss in self.losses if not loss.former)

    @property
    def reason(self) -> str:
        """One line for the operator."""
        return "; ".join(f"{loss.table.text}: {loss.reason}" for loss in self.losses)


@dataclass(frozen=True, slots=True)
class Restored:
    """The source went back in time (rule A7): nothing may be captured in this epoch.

    `automatic`: `snapshot.mode` starts the next epoch automatically; otherwise an operator must decide.
    """

    reason: str
    automatic: bool = False


Decision = Wait | Range | Snapshot | Merge | Lost | Restored
