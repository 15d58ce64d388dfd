"""The facts on which the planner decides, and the sensor's cursor: values only.

`capture/survey.py` collects them from the source and from the lake, tests write them down by hand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.policy import SnapshotPolicy
from mssql_cdc.schema import TableId

Status = Literal["new", "streaming", "snapshot", "lost", "failed", "excluded"]
"""How a table stands by its newest `_offsets` entry; `new` has none."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One capture instance of a member. `before` is the newest captured transaction below `start`, if any."""

    object_id: int
    name: str
    start: Lsn
    min_lsn: Lsn | None
    before: Lsn | None = None

    def usable_from(self, position: Lsn) -> bool:
        """Whether a reader at `position` may use this instance: nothing between the two is left to read (B14)."""
        return self.start <= position.increment() or (self.before is not None and self.before <= position)


@dataclass(frozen=True, slots=True)
class Member:
    """One captured table: its own position (rule A1), its instances oldest first, its snapshot's state.

    `closed_until` is the largest log end of its snapshot while the stream has not passed it (rule C18);
    `snapshot` the partition key of a snapshot that has begun and not ended.
    """

    table: TableId
    status: Status
    position: Lsn | None = None
    instances: tuple[Instance, ...] = ()
    closed_until: Lsn | None = None
    snapshot: str | None = None

    def instance_at(self, position: Lsn) -> Instance | None:
        """The newest instance that a reader at `position` may use, else the oldest; None when CDC is off.

        An instance shows no minimum for up to one poll of the capture job after it was made: till then an older one
        is read.
        """
        begun = [instance for instance in self.instances if instance.min_lsn] or list(self.instances)
        usable = [instance for instance in begun if instance.usable_from(position)]
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
class Activity:
    """A run that is queued or working: for a range or for a snapshot, by its partition key."""

    kind: Literal["range", "snapshot"]
    key: str
    run_id: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A snapshot that a signal or an operator has asked for and that has not begun."""

    key: str
    tables: tuple[TableId, ...]
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """The sensor's memory. A hint only: losing it costs a retry count, never a row."""

    pending_key: str | None = None
    attempt: int = 0
    not_before: datetime | None = None
    v: int = 1

    def to_json(self) -> str:
        """The text that Dagster keeps."""
        wait = self.not_before.isoformat() if self.not_before else None
        return json.dumps({"v": self.v, "pending_key": self.pending_key, "attempt": self.attempt, "not_before": wait})

    @classmethod
    def from_json(cls, text: str | None) -> Cursor:
        """The cursor of this text; an empty, old or unreadable one starts afresh."""
        try:
            data = json.loads(text or "{}")
            wait = data.get("not_before")
            if data.get("v") != 1:
                return cls()
            return cls(data["pending_key"], int(data["attempt"]), datetime.fromisoformat(wait) if wait else None)
        except (AttributeError, ValueError, KeyError, TypeError):
            return cls()


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds and patience, from the configuration."""

    max_attempts: int = 5
    retry_wait: timedelta = timedelta(seconds=10)
    idle_advance: timedelta = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the decision depends on, at one moment.

    `captured`, `scanned` as in correctness, "Words"; `settled` is the newest mapping row of no transaction that has
    a newer row behind it; all three were read in the order settled, scanned, captured. `row_bound` and
    `transaction_bound` are the largest commit LSNs which the configured sizes of a range allow (None: no bound
    below `captured`). `cut` is the end of the newest complete cut, `idle_for` the age of the newest `_offsets` row.
    `restored` says what the witness found when the source went back in time (rule A7).
    """

    now: datetime
    members: tuple[Member, ...]
    captured: Lsn | None
    scanned: Lsn | None = None
    settled: Lsn | None = None
    cut: Lsn | None = None
    epoch: int = 0
    row_bound: Lsn | None = None
    transaction_bound: Lsn | None = None
    idle_for: timedelta = timedelta(0)
    restored: str | None = None
    running: tuple[Activity, ...] = ()
    asked: tuple[Asked, ...] = ()
    snapshot_failures: int = 0
    snapshot_failed_at: datetime | None = None
    policy: SnapshotPolicy = field(default_factory=SnapshotPolicy)
    limits: Limits = field(default_factory=Limits)
    cursor: Cursor = field(default_factory=Cursor)
