"""Runs one blocking action beside the main thread, so that log lines appear at once and a termination gets through."""

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
PROGRESS_TAG = "mssql_cdc/progress"


@dataclass
class Background:
    """The run's log lines and actions. Dagster is only ever called from the main thread."""

    context: dg.AssetExecutionContext
    spark: SparkResource
    _posted: queue.SimpleQueue[Callable[[], object]] = field(default_factory=queue.SimpleQueue[Callable[[], object]])

    def log(self, line: str) -> None:
        """Takes one line from any thread; a line costs Dagster about 25 ms, so one per table or chunk is enough."""
        self._posted.put(partial(self.context.log.info, "%s", line))

    def post(self, action: Callable[[], object]) -> None:
        """Takes an action from any thread, for the main thread to do soon."""
        self._posted.put(action)

    def run(self, action: Callable[[], Result]) -> Result:
        """The action's result; on a termination Spark's jobs are cancelled and the interruption goes on up."""
        with ThreadPoolExecutor(1, thread_name_prefix="capture") as pool:
            future = pool.submit(action)
            try:
                while not wait([future], timeout=SLICE_SECONDS).done:
                    self._drain()
            except BaseException:
                # DagsterExecutionInterruptedError arrives in the main thread only; leaving the pool waits for the
                # action, which ends as soon as its Spark jobs are gone.
                self.spark.cancel_jobs()
                raise
            finally:
                self._drain()
        return future.result()

    def _drain(self) -> None:
        while True:
            try:
                action = self._posted.get_nowait()
            except queue.Empty:
                return
            action()
