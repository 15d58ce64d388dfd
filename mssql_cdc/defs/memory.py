"""What the sensor keeps in its cursor between two ticks. Hints only: losing them costs time, never a row."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime

from mssql_cdc.plan.facts import Cursor


@dataclass(frozen=True, slots=True)
class Memory:
    """The planner's cursor, and what is the sensor's own.

    `snapshot` is the key of the snapshot that was asked for last, `merged` the number of the cut at which no current
    table was behind, `looked` when the source's list of tables was looked at last, `beaten` the last heartbeat,
    `started` when the sensor was switched on.
    """

    cursor: Cursor = field(default_factory=Cursor)
    snapshot: str | None = None
    merged: int | None = None
    looked: datetime | None = None
    beaten: datetime | None = None
    started: float | None = None

    def to_json(self) -> str:
        """The text that Dagster keeps: the planner's cursor and what is the sensor's own."""
        own = {
            "snapshot": self.snapshot,
            "merged": self.merged,
            "looked": self.looked.isoformat() if self.looked else None,
            "started": self.started,
            "beaten": self.beaten.isoformat() if self.beaten else None,
        }
        return json.dumps({**json.loads(self.cursor.to_json()), **own})

    @classmethod
    def from_json(cls, text: str | None) -> Memory:
        """The memory of this text; what is empty, old or unreadable starts afresh."""
        cursor = Cursor.from_json(text)
        try:
            data = json.loads(text or "{}")
            looked, beaten = data.get("looked"), data.get("beaten")
            merged = data.get("merged")
            return cls(
                cursor,
                data.get("snapshot"),
                None if merged is None else int(merged),
                datetime.fromisoformat(looked) if looked else None,
                datetime.fromisoformat(beaten) if beaten else None,
                data.get("started"),
            )
        except (ValueError, TypeError, AttributeError):
            return cls(cursor)
