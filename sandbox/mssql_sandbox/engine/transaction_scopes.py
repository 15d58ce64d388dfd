"""The parts of a transaction: its isolation, its savepoints, and the statement scopes of one request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from mssql_sandbox.engine.lock_requests import Resource


class Snapshots(Protocol):
    """The snapshots of a server that are in use."""

    def take_snapshot(self) -> int:
        """A snapshot of everything committed so far."""
        ...

    def share_snapshot(self, sequence: int) -> None:
        """Another user of a snapshot."""
        ...

    def drop_snapshot(self, sequence: int) -> None:
        """Release a snapshot."""
        ...


class Isolation(IntEnum):
    """Isolation levels by their numbers in the protocol and in sys.dm_exec_sessions."""

    READ_UNCOMMITTED = 1
    READ_COMMITTED = 2
    REPEATABLE_READ = 3
    SERIALIZABLE = 4
    SNAPSHOT = 5


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A position to return to: lengths of the undo list and of the log parts, and the locks held there."""

    name: str
    position: int
    marks: dict[int, int]
    locks: frozenset[Resource]


class StatementScopes:
    """The statement scopes of one request in a transaction shared with other requests (MARS)."""

    __slots__ = ("snapshots", "statements")

    def __init__(self) -> None:
        self.statements: list[tuple[int, dict[int, int]]] = []
        self.snapshots: list[int | None] = []

    @property
    def depth(self) -> int:
        """The number of open scopes: a statement, and those of its triggers."""
        return len(self.statements)

    def drop(self, manager: Snapshots) -> None:
        """Release what is left if the request has ended without its statements."""
        for snapshot in self.snapshots:
            if snapshot is not None:
                manager.drop_snapshot(snapshot)
        self.statements, self.snapshots = [], []
