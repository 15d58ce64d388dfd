"""The facts on which the planner bases its decision, and its cursor: values only.

`capture/survey.py` collects them from the source and the lake; tests construct them directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.policy import SnapshotPolicy
from mssql_cdc.schema import TableId

MERGE_PREFIX = "merge-"
Status = Literal["new", "streaming", "snapshot", "lost", "failed", "excluded"]
"""A table's status according to its newest `_offsets` entry; a `new` table has none."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One capture instance of a member.

    `identity` distinguishes it from a later instance of the same name. `before` is the newest captured
    transaction below `start`, if any.
    """

    object_id: int
    name: str
    start: Lsn
    min_lsn: Lsn | None
    before: Lsn | None = None
    identity: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """One captured table: its own position (A1), its instances (oldest first), its snapshot's state.

    `read` is the identity of the instance that was read up to `position`, `shown` those of all instances that existed
    when the table reached `position`. `closed_until` is the largest log end of its snapshot while the stream has not
    passed it (C18); `snapshot` the partition key of a snapshot that has begun but not ended. `rekeyed`: its key's
    definition has changed since its rows were last read (B15). `tampered`: its change log may lack rows, or contain
    some twice (A5). `revived`: it was given up, and is being retried. `signals`: it is the signal table, of which
    no snapshot is taken.
    """

    table: TableId
    status: Status
    position: Lsn | None = None
    instances: tuple[Instance, ...] = ()
    closed_until: Lsn | None = None
    snapshot: str | None = None
    read: str | None = None
    shown: frozenset[str] = frozenset()
    rekeyed: bool = False
    tampered: str | None = None
    revived: bool = False
    signals: bool = False

    @property
    def streams_on(self) -> bool:
        """Whether it is a lost signal table: no snapshot reads it, so it streams on after what is lost (SIG-02)."""
        return self.status == "lost" and self.signals

    @property
    def still_read(self) -> bool:
        """Whether the instance that was read still exists."""
        return any(instance.identity == self.read for instance in self.instances)

    def continues(self, instance: Instance, position: Lsn) -> bool:
        """Whether continuing in `instance` after `position` misses no change (B14).

        This holds if the instance was already being read, if it existed then and holds everything after the position,
        or if the instance that was read still exists and shows nothing between the position and this instance's start.
        Without that instance, the changes in between are unknown because CDC may have been disabled for a while. An
        instance that is newer than the position and begins at or below it belongs to another history of the source, in
        which other transactions have these LSNs: nothing shows what they changed before it began.
        """
        existed = instance.identity in self.shown
        if instance.identity == self.read or (existed and instance.start <= position.increment()):
            return True
        return self.still_read and instance.before is not None and instance.before <= position

    def reads_from(self, instance: Instance, position: Lsn) -> Lsn:
        """Where reading in `instance` begins after `position`: just below its start if nothing lies in between (B14).

        If the instance was already being read, only cleanup can have raised its start above the position: its reader
        detects this, and must request what is gone.
        """
        if instance.identity == self.read or not self.continues(instance, position):
            return position
        return max(position, instance.start.decrement())

    def instance_at(self, position: Lsn) -> Instance | None:
        """The newest instance that a reader at `position` may use, otherwise the oldest; None if CDC is off.

        An instance shows no minimum for up to one poll of the capture job after its creation; until then an older one
        is read.
        """
        if len(self.instances) == 1:
            return self.instances[0]
        begun = [instance for instance in self.instances if instance.min_lsn] or list(self.instances)
        usable = [instance for instance in begun if self.continues(instance, position)]
        return usable[-1] if usable else next(iter(begun), None)

    def can_be_snapshotted(self, captured: Lsn) -> bool:
        """Whether the newest instance shows a minimum, or never will: capture has passed its start (A9)."""
        return bool(self.instances) and (bool(self.instances[-1].min_lsn) or self.instances[-1].start <= captured)

    def next_instance(self, position: Lsn) -> Instance | None:
        """The instance that follows the one at `position`."""
        now = self.instance_at(position)
        later = [i for i in self.instances if now is not None and i.start > now.start]
        return later[0] if later else None


@dataclass(frozen=True, slots=True)
class Absent:
    """A table that cannot be captured: the source no longer shows it, or it is unfit.

    `lost`: its changes may be gone; otherwise it keeps its position. `status` is its current status. `former` is its
    object id, if another table now has its name, or a name that reads the same.
    """

    table: TableId
    status: Status
    position: Lsn | None
    reason: str
    lost: bool
    former: int | None = None

    @property
    def shown(self) -> TableId:
        """What distinguishes it from every other table: its name, with its object id if the name is another table's."""
        known = f"{self.table.name} (object id {self.former})"
        return self.table if self.former is None else replace(self.table, name=known)


@dataclass(frozen=True, slots=True)
class Activity:
    """A queued or running run with its requested partition key (None: current tables only)."""

    kind: Literal["range", "snapshot", "merge"]
    key: str | None
    run_id: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The finished runs with one key: failures or cancellations, when the last was, and the newest run's success."""

    failures: int = 0
    failed_at: datetime | None = None
    succeeded: bool = False


@dataclass(frozen=True, slots=True)
class Runs:
    """What an orchestrator knows about this database's runs. Hints only: without them a retry comes too early.

    `outcomes` contains the keys in `Facts.keys`.
    """

    active: tuple[Activity, ...] = ()
    outcomes: Mapping[str, Outcome] = field(default_factory=dict[str, Outcome])

    def of(self, key: str | None) -> Outcome:
        """Return the outcome of the runs with this key."""
        return self.outcomes.get(key, Outcome()) if key is not None else Outcome()


@dataclass(frozen=True, slots=True)
class Asked:
    """A snapshot that a signal or an operator requested and that has not begun; `paused`: it must not begin yet."""

    key: str
    tables: tuple[TableId, ...]
    signal: str | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Cursor:
    """The planner's memory between two decisions. A hint only: losing it costs a retry count, never a row.

    `pending_key` is the range that was last requested, for the `attempt`-th time, to read `tables` (`TableId.text`);
    `snapshot_key` the last requested snapshot of new tables; `merged` the number of the cut at which no current table
    was behind.
    """

    pending_key: str | None = None
    attempt: int = 0
    not_before: datetime | None = None
    snapshot_key: str | None = None
    merged: int | None = None
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds and wait times from the configuration."""

    max_attempts: int = 5
    retry_wait: timedelta = timedelta(seconds=10)
    idle_advance: timedelta = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the decision depends on, at one point in time.

    `captured` and `scanned` are defined in correctness, "Terms"; `settled` is the newest mapping row without a
    transaction that is followed by a newer row; all three were read in the order settled, scanned, captured.
    `row_bound` and `transaction_bound` are the largest commit LSNs which the configured sizes of a range allow (None:
    no bound below `captured`). `cut` is the end of the newest complete cut and `cut_number` its row, `idle_for` the age
    of the newest `_offsets` row. `absent` are tables that cannot be captured now, `snapshots` the keys of snapshots
    that have begun, `paused` those of them that must not continue. `behind` are the tables whose current table lacks
    rows of the newest cut, `due` those of them whose interval has passed. `restored` says what the witness found when
    the source went back in time (A7), `held_back` why capture may be further behind than an idle log suggests.
    """

    now: datetime
    members: tuple[Member, ...]
    captured: Lsn | None
    absent: tuple[Absent, ...] = ()
    scanned: Lsn | None = None
    settled: Lsn | None = None
    cut: Lsn | None = None
    cut_number: int = 0
    epoch: int = 0
    row_bound: Lsn | None = None
    transaction_bound: Lsn | None = None
    idle_for: timedelta = timedelta(0)
    restored: str | None = None
    held_back: str | None = None
    asked: tuple[Asked, ...] = ()
    snapshots: frozenset[str] = frozenset()
    paused: frozenset[str] = frozenset()
    behind: tuple[TableId, ...] = ()
    due: tuple[TableId, ...] = ()
    runs: Runs = field(default_factory=Runs)
    policy: SnapshotPolicy = field(default_factory=SnapshotPolicy)
    limits: Limits = field(default_factory=Limits)
    cursor: Cursor = field(default_factory=Cursor)

    @property
    def begun_snapshots(self) -> tuple[str, ...]:
        """The keys of the snapshots that have begun and not ended, oldest first."""
        return tuple(sorted({m.snapshot for m in self.members if m.status == "snapshot" and m.snapshot}))

    @property
    def kept_snapshot(self) -> str | None:
        """The key of the snapshot of new tables that was decided on, so far without effect."""
        kept = self.cursor.snapshot_key
        return kept if kept not in self.snapshots else None

    @property
    def keys(self) -> frozenset[str]:
        """The keys whose runs the decision depends on."""
        wanted = {self.cursor.pending_key, self.kept_snapshot, merge_key(self.cut_number), *self.begun_snapshots}
        return frozenset(key for key in wanted if key is not None) | {one.key for one in self.asked}


def merge_key(cut: int) -> str:
    """Return the key of a run that only merges, up to the cut with this number."""
    return f"{MERGE_PREFIX}{cut}"
