"""Snapshots beside the stream, as the loop and Dagster take them, in the schedule's own thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.follow.daemon_work import DaemonWork
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.follow.incremental_thread import GroupThread
from mssql_cdc.run.snapshots import SnapshotThread

T = TypeVar("T")


class WorkInPlace(DaemonWork[T]):
    """Has ended when `begin` returns; what ends a process, or is a defect, is raised there."""

    def begin(self, work: Callable[[], T]) -> None:
        future = Future[T]()
        try:
            future.set_result(work())
        except MssqlCdcError as error:
            future.set_exception(error)
        self._future = future


def snapshots_between(database: Database) -> SnapshotThread:
    """Takes a snapshot between the survey of a look and what the look does then; the next look takes its result."""
    return SnapshotThread(database, _work=WorkInPlace("snapshot"))


def chunks_between() -> IncrementalSnapshots:
    """Incremental snapshots whose next group is read at the end of a look; a later look takes it."""
    return IncrementalSnapshots(thread=GroupThread(WorkInPlace("incremental snapshot")))
