"""The handles of a session's prepared statements."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from mssql_sandbox.errors import error

MAX_HANDLES = 20_000
"""The number of statements that a session may prepare; a real server stops when its memory is full (701)."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement behind a handle."""

    text: str
    definitions: str
    procedure: bool = False
    """Whether `text` is the name of a procedure, prepared by sp_prepexecrpc."""


@dataclass(slots=True)
class PreparedStatements:
    """Handles of a session."""

    known: dict[int, Prepared] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def add(self, prepared: Prepared) -> int:
        """A new handle; 701 if there are too many."""
        if len(self.known) >= MAX_HANDLES:
            raise error(701, pool="default")
        handle = next(self._numbers)
        self.known[handle] = prepared
        return handle

    def find(self, handle: object) -> Prepared:
        """The statement of a handle; 8179 for an unknown one."""
        found = self.known.get(handle) if isinstance(handle, int) else None
        if found is None:
            raise error(8179, handle=handle)
        return found

    def drop(self, handle: object) -> None:
        """Release a handle; 8179 for an unknown one."""
        self.find(handle)
        del self.known[handle]  # type: ignore[arg-type]
