"""Runs one blocking action beside the main thread, so that log lines appear at once and a termination gets through."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

import dagster as dg

from mssql_cdc.defs.resources import SparkResource

Result = TypeVar("Result")
SLICE_SECONDS = 0.25


@dataclass
class Background:
    """The run's log lines and actions. Dagster's own logger is only ever used from the main thread."""

    context: dg.AssetExecutionContext
    spark: SparkResource
    _lines: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)

    def log(self, line: str) -> None:
        """Takes one line from any thread; a line costs Dagster about 25 ms, so one per table or chunk is enough."""
        self._lines.put(line)

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
                line = self._lines.get_nowait()
            except queue.Empty:
                return
            self.context.log.info(line)

    def progress(self, text: str) -> None:
        """Shows how far a long step is, as a tag of the run."""
        self.context.instance.add_run_tags(self.context.run.run_id, {"mssql_cdc/progress": text})


def event(context: dg.AssetExecutionContext, key: dg.AssetKey, **metadata: Any) -> None:
    """Records a materialization of an asset that the step does not select."""
    context.log_event(dg.AssetMaterialization(key, metadata=metadata))
