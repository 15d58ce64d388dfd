"""Work of seconds to minutes in a separate thread, while ranges continue: sweeps and long updates of current tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mssql_cdc.errors import FencedError, MssqlCdcError, OvertakenError, TaskError
from mssql_cdc.follow.daemon_work import DaemonQueue
from mssql_cdc.follow.merge_retries import MergeRetries
from mssql_cdc.schema import TableId
from mssql_cdc.spark.tasks import described

T = TypeVar("T")

END_SECONDS = 20
"""How long work may continue after its run has ended; the next run repeats what was canceled."""
FORCE_SECONDS = 5.0
"""How long work may continue while its jobs are being canceled."""
_CANCEL_SECONDS = 0.5
REST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Begun:
    future: Future[Any]
    writes: bool


@dataclass
class SlowWork:
    """The slow work of one database, one piece after another. Each table waits at most once for each kind of it.

    Attributes:
        merges: The current tables whose last update failed, here or in the thread that reads the ranges.
    """

    merges: MergeRetries = field(default_factory=MergeRetries)
    _queue: DaemonQueue = field(default_factory=lambda: DaemonQueue("slow-work"))
    _begun: dict[tuple[TableId, type], _Begun] = field(default_factory=dict[tuple[TableId, type], _Begun])
    _resting: dict[TableId, float] = field(default_factory=dict[TableId, float])
    _aside: Future[None] | None = None

    @property
    def tables(self) -> frozenset[TableId]:
        """The tables whose current tables are written here, or will be: nothing else may write them."""
        return frozenset(table for (table, _), begun in self._begun.items() if begun.writes)

    @property
    def ended(self) -> bool:
        """Whether there is a result to take."""
        return any(begun.future.done() for begun in self._begun.values())

    def begin(self, table: TableId, kind: type[T], action: Callable[[], T], *, writes: bool = True) -> None:
        """Let the thread work on this table, unless it already waits for this kind of work.

        Args:
            table: The table.
            kind: The type of the result, by which it is taken.
            action: The work.
            writes: Whether it writes the current table.
        """
        if not self.waits(table, kind):
            self._begun[table, kind] = _Begun(self._queue.submit(action), writes)

    def aside(self, action: Callable[[], None]) -> None:
        """Let the thread do something that has no result, unless such work already waits or is being done.

        Args:
            action: The work, which has to handle its own errors.
        """
        if self._aside is None or self._aside.done():
            self._aside = self._queue.submit(action)

    def waits(self, table: TableId, kind: type) -> bool:
        """Whether such work on the table waits, is being done, or has a result that was not taken."""
        return (table, kind) in self._begun

    def take(self, kind: type[T]) -> tuple[dict[TableId, T], dict[TableId, MssqlCdcError]]:
        """Return the results of this kind, and the errors, of the work that has ended since the last call.

        Work that other writers made impossible is repeated; it is an error once that has happened too often in a row.
        """
        done: dict[TableId, T] = {}
        errors: dict[TableId, MssqlCdcError] = {}
        for (table, own), begun in list(self._begun.items()):
            if own is not kind or not begun.future.done():
                continue
            del self._begun[table, own]
            try:
                done[table] = begun.future.result()
            except OvertakenError as error:
                if self.merges.overtaken(table):
                    errors[table] = error
            except FencedError:
                continue  # Another run was faster; what it wrote is valid.
            except MssqlCdcError as error:
                errors[table] = error
            except Exception as error:  # noqa: BLE001 (any: the trouble of one table must not end the loop)
                errors[table] = TaskError(f"Work in the background failed: {described(error)}")
        return done, errors

    def rest(self, table: TableId) -> None:
        """Remember that work on the table failed, so that it is not repeated at every step."""
        self._resting[table] = time.monotonic() + REST_SECONDS

    def rests(self, table: TableId) -> bool:
        """Whether work on the table failed a moment ago."""
        return time.monotonic() < self._resting.get(table, 0.0)

    def close(self, cancel: Callable[[], None], *, patience: float = END_SECONDS) -> None:
        """End the thread, or abandon it: it may be in a call to its object store that nothing ends.

        Args:
            cancel: Cancels the Spark jobs of work that takes longer.
            patience: How long work may continue, in seconds.
        """
        waiting = [begun.future for begun in self._begun.values()] + ([self._aside] if self._aside is not None else [])
        running = [future for future in waiting if not future.cancel()]
        left = wait(running, timeout=patience).not_done
        end = time.monotonic() + FORCE_SECONDS
        while left and time.monotonic() < end:
            cancel()  # Repeatedly: it cancels the active job, and the same work may begin another one.
            left = wait(left, timeout=_CANCEL_SECONDS).not_done
        self._queue.close()
