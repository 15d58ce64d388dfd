"""Runs a blocking action outside the main thread, so that log lines appear immediately and runs can be terminated."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import dagster as dg

from mssql_cdc.defs.resources import SparkResource

Result = TypeVar("Result")
SLICE_SECONDS = 0.25
END_SECONDS = 20
"""How long a terminated run may continue to its next cut; `cancel_timeout_seconds` in `dagster.yaml` is longer."""
PROGRESS_TAG = "mssql_cdc/progress"


@dataclass
class Background:
    """The run's log lines, without secrets, and actions. Only the main thread ever calls Dagster."""

    context: dg.AssetExecutionContext
    spark: SparkResource
    redact: Callable[[str], str]
    _posted: queue.SimpleQueue[Callable[[], object]] = field(default_factory=queue.SimpleQueue[Callable[[], object]])

    def log(self, line: str) -> None:
        """Log a line from any thread. A line costs Dagster about 25 ms, so log at most one per table or chunk."""
        self._posted.put(partial(self.context.log.info, "%s", self.redact(line)))

    def warn(self, line: str) -> None:
        """Log a line as a warning, from any thread."""
        self._posted.put(partial(self.context.log.warning, "%s", self.redact(line)))

    def post(self, action: Callable[[], object]) -> None:
        """Queue an action from any thread for the main thread."""
        self._posted.put(action)

    def run(self, action: Callable[[], Result]) -> Result:
        """Run the action and return its result; a termination lets it end or cancels its Spark jobs, and propagates."""
        with ThreadPoolExecutor(1, thread_name_prefix="capture") as pool:
            future = pool.submit(action)
            try:
                while not wait([future], timeout=SLICE_SECONDS).done:
                    self.drain()
            except BaseException:
                # DagsterExecutionInterruptedError is raised only in the main thread. Leaving the pool waits for the
                # action, which ends with its cut, or as soon as its Spark jobs are canceled.
                if not wait([future], timeout=END_SECONDS).done:
                    self.spark.cancel_jobs()
                raise
            finally:
                self.drain()
        return future.result()

    def drain(self) -> None:
        """Log the lines and run the actions that other threads have posted."""
        while True:
            try:
                action = self._posted.get_nowait()
            except queue.Empty:
                return
            action()
