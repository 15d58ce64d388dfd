"""What Agent records of its jobs: creation times, whether they run, and their history.

Kept in memory with the running tasks; msdb's tables are computed from it. Messages and steps are those of the jobs of
change data capture [pub][sys].
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from mssql_sandbox.cdc.job_settings import JobType

KEPT = 100
"""Lines of history per job: Agent's own default."""
FAILED, SUCCEEDED, CANCELED, IN_PROGRESS = 0, 1, 3, 4
JobKey = tuple[int, JobType]
"""The id of the database, and the job type."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a job; `on_success` and `on_failure`: 1 ends with success, 2 with failure, 3 continues."""

    name: str
    command: str
    on_success: int = 1
    on_failure: int = 2


@dataclass(frozen=True, slots=True)
class JobKind:
    """What all capture jobs, or all cleanup jobs, share; the schedule is `freq_type` and so on."""

    description: str
    category_id: int
    category: str
    steps: tuple[Step, ...]
    schedule: str
    frequency: tuple[int, int, int, int, int]
    start_time: int


KINDS: Mapping[JobType, JobKind] = MappingProxyType(
    {
        "capture": JobKind(
            "CDC Log Scan Job",
            13,
            "REPL-LogReader",
            (
                Step("Starting Change Data Capture Collection Agent", "RAISERROR(22801, 10, -1)", 3, 3),
                Step("Change Data Capture Collection Agent", "sys.sp_MScdc_capture_job"),
            ),
            "CDC capture agent schedule.",
            (64, 0, 0, 0, 0),
            0,
        ),
        "cleanup": JobKind(
            "CDC Cleanup Job",
            16,
            "REPL-Checkup",
            (Step("Change Data Capture Cleanup Agent", "sys.sp_MScdc_cleanup_job"),),
            "CDC cleanup agent schedule.",
            (4, 1, 1, 1, 1),
            20000,
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of `sysjobhistory`; step 0 is the outcome of the job. Times are `datetime` storage values."""

    instance: int
    step: int
    step_name: str
    message_id: int
    severity: int
    message: str
    status: int
    began: int
    ended: int


@dataclass(slots=True)
class Activity:
    """The newest run of a job."""

    requested: int
    stopped: int | None = None


@dataclass(slots=True)
class JobRuns:
    """Runs and history of all jobs of a server."""

    agent_started: int
    created: dict[JobKey, int] = field(default_factory=dict)
    activity: dict[JobKey, Activity] = field(default_factory=dict)
    _history: dict[JobKey, deque[Line]] = field(default_factory=dict)
    _instances: int = 0

    def history(self, key: JobKey) -> list[Line]:
        """The lines of a job, oldest first."""
        return list(self._history.get(key, ()))

    def begin(self, key: JobKey, now: int) -> None:
        """Record the start of a job; the first step of the capture job is done at once."""
        self.activity[key] = Activity(now)
        if key[1] == "capture":
            message = (
                "Starting the Change Data Capture Collection Agent job. To report on the progress of the operation, "
                "query the sys.dm_cdc_log_scan_sessions dynamic management view. [SQLSTATE 01000] (Message 22801).  "
                "The step succeeded."
            )
            self._add(key, 1, 22801, 10, message, SUCCEEDED, now)

    def note(self, key: JobKey, now: int, number: int, severity: int, message: str, *, failed: bool = False) -> None:
        """Add a message of the running step."""
        self._add(key, len(KINDS[key[1]].steps), number, severity, message, FAILED if failed else IN_PROGRESS, now)

    def end(self, key: JobKey, now: int, *, status: int) -> None:
        """Record the end of a job, or its stop."""
        running = self.activity.get(key)
        if running is None or running.stopped is not None:
            return
        running.stopped = now
        steps = KINDS[key[1]].steps
        last = f"The last step to run was step {len(steps)} ({steps[-1].name})."
        outcome = {SUCCEEDED: "The job succeeded.", FAILED: "The job failed."}
        said = outcome.get(status, "The job was stopped prior to completion.")
        self._add(key, 0, 0, 0, f"{said}  {last}", status, running.requested)

    def forget(self, key: JobKey) -> None:
        """Remove a dropped job."""
        for known in (self.created, self.activity, self._history):
            known.pop(key, None)

    def _add(self, key: JobKey, step: int, number: int, severity: int, message: str, status: int, began: int) -> None:
        self._instances += 1
        name = "(Job outcome)" if step == 0 else KINDS[key[1]].steps[step - 1].name
        running = self.activity.get(key)
        ended = running.stopped if running is not None and running.stopped is not None else began
        lines = self._history.setdefault(key, deque(maxlen=KEPT))
        lines.append(Line(self._instances, step, name, number, severity, message, status, began, max(began, ended)))
