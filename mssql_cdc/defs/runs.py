"""Translates Dagster's run records for the planner: the active runs and the outcomes of earlier runs.

These are hints: deleting every run costs a retry count, never a row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import dagster as dg

from mssql_cdc.defs.handover import HANDED_OVER, STATE_TAG
from mssql_cdc.defs.setup import Setup
from mssql_cdc.lsn import LsnRange
from mssql_cdc.plan import facts as planner
from mssql_cdc.plan.facts import MERGE_PREFIX, Activity, Outcome

SENSOR_TAG = "dagster/sensor_name"
RANGE_TAG = "mssql_cdc/range"
"""The range that a run begins with; else the window in which it was requested, or the run that it follows."""
SNAPSHOT_TAG = "mssql_cdc/snapshot"
ATTEMPT_TAG = "mssql_cdc/attempt"
MERGE_TAG = "mssql_cdc/merge"
AGAIN_TAG = "mssql_cdc/again"
"""Set on the first run of a window that begins with a range: it also retries the tables that were given up."""
IN_PROGRESS = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
WAITING = {dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED}
UNDONE = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dataclass(frozen=True, slots=True)
class Stream:
    """A run that streams or will: for how many seconds it has been running (0: it has not begun) and queued."""

    run_id: str
    seconds: float = 0.0
    queued: float = 0.0


@dataclass(frozen=True, slots=True)
class RunRecords:
    """The runs of one database's jobs, including those launched in the UI, which do not name the job."""

    instance: dg.DagsterInstance
    setup: Setup
    job_name: str
    snapshot_job_name: str
    silent: Mapping[str, float] = field(default_factory=dict[str, float])
    """For how many seconds runs that count as ended have shown no sign of life, by run id (`life.Lives`)."""

    def facts(self, keys: Collection[str]) -> planner.Runs:
        """Return the active runs and the outcomes of the runs for these keys."""
        return planner.Runs(tuple(self.active()), {key: self.outcome(key) for key in keys})

    def active(self) -> list[Activity]:
        """Return the runs that are queued or running and that the sensor waits for.

        Where runs are continuous, a run that an operator has launched, which may hang, is not one of them: the stream
        continues beside it, and the fence makes that harmless. Nor is a run that shows no sign of life.
        """
        found: list[Activity] = []
        for record in self.instance.get_run_records(dg.RunsFilter(statuses=IN_PROGRESS)):
            if record.dagster_run.run_id in self.silent:
                continue
            if self._ours(record.dagster_run) and self._counts(record.dagster_run):
                tags, kind = record.dagster_run.tags, self._kind(record.dagster_run)
                key = tags.get(SNAPSHOT_TAG if kind == "snapshot" else RANGE_TAG)
                seconds = (datetime.now(UTC) - record.create_timestamp).total_seconds()
                found.append(Activity(kind, key, record.dagster_run.run_id, seconds))
        return found

    def streaming(self) -> list[Stream]:
        """Return the continuous runs that are queued or running, without those that show no sign of life."""
        found, now = list[Stream](), datetime.now(UTC)
        for record in self.instance.get_run_records(dg.RunsFilter(job_name=self.job_name, statuses=IN_PROGRESS)):
            run, begun = record.dagster_run, record.start_time
            if run.tags.get(STATE_TAG, HANDED_OVER) != HANDED_OVER and run.run_id not in self.silent:
                queued = (now - record.create_timestamp).total_seconds() if run.status in WAITING else 0.0
                found.append(Stream(run.run_id, now.timestamp() - begun if begun is not None else 0.0, queued))
        return found

    def at_work(self) -> list[dg.DagsterRun]:
        """Return the started runs that do nothing but our work, and so show signs of life."""
        records = self.instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
        return [run for record in records if self._ours(run := record.dagster_run) and self._is_ours_alone(run)]

    def pool(self, run: dg.DagsterRun) -> str:
        """Return the pool in which the run holds a slot."""
        names = self.setup.names
        return names.snapshot_pool if self._kind(run) == "snapshot" else names.pool

    def outcome(self, key: str) -> Outcome:
        """Return the outcome of the runs with this key."""
        tags = [MERGE_TAG] if key.startswith(MERGE_PREFIX) else [RANGE_TAG, SNAPSHOT_TAG]
        records = [one for tag in tags for one in self.instance.get_run_records(dg.RunsFilter(tags={tag: key}))]
        ours = [record for record in records if self._ours(record.dagster_run)]
        undone = [record for record in ours if record.dagster_run.status in UNDONE]
        return Outcome(
            failures=len(undone),
            failed_at=max((record.update_timestamp for record in undone), default=None),
            succeeded=bool(ours) and ours[0].dagster_run.status == dg.DagsterRunStatus.SUCCESS,
        )

    def _ours(self, run: dg.DagsterRun) -> bool:
        return self._is_of_our_jobs(run) or bool(self._own & set(run.asset_selection or ()))

    def _is_ours_alone(self, run: dg.DagsterRun) -> bool:
        """Whether the run has no steps of others, which may work for hours without an event."""
        return self._is_of_our_jobs(run) or set(run.asset_selection or ()) <= {*self._own, self.setup.records_key}

    def _is_of_our_jobs(self, run: dg.DagsterRun) -> bool:
        return run.job_name in {self.job_name, self.snapshot_job_name}

    @property
    def _own(self) -> set[dg.AssetKey]:
        extra = {self.setup.heartbeat_key, self.setup.transactions_key, self.setup.snapshots_key}
        return {*self.setup.log_keys, *self.setup.current_keys, *extra}

    def _counts(self, run: dg.DagsterRun) -> bool:
        """Whether the sensor waits for this run of ours."""
        by_sensor = is_by_sensor(run, self.setup) or STATE_TAG in run.tags
        return by_sensor or not self.setup.connector.dagster.max_run_seconds or self._kind(run) == "snapshot"

    def _kind(self, run: dg.DagsterRun) -> Literal["range", "snapshot", "merge"]:
        selected = set(run.asset_selection or ())
        if run.job_name == self.snapshot_job_name or self.setup.snapshots_key in selected:
            return "snapshot"
        return "merge" if selected and selected <= set(self.setup.current_keys) else "range"


def is_by_sensor(run: dg.DagsterRun, setup: Setup) -> bool:
    """Whether the database's own sensor has requested the run; runs that a user's sensors request count as manual.

    Dagster tags the runs of each sensor and of automation conditions with a name.
    """
    return run.tags.get(SENSOR_TAG) == setup.names.sensor


def is_range(key: str) -> bool:
    """Whether the key is the key of a range."""
    try:
        LsnRange.parse(key)
    except ValueError:
        return False
    return True
