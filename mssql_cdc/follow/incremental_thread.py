"""Reads the next group of chunks in a separate thread, while the stream continues (INC-10).

The step decides what is read, and when (`incremental_step.py`); it also saves the group, if that still follows what was
read before. A group that does not is garbage: another run was faster, or the snapshot was stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import Group, Reading
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.follow.daemon_work import DaemonWork


@dataclass
class GroupThread:
    """Reads one group at a time; if the process ends during a read, the next run reads that group again.

    Attributes:
        work: Does the reading.
    """

    work: DaemonWork[Group] = field(default_factory=lambda: DaemonWork[Group]("incremental snapshot"))
    _after: Reading | None = None
    _database: Database | None = None

    @property
    def is_free(self) -> bool:
        """Whether the next group may begin: the previous one has been taken."""
        return self.work.is_free

    @property
    def reads(self) -> bool:
        """Whether a group is being read."""
        return self.work.runs

    def begin(self, database: Database, after: Reading, read: Callable[[Database], Group]) -> None:
        """Read a group; the previous one must have been taken.

        Args:
            database: The database. The thread works on a separate object.
            after: What was read before.
            read: Reads the group.
        """
        own = self._database = self._database or database.apart()
        self._after = after
        self.work.begin(lambda: read(own))

    def take(self, reading: Reading) -> Group | None:
        """Return the group that was read since the last call; None: there is none, or it no longer follows `reading`.

        Args:
            reading: What has been read by now, of whatever table.

        Raises:
            MssqlCdcError: It could not be read.
        """
        after = self._after
        if after is None or not self.work.ended:
            return None
        self._after = None
        found = self.work.take()
        if not reading.is_read_like(after):
            return None
        if isinstance(found, MssqlCdcError):
            raise found
        return found

    def wait(self, seconds: float) -> None:
        """Wait for the end of the group that is being read; a step saves it.

        Args:
            seconds: How long, at most.
        """
        self.work.wait(seconds)
