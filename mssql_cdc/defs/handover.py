"""How one continuous run hands over to the next: two runs overlap, and the fence of the lake makes that safe.

The sensor requests the successor some time before the end. When the successor's Spark is up, it asks the run before it
to end, which does so after its current step.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import dagster as dg

from mssql_cdc.defs.life import shows_life

STATE_TAG = "mssql_cdc/state"
STREAMING = "streaming"
HANDING_OVER = "handing over"
HANDED_OVER = "handed over"
LEAD_SECONDS = 60
"""How long before the end of a run the sensor requests a successor; for a shorter run, half its time."""
PATIENCE_SECONDS = 120
"""How much longer a run waits for a successor that has been requested."""
ASK_SECONDS = 1.0
ACTIVE = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]


def lead_seconds(limit: int) -> float:
    """Return how long before its end a run of `limit` seconds gets a successor."""
    return min(LEAD_SECONDS, limit / 2)


@dataclass
class Handover:
    """One run's part: it takes over from the runs before it, and hands over to the one after it.

    Attributes:
        instance: The Dagster instance.
        run: This run.
        limit: How many seconds it streams.
    """

    instance: dg.DagsterInstance
    run: dg.DagsterRun
    limit: float
    started: float = field(default_factory=time.monotonic)
    _asked: float = 0.0

    def begin(self) -> None:
        """Tag this run as streaming: a re-execution has the tags of the run before it, which has ended."""
        if self.run.tags.get(STATE_TAG) != STREAMING:
            self.instance.add_run_tags(self.run.run_id, {STATE_TAG: STREAMING})

    def predecessors(self) -> list[dg.DagsterRun]:
        """The other runs of the job that stream."""
        return [run for run in self._others() if run.tags.get(STATE_TAG) in {STREAMING, HANDING_OVER}]

    def take_over(self) -> list[str]:
        """Ask the runs that stream to end; return the ids of those that show signs of life."""
        found = [
            record.dagster_run
            for record in self.instance.get_run_records(self._filter([dg.DagsterRunStatus.STARTED]))
            if record.dagster_run.run_id != self.run.run_id
            and record.dagster_run.tags.get(STATE_TAG) in {STREAMING, HANDING_OVER}
        ]
        for run in found:
            self.instance.add_run_tags(run.run_id, {STATE_TAG: HANDING_OVER})
        return [run.run_id for run in found if shows_life(self.instance, run.run_id)]

    def has_taken_over(self, runs: list[str]) -> bool:
        """Whether these runs have ended, or no longer read anything."""
        found = [run for one in runs if (run := self.instance.get_run_by_id(one)) is not None]
        return all(run.is_finished or run.tags.get(STATE_TAG) == HANDED_OVER for run in found)

    def is_over(self) -> bool:
        """Whether this run must end: its successor is ready, or its time is over and there is none."""
        now = time.monotonic()
        left = self.limit - (now - self.started)
        if left > lead_seconds(int(self.limit)) or (left > 0 and now - self._asked < ASK_SECONDS):
            return False
        self._asked = now
        own = self.instance.get_run_by_id(self.run.run_id)
        if own is not None and own.tags.get(STATE_TAG) == HANDING_OVER:
            return True
        return left <= -PATIENCE_SECONDS or (left <= 0 and not self._others())

    def end(self) -> None:
        """Say that this run no longer reads anything."""
        self.instance.add_run_tags(self.run.run_id, {STATE_TAG: HANDED_OVER})

    def _others(self) -> list[dg.DagsterRun]:
        """The other queued or running runs of the job that stream or will."""
        records = self.instance.get_run_records(self._filter(ACTIVE))
        return [
            record.dagster_run
            for record in records
            if record.dagster_run.run_id != self.run.run_id and STATE_TAG in record.dagster_run.tags
        ]

    def _filter(self, statuses: list[dg.DagsterRunStatus]) -> dg.RunsFilter:
        return dg.RunsFilter(job_name=self.run.job_name, statuses=statuses)
