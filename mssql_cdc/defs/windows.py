"""The commit-time windows by which change logs are partitioned: their length, keys and order, all in UTC.

Windows are only how Dagster shows change logs: positions in the log decide what is read (architecture, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from mssql_cdc.config.model import Window

_KEY = "%Y-%m-%d-%H:%M"
_DAY_KEY = "%Y-%m-%d"
_CRON = {"15 minutes": "*/15 * * * *", "hour": "0 * * * *", "day": "0 0 * * *"}
_LENGTH = {"15 minutes": timedelta(minutes=15), "hour": timedelta(hours=1), "day": timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one database.

    Attributes:
        name: Their length, as configured.
        since: The start of the first window.
    """

    name: Window
    since: datetime

    @classmethod
    def of(cls, name: Window, *, days: int, first: datetime | None, now: datetime) -> Windows:
        """Return the windows of the last `days` days.

        Args:
            name: Their length, as configured.
            days: How many days of windows to show.
            first: When capture was set up; there are no windows before. None: unknown.
            now: The current time.
        """
        oldest = now.astimezone(UTC) - timedelta(days=days)
        midnight = oldest.replace(hour=0, minute=0, second=0, microsecond=0)
        made = cls(name, midnight)
        return made if first is None else cls(name, max(midnight, made.start(first)))

    @property
    def length(self) -> timedelta:
        """The length of a window."""
        return _LENGTH[self.name]

    @property
    def definition(self) -> dg.TimeWindowPartitionsDefinition:
        """The partitions definition; its last partition is the current window."""
        return dg.TimeWindowPartitionsDefinition(
            start=self.since, fmt=self._format, cron_schedule=_CRON[self.name], timezone="UTC", end_offset=1
        )

    def start(self, at: datetime) -> datetime:
        """Return the start of the window that contains this instant, which needs a time zone."""
        midnight = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight + (at - midnight) // self.length * self.length

    def key(self, at: datetime) -> str:
        """Return the partition key of the window that contains this instant."""
        return self.start(at).strftime(self._format)

    def parse(self, key: str) -> datetime:
        """Return the start of the window with this partition key."""
        return datetime.strptime(key, self._format).replace(tzinfo=UTC)

    def between(self, first: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the starts of the windows from the one that contains `first`, as long as they begin before `end`."""
        start = max(self.start(first), self.since)
        while start < end:
            yield start
            start += self.length

    @property
    def _format(self) -> str:
        return _DAY_KEY if self.name == "day" else _KEY
