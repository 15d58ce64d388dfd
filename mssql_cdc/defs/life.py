"""Signs of life: a run shows that its process is alive, and the sensor counts a run without them as ended.

Dagster's record of a run stays STARTED if its host or its container dies: the process cannot report its end, and the
default launcher does not monitor it. A second run beside one that is alive after all is harmless (the lake's fence).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Event, Thread
from types import TracebackType

import dagster as dg
from dagster._core.events import EngineEventData

PULSE_SECONDS = 60.0
SILENT_SECONDS = 300.0
"""A run without a sign of life for this long counts as ended; a live one shows one at least every two minutes."""
JOIN_SECONDS = 5.0


@dataclass
class Pulse:
    """Shows, while the block lasts, that this process is alive: an event of the run, if nothing else is written.

    It has its own thread and instance, so that capture, a long chunk, a hung source and a long report do not delay it.
    Unlike a tag of the run, an event does not change what others write at the same moment.
    """

    shared: dg.DagsterInstance
    run: dg.DagsterRun
    _ended: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def __enter__(self) -> None:
        """Start the thread."""
        self._thread = Thread(target=self._work, name="pulse", daemon=True)
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the thread; the wait is bounded in case Dagster's storage hangs."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)

    def _work(self) -> None:
        newest, instance = None, None
        try:
            while not self._ended.wait(PULSE_SECONDS):
                with contextlib.suppress(Exception):  # Without storage, nobody checks for signs of life either.
                    instance = instance or own_instance(self.shared)
                    last, newest = newest, newest_event(instance, self.run.run_id)
                    if newest == last:
                        self._show(instance)
        finally:
            if instance is not None and instance is not self.shared:
                instance.dispose()

    def _show(self, instance: dg.DagsterInstance) -> None:
        event = dg.DagsterEvent(
            event_type_value=dg.DagsterEventType.ENGINE_EVENT.value,
            job_name=self.run.job_name,
            message="The run is at work.",
            event_specific_data=EngineEventData(),
        )
        instance.report_dagster_event(event, run_id=self.run.run_id, log_level=logging.DEBUG)


@dataclass
class Lives:
    """Since when runs have shown nothing new, as observed by one process.

    Signs are compared with those of the previous look, and the time between looks is measured here: the clocks of hosts
    may differ. Another process starts from scratch, and so takes five minutes to notice.
    """

    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])

    def silent(self, instance: dg.DagsterInstance, runs: Iterable[dg.DagsterRun]) -> Mapping[str, float]:
        """Return for how many seconds the runs that count as ended have shown no sign of life, by run id.

        A run whose step has not begun counts as alive: it may be waiting for a slot of its pool, writing nothing.

        Args:
            instance: Where the events are.
            runs: All runs in which a step may be at work.
        """
        now, before, found = self.clock(), self._seen, dict[str, float]()
        self._seen = {}
        for run in runs:
            newest = newest_event(instance, run.run_id) or 0
            sign, since = before.get(run.run_id, (newest, now))
            self._seen[run.run_id] = (newest, since if sign == newest else now)
            seconds = now - self._seen[run.run_id][1]
            if seconds >= SILENT_SECONDS and _has_begun(instance, run.run_id):
                found[run.run_id] = seconds
        return found


def newest_event(instance: dg.DagsterInstance, run_id: str) -> int | None:
    """Return the number of the newest event of a run; None: there is none."""
    newest = _newest(instance, run_id)
    return newest.storage_id if newest is not None else None


def shows_life(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Whether a run has no event, or a recent one by the clocks of both hosts: one look, as an error costs little."""
    newest = _newest(instance, run_id)
    return newest is None or abs(time.time() - newest.timestamp) < SILENT_SECONDS


def own_instance(shared: dg.DagsterInstance) -> dg.DagsterInstance:
    """Return an instance for another thread; the same one if it exists in memory only."""
    return dg.DagsterInstance.from_ref(shared.get_ref()) if shared.is_persistent else shared


def _newest(instance: dg.DagsterInstance, run_id: str) -> dg.EventLogRecord | None:
    records = instance.get_records_for_run(run_id, limit=1, ascending=False).records
    return records[0] if records else None


def _has_begun(instance: dg.DagsterInstance, run_id: str) -> bool:
    found = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_START, limit=1)
    return bool(found.records)
