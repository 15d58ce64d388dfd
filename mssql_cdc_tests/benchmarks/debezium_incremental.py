"""The genuine Debezium taking incremental snapshots while it streams: when it delivered what, and when it was done.

It needs a signal table, into which it writes its watermarks; its records are counted and thrown away.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mssql_cdc_tests.benchmarks.stream_lag import Delivery
from mssql_cdc_tests.conformance.debezium import DebeziumEngine

COMPLETED = "aggregateType='Incremental Snapshot', type='COMPLETED'"
"""What the notification of a completed snapshot says in the log."""


@dataclass
class ObservedEngine(DebeziumEngine):
    """An engine whose deliveries of one topic are noted.

    Attributes:
        topic: The topic.
        deliveries: When the newest record of each batch arrived.
    """

    topic: str = ""
    deliveries: list[Delivery] = field(default_factory=list[Delivery])

    @property
    def snapshots(self) -> int:
        """How many incremental snapshots have been completed."""
        return self.machine.log.read_text(errors="replace").count(COMPLETED)

    def check(self) -> None:
        """Raise an error with its log if it has stopped."""
        if self.completion.done.is_set() or not self.machine.alive:
            raise RuntimeError(f"Debezium stopped: {self.completion.message}\n{self.machine.tail()}")

    def _take(self, records: Any) -> Iterable[int]:
        at = time.time()
        newest = self._newest(records)
        if newest is not None:
            self.deliveries.append(Delivery(at, newest))
        return super()._take(records)

    def _newest(self, records: Any) -> float | None:
        """The commit time of a late record of the topic; the records of a chunk, which come together, are skipped."""
        place, step = len(records) - 1, 1
        while place >= 0:
            event = records.get(place)
            if event.destination() == self.topic:
                return json.loads(event.value())["source"]["ts_ms"] / 1000
            place, step = place - step, 2 * step
        return None
