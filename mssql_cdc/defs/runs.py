"""Translates Dagster's run records for the planner: the active runs and the outcomes of earlier runs.

These are hints: deleting every run costs a retry count, never a row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import dagster as dg

from mssql_cdc.defs.setup import Setup
from mssql_cdc.lsn import parse_snapshot_key
from mssql_cdc.plan import facts as planner
from mssql_cdc.plan.facts import MERGE_PREFIX, Activity, Outcome

PARTITION_TAG = "dagster/partition"
RANGE_START_TAG = "dagster/asset_partition_range_start"
ATTEMPT_TAG = "mssql_cdc/attempt"
MERGE_TAG = "mssql_cdc/merge"
IN_PROGRESS = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
UNDONE = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dataclass(frozen=True, slots=True)
class RunRecords:
    """The runs of one database's streaming job, including those launched in the UI, which do not name the job."""

    instance: dg.DagsterInstance
    setup: Setup
    job_name: str

    def facts(self, keys: Collection[str]) -> planner.Runs:
        """Return the active runs and the outcomes of the runs for these keys."""
        return planner.Runs(tuple(self.active()), {key: self._outcome(key) for key in keys})

    def active(self) -> list[Activity]:
        """Return the runs that are queued or running."""
        found: list[Activity] = []
        for record in self.instance.get_run_records(dg.RunsFilter(statuses=IN_PROGRESS)):
            if self._ours(record.dagster_run):
                tags = record.dagster_run.tags
                key = tags.get(PARTITION_TAG) or tags.get(RANGE_START_TAG)
                seconds = (datetime.now(UTC) - record.create_timestamp).total_seconds()
                found.append(Activity(_kind(key), key, record.dagster_run.run_id, seconds))
        return found

    def _outcome(self, key: str) -> Outcome:
        tag = MERGE_TAG if key.startswith(MERGE_PREFIX) else PARTITION_TAG
        records = self.instance.get_run_records(dg.RunsFilter(tags={tag: key}))
        ours = [record for record in records if self._ours(record.dagster_run)]
        undone = [record for record in ours if record.dagster_run.status in UNDONE]
        return Outcome(
            failures=len(undone),
            failed_at=max((record.update_timestamp for record in undone), default=None),
            succeeded=bool(ours) and ours[0].dagster_run.status == dg.DagsterRunStatus.SUCCESS,
        )

    def _ours(self, run: dg.DagsterRun) -> bool:
        if run.job_name == self.job_name:
            return True
        keys = {*self.setup.log_keys, *self.setup.current_keys, self.setup.transactions_key}
        return bool(keys & set(run.asset_selection or ()))


def _kind(key: str | None) -> Literal["range", "snapshot", "merge"]:
    if key is None:
        return "merge"
    return "range" if parse_snapshot_key(key) is None else "snapshot"
