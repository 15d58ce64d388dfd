"""Reads the next group of chunks in a thread of its own, while the stream goes on (INC-10).

What is read, and when, the step decides (`incremental_step.py`); it also saves the group, if it still follows what was
read before. A group that does not is garbage: another run was faster, or the snapshot was stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import Group, Reading
from mssql_cdc.errors import MssqlCdcError, TaskError
from mssql_cdc.spark.tasks import described


def _in_a_thread(work: Callable[[], None]) -> None:
    # A daemon: what it holds up when the process ends, the next run reads again.
    threading.Thread(target=work, name="incremental-snapshot", daemon=True).start()


@dataclass
class GroupThread:
    """Reads one group at a time.

    Attributes:
        start: Runs the work, which stores its own result.
    """

    start: Callable[[Callable[[], None]], None] = _in_a_thread
    _behind: Reading | None = None
    _future: Future[Group] | None = None
    _database: Database | None = None

    @property
    def is_free(self) -> bool:
        """Whether the next group may begin: the one before has been taken."""
        return self._future is None

    @property
    def reads(self) -> bool:
        """Whether a group is being read."""
        return self._future is not None and not self._future.done()

    def begin(self, database: Database, behind: Reading, read: Callable[[Database], Group]) -> None:
        """Read a group; the one before must have been taken.

        Args:
            database: The database. The thread works on one of its own.
            behind: What was read before.
            read: Reads the group.
        """
        assert self._future is None, self._behind
        own = self._database = self._database or database.apart()
        future = self._future = Future()
        self._behind = behind

        def work() -> None:
            try:
                future.set_result(read(own))
            except BaseException as error:  # noqa: BLE001 (handed to the thread that streams)
                future.set_exception(error)

        self.start(work)

    def take(self, reading: Reading) -> Group | None:
        """Return the group that was read since the last call; None: there is none, or it does not follow any more.

        Args:
            reading: What is read by now, of whatever table.

        Raises:
            MssqlCdcError: It could not be read.
        """
        future, behind = self._future, self._behind
        if future is None or behind is None or not future.done():
            return None
        self._future = self._behind = None
        error = future.exception()
        if error is not None and not isinstance(error, Exception):
            raise error  # It ends the process, whichever thread it came in.
        if not reading.is_read_like(behind):
            return None
        if error is None:
            return future.result()
        raise error if isinstance(error, MssqlCdcError) else TaskError(f"A group of chunks failed: {described(error)}")

    def wait(self, seconds: float) -> None:
        """Wait for the end of the group that is being read; a step saves it.

        Args:
            seconds: How long, at most.
        """
        if self._future is not None:
            wait([self._future], timeout=seconds)
