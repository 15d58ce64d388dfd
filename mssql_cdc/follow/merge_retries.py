"""When a current table whose update failed is updated again: later each time, since its failures cost the others time.

Only what one loop remembers; `current.py` and `run/follower.py` report what failed.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field

from mssql_cdc.schema import TableId

FIRST_SECONDS = 5.0
MOST_SECONDS = 60.0
MOST_OVERTAKEN = 3
"""This many updates in a row that other writers made impossible are an error of the table."""


@dataclass
class MergeRetries:
    """The current tables whose last update failed."""

    _failed: dict[TableId, tuple[int, float]] = field(default_factory=dict[TableId, tuple[int, float]])
    _overtaken: dict[TableId, int] = field(default_factory=dict[TableId, int])

    def failed(self, table: TableId) -> None:
        """Let the table wait, twice as long as after the previous failure, up to `MOST_SECONDS`."""
        number = self._failed[table][0] + 1 if table in self._failed else 1
        wait = min(FIRST_SECONDS * 2 ** min(number - 1, 10), MOST_SECONDS)
        self._failed[table] = number, time.monotonic() + wait

    def succeeded(self, table: TableId) -> None:
        """Forget what failed before."""
        self._failed.pop(table, None)
        self._overtaken.pop(table, None)

    def overtaken(self, table: TableId) -> bool:
        """Note that another writer was faster again; return whether that has happened too often in a row."""
        number = self._overtaken.get(table, 0) + 1
        self._overtaken[table] = number % MOST_OVERTAKEN
        return number >= MOST_OVERTAKEN

    def waits(self, table: TableId) -> bool:
        """Whether the update of the table failed a moment ago."""
        return table in self._failed and time.monotonic() < self._failed[table][1]

    def note(self, *, done: Collection[TableId], failed: Collection[TableId]) -> None:
        """Note the outcome of updates.

        Args:
            done: The tables that were updated.
            failed: Those whose update failed.
        """
        for table in done:
            self.succeeded(table)
        for table in failed:
            self.failed(table)
