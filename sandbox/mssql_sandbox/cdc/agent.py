"""The part of SQL Server Agent that change data capture needs: the capture and cleanup jobs on the server's clock.

A running capture job keeps the settings it started with. Jobs are asyncio tasks of the server's loop; every wait uses
the virtual clock. A pass over the log belongs to `scan`, a cleanup to `cleanup`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from mssql_sandbox.cdc.cleanup import run_cleanup
from mssql_sandbox.cdc.instances import DatabaseCapture
from mssql_sandbox.cdc.job_runs import CANCELED, SUCCEEDED, JobKey, JobRuns
from mssql_sandbox.cdc.job_settings import JobSettings, JobType
from mssql_sandbox.cdc.scan import scan
from mssql_sandbox.cdc_messages import MESSAGES
from mssql_sandbox.engine.lock_requests import MustWait
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.errors import SqlError

CLEANUP_HOUR = 2
_DATETIME_PER_DAY = 300 * 86_400
_DATETIME_PER_SECOND = 300
_RETRY_SECONDS = 60.0
AZURE_CAPTURE_SECONDS, AZURE_CLEANUP_SECONDS = 20, 3600
"""The scheduler of Azure SQL Database ignores these settings [doc]."""


def run_scans(capture: DatabaseCapture, *, maxtrans: int, maxscans: int) -> int:
    """Up to `maxscans` passes, until one finds nothing; returns the number of transactions read.

    Raises:
        SqlError: a pass failed; those before it count.
    """
    total = 0
    for _ in range(maxscans):
        read = scan(capture, maxtrans)
        total += read
        if read == 0:
            break
    return total


@dataclass(slots=True)
class Agent:
    """The running jobs by database id and type, and the daily schedules of cleanup."""

    server: Server
    capture_interval: float | None = None
    """Seconds between passes instead of each job's polling interval: for tests and demonstrations."""
    _running: dict[tuple[int, JobType], asyncio.Task[None]] = field(default_factory=dict)
    _schedules: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    runs: JobRuns = field(init=False)

    def __post_init__(self) -> None:
        self.runs = JobRuns(self._now)

    @property
    def _now(self) -> int:
        return self.server.clock.local_datetime()

    def is_running(self, capture: DatabaseCapture, job_type: JobType) -> bool:
        """Whether the job is running."""
        task = self._running.get((capture.database.id, job_type))
        return task is not None and not task.done()

    def start(self, capture: DatabaseCapture, job_type: JobType, settings: JobSettings) -> None:
        """Start a job that is not running; the caller has checked that Agent is running."""
        work = self._capture(capture, settings) if job_type == "capture" else self._cleanup(capture, settings)
        name = f"cdc.{capture.database.name}_{job_type}"
        self.runs.begin((capture.database.id, job_type), self._now)
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[capture.database.id, job_type] = task

    def stop(self, capture: DatabaseCapture, job_type: JobType) -> None:
        """Stop a job."""
        task = self._running.pop((capture.database.id, job_type), None)
        if task is not None:
            task.cancel()
            self.runs.end((capture.database.id, job_type), self._now, status=CANCELED)

    def schedule_cleanup(self, capture: DatabaseCapture, settings: JobSettings) -> None:
        """Schedule the cleanup job for 02:00 server time every day; in Azure SQL Database every hour [doc]."""
        self.unschedule(capture)
        task = asyncio.get_running_loop().create_task(self._daily(capture, settings))
        self._schedules[capture.database.id] = task

    def unschedule(self, capture: DatabaseCapture) -> None:
        """Remove the daily schedule."""
        task = self._schedules.pop(capture.database.id, None)
        if task is not None:
            task.cancel()

    def forget(self, capture: DatabaseCapture) -> None:
        """Stop all jobs of a database."""
        self.stop(capture, "capture")
        self.stop(capture, "cleanup")
        self.unschedule(capture)

    def close(self) -> None:
        """Stop everything: Agent or the server stops."""
        for key in self._running:
            self.runs.end(key, self._now, status=CANCELED)
        for task in (*self._running.values(), *self._schedules.values()):
            task.cancel()
        self._running.clear()
        self._schedules.clear()

    # -- the jobs ---------------------------------------------------------------------------------------------

    async def _capture(self, capture: DatabaseCapture, settings: JobSettings) -> None:
        while True:
            if not capture.paused:
                self._scan(capture, settings)
            azure = self.server.version.is_azure
            if not settings.continuous and not azure:
                self.runs.end((capture.database.id, "capture"), self._now, status=SUCCEEDED)
                return
            interval = AZURE_CAPTURE_SECONDS if azure else settings.pollinginterval
            if self.capture_interval is not None:
                interval = self.capture_interval
            await self.server.clock.sleep(max(interval, 0.01))

    def _scan(self, capture: DatabaseCapture, settings: JobSettings) -> None:
        """Scan, and record the result or the failure in the job's history."""
        key: JobKey = (capture.database.id, "capture")
        try:
            read = run_scans(capture, maxtrans=settings.maxtrans, maxscans=settings.maxscans)
        except SqlError as failure:
            said = f"Msg {failure.number}, Level {failure.severity}, State {failure.state}, {failure.message}"
            self.runs.note(key, self._now, failure.number, failure.severity, said, failed=True)
            return
        found = next((session for session in reversed(capture.history.sessions) if session.tran_count), None)
        if read and found is not None:
            places = (found.start_lsn, found.end_lsn, found.tran_count, found.command_count)
            self.runs.note(key, self._now, 22803, 10, MESSAGES[22803][1] % places)

    async def _cleanup(self, capture: DatabaseCapture, settings: JobSettings) -> None:
        while True:
            try:
                run_cleanup(capture, settings.retention)
            except MustWait as waiting:
                waiting.request.manager.cancel(waiting.request)
                await self.server.clock.sleep(_RETRY_SECONDS)
            else:
                self.runs.end((capture.database.id, "cleanup"), self._now, status=SUCCEEDED)
                return

    async def _daily(self, capture: DatabaseCapture, settings: JobSettings) -> None:
        while True:
            now = self.server.clock.local_datetime()
            azure = self.server.version.is_azure
            await self.server.clock.sleep(AZURE_CLEANUP_SECONDS if azure else seconds_to_cleanup(now))
            self.runs.begin((capture.database.id, "cleanup"), self._now)
            await self._cleanup(capture, settings)


def seconds_to_cleanup(now: int) -> float:
    """Seconds from a `datetime` storage value to the next 02:00."""
    time_of_day = now % _DATETIME_PER_DAY
    wanted = CLEANUP_HOUR * 3600 * _DATETIME_PER_SECOND
    ahead = wanted - time_of_day if time_of_day < wanted else wanted - time_of_day + _DATETIME_PER_DAY
    return ahead / _DATETIME_PER_SECOND
