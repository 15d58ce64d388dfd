"""Locked resources, their holders, and requests that wait: the statement runner awaits them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal, Protocol

from mssql_sandbox.engine.lock_modes import LockMode
from mssql_sandbox.errors import SqlError, error

Duration = Literal["instant", "statement", "transaction"]
ResourceKind = Literal["DATABASE", "OBJECT", "RID", "APPLICATION"]


@dataclass(frozen=True, slots=True)
class Resource:
    """A locked resource: a database, a table ('OBJECT') or a row ('RID')."""

    kind: ResourceKind
    database_id: int
    object_id: int = 0
    key: int | str = 0


class LockOwner(Protocol):
    """An owner of locks: a transaction."""

    spid: int
    deadlock_priority: int
    locks: dict[Resource, Granted]

    def rollback_cost(self) -> int:
        """The cost of undoing the owner; the cheapest owner of a cycle becomes the victim."""
        ...


@dataclass(slots=True)
class Granted:
    """A granted lock."""

    mode: LockMode
    duration: Duration


class Queues(Protocol):
    """The queue that requests wait in."""

    def cancel(self, request: LockRequest) -> None:
        """Withdraw a request."""
        ...


class LockRequest:
    """A queued request for a lock; settled when it is granted, cancelled or chosen as a deadlock victim."""

    __slots__ = ("_future", "duration", "failure", "manager", "mode", "owner", "resource", "settled")

    def __init__(
        self, manager: Queues, owner: LockOwner, resource: Resource, mode: LockMode, duration: Duration
    ) -> None:
        self.manager = manager
        self.owner = owner
        self.resource = resource
        self.mode = mode
        self.duration: Duration = duration
        self.failure: SqlError | None = None
        self.settled = False
        self._future: asyncio.Future[None] | None = None

    def settle(self, failure: SqlError | None = None) -> None:
        """Mark the request as granted, or as failed with `failure`, and wake the waiter."""
        self.settled = True
        self.failure = failure
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self, timeout_seconds: float | None = None) -> None:
        """Return once granted; raise 1222 after `timeout_seconds` (None: wait for ever, 0: not at all), 1205 as victim.

        Cancelling the awaiting task withdraws the request.
        """
        if not self.settled and timeout_seconds == 0:
            self.manager.cancel(self)
            raise error(1222)
        try:
            if not self.settled:
                self._future = asyncio.get_running_loop().create_future()
                async with asyncio.timeout(timeout_seconds):
                    await self._future
        except TimeoutError:
            if not self.settled:
                raise error(1222) from None
        finally:
            if not self.settled:
                self.manager.cancel(self)
        if self.failure is not None:
            raise self.failure


class MustWait(Exception):  # noqa: N818 - a signal to the statement runner, not an error
    """The statement cannot continue before `request` is granted."""

    def __init__(self, request: LockRequest) -> None:
        super().__init__(f"{request.mode.value} on {request.resource}")
        self.request = request
