"""Writes a run's events from its own thread, with its own instance, so that capture never waits for them.

`book.py`, whose functions run in this thread, decides what is written when.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import dagster as dg
from dagster._core.events import AssetObservationData, StepMaterializationData

from mssql_cdc.defs.background import Background
from mssql_cdc.defs.life import own_instance
from mssql_cdc.defs.shown import told

TURN_SECONDS = 0.5
Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation
Action = Callable[[], object]


@dataclass
class Recorder:
    """The thread and its queue.

    Attributes:
        context: The step's context; only values are read from it.
        background: Receives log lines for the main thread.
        turn: Called in the thread at least every half second.
        failure: The first error of an action.
    """

    context: dg.AssetExecutionContext
    background: Background
    turn: Action = lambda: None
    failure: Exception | None = None
    _queue: queue.SimpleQueue[Action | None] = field(default_factory=queue.SimpleQueue[Action | None])
    _thread: threading.Thread | None = None
    _waiting: set[Action] = field(default_factory=set[Action])
    _end: float | None = None
    _instance: dg.DagsterInstance | None = None
    _evaluated: set[dg.AssetCheckKey] = field(default_factory=set[dg.AssetCheckKey])

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._work, name="events", daemon=True)
        self._thread.start()

    def post(self, action: Action) -> None:
        """Have the thread run an action; never waits."""
        self._queue.put(action)

    def post_once(self, action: Action) -> None:
        """Have the thread run an action, unless the same one is still waiting."""
        if action not in self._waiting:
            self._waiting.add(action)
            self._queue.put(action)

    def close(self, *, patience: float | None = None, fails: bool | None = None) -> None:
        """Run what has been posted, and end the thread; in the main thread only.

        Args:
            patience: What has not begun after so many seconds is not run: the next run reports what is missing. None:
                everything is run.
            fails: Whether an error of an action is raised, unless another error ends the run. None: if `patience` is
                None, since an operator has requested what is reported.

        Raises:
            dagster.Failure: Something could not be reported.
        """
        if self._thread is not None:
            self._end = None if patience is None else time.monotonic() + patience
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        fails = patience is None if fails is None else fails
        if fails and self.failure is not None and sys.exc_info()[0] is None:
            self.background.drain()  # The run's log would lack the lines.
            raise dg.Failure(self.background.redact(_text(self.failure)), allow_retries=False)

    @property
    def instance(self) -> dg.DagsterInstance:
        """The thread's own instance, for the thread only."""
        if self._instance is None:
            self._instance = own_instance(self.context.instance)
        return self._instance

    def write(self, event: Event, *, of_run: bool = True) -> None:
        """Store an event; in the thread only.

        Args:
            event: The event.
            of_run: Whether it belongs to the run. A run can keep one evaluation of a check, so only its first one does.
        """
        if isinstance(event, dg.AssetCheckEvaluation):
            chosen = event.asset_check_key in self.context.selected_asset_check_keys
            of_run = of_run and chosen and event.asset_check_key not in self._evaluated
            self._evaluated.add(event.asset_check_key)
        if not of_run:
            self.instance.report_runless_asset_event(event)
            return
        run, step = self.context.run, self.context.get_step_execution_context().step
        match event:
            case dg.AssetMaterialization():
                kind, data = dg.DagsterEventType.ASSET_MATERIALIZATION, StepMaterializationData(event)
            case dg.AssetObservation():
                kind, data = dg.DagsterEventType.ASSET_OBSERVATION, AssetObservationData(event)
            case dg.AssetCheckEvaluation():
                kind, data = dg.DagsterEventType.ASSET_CHECK_EVALUATION, event
        found = dg.DagsterEvent(
            event_type_value=kind.value,
            job_name=run.job_name,
            step_handle=step.handle,
            node_handle=step.node_handle,
            step_kind_value=step.kind.value,
            event_specific_data=data,
        )
        self.instance.report_dagster_event(found, run_id=run.run_id)

    def _work(self) -> None:
        try:
            due = time.monotonic()
            while True:
                if time.monotonic() >= due:
                    self._do(self.turn)
                    due = time.monotonic() + TURN_SECONDS
                try:
                    action = self._queue.get(timeout=max(due - time.monotonic(), 0))
                except queue.Empty:
                    continue
                if action is None:
                    return
                if self._end is not None and time.monotonic() >= self._end:
                    self.background.log("Some events were not reported at the end of the run: the next run does so")
                    self._forget()
                    return
                self._waiting.discard(action)  # What happens from now on needs another action.
                self._do(action)
        finally:
            if self._instance is not None and self._instance is not self.context.instance:
                self._instance.dispose()

    def _forget(self) -> None:
        """Empty the queue."""
        while self._queue.get() is not None:
            pass
        self._waiting.clear()

    def _do(self, action: Action) -> None:
        """Run it; an error is a warning while the run continues: rows are safe, and a later report contains them."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 (any: reporting must not end capture)
            self.failure = self.failure or error
            self.background.warn(_text(error))


def is_of_storage(error: Exception) -> bool:
    """Whether Dagster's own storage has failed, which is no table's problem."""
    return type(error).__module__.startswith("sqlalchemy.")


def _text(error: Exception) -> str:
    if isinstance(error, dg.Failure):
        return error.description or ""
    return f"An event could not be reported: {told(error)}"
