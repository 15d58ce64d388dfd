"""How far the lake is behind the source, second by second, and what is said about it at the end.

`capture/lag.py` defines the lag. A sample is the largest lag of the current tables that the demo shows.
`run/status.py` reads the same from scratch each time, which takes longer the longer the demo runs; here only what is
new is read.
"""

from __future__ import annotations

import json
import math
import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.lag import Lag, lag_of, without_answer
from mssql_cdc.demo.evidence import TABLES
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.known_commit_times import KnownCommitTimes
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.lake.progress import applied_batch
from mssql_cdc.run.status import position_of, positions
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import CaptureHealth

SAMPLE_SECONDS = 1.0
TARGETS = {"median": 3.0, "95 %": 6.0, "worst": 15.0}
"""The most seconds that each figure may have."""


@dataclass
class LagReader:
    """Reads the lags of all tables repeatedly.

    Attributes:
        database: The database.
    """

    database: Database
    _changes: dict[str, KnownCommitTimes] = field(default_factory=dict[str, KnownCommitTimes])
    _answer: tuple[CaptureHealth, datetime] | None = None

    def read(self) -> Mapping[TableId, Lag]:
        """Return the lags. While the source does not answer, they grow."""
        database = self.database
        offsets = database.offsets()
        now = datetime.now(UTC)
        try:
            with database.session() as session:
                self._answer = session.capture_health(positions(offsets)), now
        except MssqlCdcError:
            if self._answer is None:
                return {}
        health, at = self._answer
        health = health if at == now else without_answer(health, now - at)
        found: dict[TableId, Lag] = {}
        versions_of = database.history().versions
        entries = entries_by_name(offsets, versions_of)
        for name, versions in versions_of.items():
            entry, newest = entries.get(name), versions[-1]
            if entry is None or entry.status == "excluded":
                continue
            home = database.layout.home(newest.table_id, folder=entry.folder)
            unmerged = None
            if newest.key_columns:
                log = database.current_logs.newest(home.current, database.storage)
                known = self._changes.setdefault(home.changes, KnownCommitTimes(home.changes, database.storage))
                unmerged = known.oldest_after(applied_batch(log, newest) if log is not None else 0)
            position = position_of(entry, offsets)
            found[newest.table_id] = lag_of(position, unmerged, health, has_current=bool(newest.key_columns))
        return found


@dataclass(frozen=True, slots=True)
class LagFigures:
    """What the samples show: seconds of lag; `missed` could not be read; `cost` is the CPU seconds of a sample.

    `worst_sample` is the number of the worst one, counted from 1: about its second of streaming.
    """

    samples: int
    median: float
    percentile: float
    worst: float
    worst_sample: int
    cost: float
    missed: int = 0

    @classmethod
    def of(cls, samples: Sequence[float], *, cpu: float = 0.0, missed: int = 0) -> LagFigures | None:
        """Summarize the samples; None if there are none.

        Args:
            samples: The lags in seconds.
            cpu: The CPU seconds that all of them took.
            missed: How many could not be read.
        """
        if not samples:
            return None
        ordered = sorted(samples)
        rank = math.ceil(0.95 * len(ordered)) - 1
        worst = ordered[-1]
        return cls(
            samples=len(ordered),
            median=statistics.median(ordered),
            percentile=ordered[rank],
            worst=worst,
            worst_sample=samples.index(worst) + 1,
            cost=cpu / len(ordered),
            missed=missed,
        )

    @property
    def text(self) -> str:
        """The figures as one line for people."""
        missed = f" ({self.missed:,} more could not be read)" if self.missed else ""
        return (
            f"Lag of the worst current table in {self.samples:,} samples{missed}: median {self.median:.1f} s,"
            f" 95 % {self.percentile:.1f} s, worst {self.worst:.1f} s in sample {self.worst_sample:,}"
            f" (a sample took {1000 * self.cost:.0f} ms of CPU)"
        )

    def to_json(self) -> list[dict[str, object]]:
        """The figures as `make bench` writes them."""
        values = {"median": self.median, "95 %": self.percentile, "worst": self.worst}
        found = [_figure(f"lag of current tables, {name}", value, TARGETS[name]) for name, value in values.items()]
        return [
            *found,
            _figure("lag samples", self.samples),
            _figure("lag samples missed", self.missed),
            _figure("number of the worst lag sample", self.worst_sample),
            _figure("CPU of a lag sample", self.cost),
        ]


def _figure(name: str, value: float, target: float | None = None) -> dict[str, object]:
    return {
        "name": name,
        "value": round(value, 4),
        "unit": "" if isinstance(value, int) else "s",
        "target": target,
        "bound": None if target is None else "at most",
        "holds": None if target is None else value <= target,
    }


@dataclass
class LagSamples:
    """Samples the lags in a thread of its own until it is stopped.

    Attributes:
        reader: Reads the lags.
        counting: Samples count once it is set.
        latest: The lags of all tables, as last read.
        found: The samples.
        missed: How many samples could not be read.
        error: What ended the thread.
    """

    reader: LagReader
    counting: threading.Event = field(default_factory=threading.Event)
    latest: Mapping[TableId, Lag] = field(default_factory=dict[TableId, Lag])
    found: list[float] = field(default_factory=list[float])
    missed: int = 0
    error: Exception | None = None
    _cpu: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="lags", daemon=True)
        self._thread.start()

    def stop(self) -> LagFigures | None:
        """Stop, and return what was found; None if nothing was.

        Raises:
            Exception: An error in the thread, after which the samples would be too few.
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join(30)
        if self.error is not None:
            raise self.error
        return LagFigures.of(self.found, cpu=self._cpu, missed=self.missed)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                begun, cpu = time.monotonic(), time.thread_time()
                self.take()
                if self.found:
                    self._cpu += time.thread_time() - cpu
                self._stop.wait(max(0.0, begun + SAMPLE_SECONDS - time.monotonic()))
        except Exception as error:  # noqa: BLE001 (kept for the main thread)
            self.error = error

    def take(self) -> None:
        """Take a sample: the largest lag of the current tables that the demo shows."""
        counting = self.counting.is_set()
        try:
            self.latest = self.reader.read()
        except MssqlCdcError:  # For example, a log that is being cleaned up.
            self.missed += counting
            return
        known = [lag.current for table in TABLES if (lag := self.latest.get(table)) and lag.current is not None]
        if counting and known:
            self.found.append(max(known))


def write(figures: LagFigures, file: Path) -> None:
    """Write the figures as a list."""
    file.write_text(json.dumps(figures.to_json(), indent=1) + "\n")
