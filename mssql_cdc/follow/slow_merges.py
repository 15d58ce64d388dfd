"""Merges that only Spark can do, in a thread of their own: they take seconds to minutes, and ranges go on meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.lake.current import CurrentResult
from mssql_cdc.schema import TableId

END_SECONDS = 20
"""How long a merge may go on after its run has ended; the next run repeats one that was canceled."""


@dataclass
class SlowMerges:
    """The merges of one database, one after another. Each table waits at most once, so the queue is bounded."""

    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="merge"))
    _begun: dict[TableId, Future[CurrentResult]] = field(default_factory=dict[TableId, "Future[CurrentResult]"])

    @property
    def tables(self) -> frozenset[TableId]:
        """The tables that wait or are being merged: nothing else may merge them."""
        return frozenset(self._begun)

    def begin(self, table: TableId, action: Callable[[], CurrentResult]) -> None:
        """Let the thread merge this table, unless it already waits."""
        if table not in self._begun:
            self._begun[table] = self._pool.submit(action)

    def take(self) -> tuple[dict[TableId, CurrentResult], dict[TableId, MssqlCdcError]]:
        """Return the results and the errors of the merges that have ended since the last call."""
        done: dict[TableId, CurrentResult] = {}
        errors: dict[TableId, MssqlCdcError] = {}
        for table, future in [(table, future) for table, future in self._begun.items() if future.done()]:
            del self._begun[table]
            try:
                done[table] = future.result()
            except FencedError:
                continue  # Another run merged the same rows; its result is valid.
            except MssqlCdcError as error:
                errors[table] = error
        return done, errors

    def close(self, cancel: Callable[[], None], *, patience: float = END_SECONDS) -> None:
        """End the thread.

        Args:
            cancel: Cancels the Spark jobs of a merge that takes longer.
            patience: How long a merge may go on, in seconds.
        """
        for future in self._begun.values():
            future.cancel()
        running = [future for future in self._begun.values() if not future.cancelled()]
        if running and wait(running, timeout=patience).not_done:
            cancel()
        self._pool.shutdown(cancel_futures=True)
