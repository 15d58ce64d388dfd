"""Takes a snapshot alongside a stream that keeps advancing its tables: in a separate run, or in a thread of this one.

What a snapshot does is in `capture/snapshot`; `plan/` decides which one is due.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tenacity import retry, retry_if_exception_type, stop_after_attempt

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.follow.daemon_work import DaemonWork
from mssql_cdc.plan.decisions import Snapshot
from mssql_cdc.plan.facts import Activity
from mssql_cdc.run.execute import Done, execute
from mssql_cdc.schema import TableId

ATTEMPTS = 20
"""A streaming run keeps advancing the tables until the snapshot has begun."""


def take_snapshot(
    database: Database, decision: Snapshot, *, progress: Callable[[Progress], None] | None = None
) -> Done:
    """Start or resume the snapshot, even if another run advances its tables meanwhile.

    Args:
        database: The database.
        decision: The snapshot.
        progress: Called with the progress after every group of chunks.
    """

    @retry(retry=retry_if_exception_type(FencedError), stop=stop_after_attempt(ATTEMPTS), reraise=True)
    def take() -> Done:
        done = execute(database, survey(database, currents=False), decision, progress=progress)
        failed = done.failed
        if failed and all(isinstance(error, FencedError) for error in failed.values()):
            # A range that was being read when the snapshot began has committed since: its rows come before.
            raise next(iter(failed.values()))
        return done

    return take()


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot that has ended, with its result or its error."""

    decision: Snapshot
    done: Done | None = None
    error: MssqlCdcError | None = None

    @property
    def failed(self) -> Mapping[TableId, MssqlCdcError]:
        """The tables that were not read, with their errors."""
        if self.error is not None:
            return dict.fromkeys(self.decision.tables, self.error)
        return self.done.snapshot.failed if self.done is not None and self.done.snapshot is not None else {}


@dataclass
class SnapshotThread:
    """Takes one snapshot of a database at a time, while its other tables stream (C22).

    Attributes:
        database: The database.
        progress: Called with the progress, from the thread.
    """

    database: Database
    progress: Callable[[Progress], None] | None = None
    _decision: Snapshot | None = None
    _work: DaemonWork[Done] = field(default_factory=lambda: DaemonWork[Done]("snapshot"))
    _begun: float = 0.0
    _stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def active(self) -> tuple[Activity, ...]:
        """The snapshot that is being taken, or whose result has not been taken yet."""
        if self._decision is None:
            return ()
        seconds = time.monotonic() - self._begun
        return (Activity("snapshot", self._decision.id, self.database.run_id, seconds),)

    @property
    def ended(self) -> bool:
        """Whether there is a result to take."""
        return self._work.ended

    def begin(self, decision: Snapshot) -> None:
        """Start the thread; if the process ends before the snapshot does, the next start resumes it (A6).

        Args:
            decision: The snapshot; the result of the previous one must have been taken.
        """
        self._decision, self._begun = decision, time.monotonic()
        # Only the source, the Spark session and the log are shared with the streaming thread.
        self._work.begin(lambda: take_snapshot(self.database.apart(), decision, progress=self._show))

    def take(self) -> Taken | None:
        """Return the result of the snapshot that has ended since the last call; None: there is none.

        Anything that is not an error of the snapshot, such as an interrupt, is raised here.
        """
        decision = self._decision
        if decision is None or not self._work.ended:
            return None
        self._decision = None
        found = self._work.take()
        return Taken(decision, error=found) if isinstance(found, MssqlCdcError) else Taken(decision, found)

    def close(self, cancel: Callable[[], None], *, patience: float) -> None:
        """End after the group of chunks that is being read; the next start continues from there.

        Args:
            cancel: Cancels the Spark jobs of a group that takes longer.
            patience: How long it may take, in seconds.
        """
        self._stopping.set()
        if not self._work.wait(patience):
            cancel()
            self._work.wait(1)

    def _show(self, progress: Progress) -> None:
        if self._stopping.is_set():
            raise _StoppedError
        if self.progress is not None:
            self.progress(progress)


class _StoppedError(Exception):
    """The process is ending; what was committed stays."""
