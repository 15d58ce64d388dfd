"""The metrics of a range for one table, which the command line and Dagster show.

To add a metric, add a row to `RANGE_METRICS`. A metric whose value is None is not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mssql_cdc.capture.range import TableOutcome


@dataclass(frozen=True, slots=True)
class Metric:
    """A number, a time or a text about one table's part of a range."""

    name: str
    meaning: str
    of: Callable[[TableOutcome], Any]


RANGE_METRICS = (
    Metric("rows", "change-log rows written", lambda outcome: outcome.rows),
    Metric("inserts", "rows with op c", lambda outcome: int(outcome.operations.get("c", 0))),
    Metric("updates", "rows with op u", lambda outcome: int(outcome.operations.get("u", 0))),
    Metric("deletes", "rows with op d", lambda outcome: int(outcome.operations.get("d", 0))),
    Metric("from_lsn", "position before the range", lambda outcome: outcome.slice.from_.text),
    Metric("to_lsn", "position after the range", lambda outcome: outcome.slice.to.text),
    Metric("capture_instance", "capture instance that was read", lambda outcome: outcome.slice.instance.name),
    Metric("commit_time_min", "commit time of the oldest change", lambda outcome: _time(outcome.first)),
    Metric("commit_time_max", "commit time of the newest change", lambda outcome: _time(outcome.last)),
    Metric("delta_version", "version of the change log", lambda outcome: outcome.state and outcome.state.delta_version),
)


def range_metrics(outcome: TableOutcome) -> dict[str, Any]:
    """Return the metrics of a table's part of a range, by name."""
    return {metric.name: metric.of(outcome) for metric in RANGE_METRICS}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
