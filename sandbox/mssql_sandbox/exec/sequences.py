"""Sequence objects."""

from __future__ import annotations

from dataclasses import dataclass

from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError


@dataclass(slots=True)
class Sequence:
    """A sequence: values are never reused, not even after a rollback."""

    name: str
    type: SqlType
    start: int
    increment: int
    minimum: int
    maximum: int
    cycle: bool = False
    next_value: int | None = None

    def take(self) -> int:
        """The next value; 11728 at the end of a sequence that does not cycle."""
        value = self.start if self.next_value is None else self.next_value
        if not self.minimum <= value <= self.maximum:
            if not self.cycle:
                raise SqlError(
                    11728, f"The sequence object '{self.name}' has reached its minimum or maximum value. "
                    "Restart the sequence object to allow new values to be generated."
                )  # fmt: skip
            value = self.minimum if self.increment > 0 else self.maximum
        self.next_value = value + self.increment
        return value
