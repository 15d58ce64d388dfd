"""How long a loop that has to reach a goal continues without getting closer to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.survey import Survey
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.facts import Member
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import ShowSnapshot
from mssql_cdc.schema import TableId


@dataclass
class Patience:
    """The time since a loop last got closer to its goal.

    Reading past the goal is no progress, so that a wait ends even if the source never rests. Neither is reading again
    what failed.

    Attributes:
        seconds: How long it may be.
        show: Receives the progress of snapshots.
        clock: A monotonic clock, in seconds.
    """

    seconds: float
    show: ShowSnapshot | None = None
    clock: Callable[[], float] = time.monotonic
    _since: float = field(init=False)
    _left: object = None
    _waived: bool = False
    _chunks: dict[TableId, int] = field(default_factory=dict[TableId, int])

    def __post_init__(self) -> None:
        self._since = self.clock()

    def is_over(self, done: Done | None) -> bool:
        """Whether nothing has moved for too long.

        Args:
            done: What the last step has done; the next step's survey shows whether it was progress.
        """
        over = self.clock() > self._since + self.seconds
        if over and done is not None and not done.idle and not self._waived:
            self._waived = True
            return False
        return over

    def moved(self) -> None:
        """Note that the loop has come closer to its goal."""
        self._since, self._waived = self.clock(), False

    def progress(self, found: Progress) -> None:
        """Note the progress of a snapshot, and show it.

        Args:
            found: The progress.
        """
        done = {table: max(one.chunks_done, self._chunks.get(table, 0)) for table, one in found.tables.items()}
        if not done.items() <= self._chunks.items():
            self._chunks |= done
            self.moved()
        if self.show is not None:
            self.show(found)

    def look(self, done: Done, goal: Lsn | None, hopeless: Collection[TableId]) -> None:
        """Note what is left to do after a step.

        Args:
            done: What the step has done.
            goal: The position to reach; None: not known yet.
            hopeless: Tables that do not count because a retry cannot help them.
        """
        left = (goal is None, frozenset(_standing(left_to_read(done.seen, goal, hopeless))))
        if left != self._left or (done.chunks is not None and done.chunks.moved):
            self._left = left
            self.moved()


def has_reached(seen: Survey, goal: Lsn, hopeless: Collection[TableId]) -> bool:
    """Whether every streaming member has reached the goal and no snapshot is open, except paused ones.

    Args:
        seen: The survey.
        goal: The position to reach.
        hopeless: Tables to ignore because a retry cannot help them.
    """
    return not left_to_read(seen, goal, hopeless)


def left_to_read(seen: Survey, goal: Lsn | None, hopeless: Collection[TableId]) -> list[Member]:
    """Return the members that have not reached the goal, or whose snapshot is open and not paused.

    Args:
        seen: The survey.
        goal: The position to reach; None: no position is enough.
        hopeless: Tables to ignore because a retry cannot help them.
    """
    found: list[Member] = []
    for member in seen.facts.members:
        if member.table in hopeless or member.snapshot in seen.facts.paused:
            continue
        opens = member.status in {"new", "snapshot"} and bool(member.instances)
        # A table that was lost or given up does not stream, so it would never open.
        closed = member.closed_until is not None and member.status == "streaming"
        behind = member.position is None or goal is None or member.position < goal
        if opens or closed or (member.status == "streaming" and behind and seen.facts.policy.stream):
            found.append(member)
    return found


def _standing(members: Iterable[Member]) -> Iterable[tuple[Any, ...]]:
    for one in members:
        yield one.table, one.status, one.position, one.closed_until
