"""What Dagster's run records tell the sensor: who is at work, how often a key was asked for, how a snapshot fared.

Hints for planning only: deleting every run costs a retry count, never a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg

from mssql_cdc.defs.setup import Setup
from mssql_cdc.lsn import parse_snapshot_key
from mssql_cdc.plan.facts import Activity

PARTITION_TAG = "dagster/partition"
RANGE_START_TAG = "dagster/asset_partition_range_start"
RUN_KEY_TAG = "dagster/run_key"
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
class Runs:
    """The runs of one database's streaming job, also those that were launched in the UI, which know no job of ours."""

    instance: dg.DagsterInstance
    setup: Setup
    job_name: str

    def activities(self) -> list[Activity]:
        """Runs that are queued or at work."""
        found = []
        for record in self.instance.get_run_records(dg.RunsFilter(statuses=IN_PROGRESS)):
            if self._ours(record.dagster_run):
                tags = record.dagster_run.tags
                key = tags.get(PARTITION_TAG) or tags.get(RANGE_START_TAG) or "the current tables"
                kind = "snapshot" if parse_snapshot_key(key) is not None else "range"
                seconds = (datetime.now(UTC) - record.create_timestamp).total_seconds()
                found.append(Activity(kind, key, record.dagster_run.run_id, seconds))
        return found

    def attempts(self, key: str, *, tag: str = PARTITION_TAG) -> int:
        """How often the sensor has asked for this key: a run key is never launched twice, whatever became of it."""
        numbers = [0]
        for record in self.instance.get_run_records(dg.RunsFilter(tags={tag: key})):
            asked, _, number = record.dagster_run.tags.get(RUN_KEY_TAG, "").rpartition("#")
            if asked.endswith(key) and number.isdigit() and self._ours(record.dagster_run):
                numbers.append(int(number))
        return max(numbers)

    def succeeded(self, key: str) -> bool:
        """Whether the newest run at this key did all that it was asked for."""
        found = self.instance.get_run_records(dg.RunsFilter(tags={PARTITION_TAG: key}))
        ours = [record.dagster_run for record in found if self._ours(record.dagster_run)]
        return bool(ours) and ours[0].status == dg.DagsterRunStatus.SUCCESS

    def undone(self, key: str, *, tag: str = PARTITION_TAG) -> tuple[int, datetime | None]:
        """How many runs at this key failed or were cancelled, and when the last of them ended."""
        wanted = dg.RunsFilter(tags={tag: key}, statuses=UNDONE)
        records = [r for r in self.instance.get_run_records(wanted) if self._ours(r.dagster_run)]
        return len(records), max((record.update_timestamp for record in records), default=None)

    def _ours(self, run: dg.DagsterRun) -> bool:
        if run.job_name == self.job_name:
            return True
        keys = {*self.setup.log_keys, *self.setup.current_keys, self.setup.transactions_key}
        return bool(keys & set(run.asset_selection or ()))
