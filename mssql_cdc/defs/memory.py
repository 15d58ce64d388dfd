"""What the sensor keeps in its cursor between two ticks. Hints only: losing them costs time, never a row."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from mssql_cdc.plan.facts import Cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The planner's cursor, and what is the sensor's own.

    `looked` is when the source's list of tables was looked at last, `beaten` the last heartbeat, `started` when the
    sensor was switched on.
    """

    v: int = 2
    cursor: Cursor = Cursor()
    looked: datetime | None = None
    beaten: datetime | None = None
    started: float | None = None

    def to_json(self) -> str:
        """The text that Dagster keeps."""
        return _memories().dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str | None) -> Memory:
        """The memory of this text; an empty, old or unreadable one starts afresh."""
        try:
            found: Memory = _memories().validate_json(text or "{}")
        except ValidationError:
            return cls()
        return found if found.v == cls().v else cls()


@cache
def _memories() -> TypeAdapter[Any]:
    return TypeAdapter(Memory)
