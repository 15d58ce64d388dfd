"""Application locks: who holds them, under which names their modes go. Asked by procedures and by functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from mssql_sandbox.engine.lock_modes import LockMode
from mssql_sandbox.engine.lock_requests import Granted, LockOwner, Resource
from mssql_sandbox.engine.storage.database import Database

MODES = {
    "shared": LockMode.S, "update": LockMode.U, "exclusive": LockMode.X, "intentshared": LockMode.IS,
    "intentexclusive": LockMode.IX,
}  # fmt: skip
SHOWN = {
    LockMode.S: "Shared", LockMode.U: "Update", LockMode.X: "Exclusive", LockMode.IS: "IntentShared",
    LockMode.IX: "IntentExclusive", LockMode.SIX: "SharedIntentExclusive",
}  # fmt: skip


@dataclass(slots=True, eq=False)
class SessionOwner:
    """Holds what a session asked for with @LockOwner = 'Session', until it gives it back or ends."""

    spid: int
    deadlock_priority: int = 0
    locks: dict[Resource, Granted] = field(default_factory=dict)

    def rollback_cost(self) -> int:
        """Nothing is undone."""
        return 0


def resource_of(database: Database, name: str) -> Resource:
    """The lock resource of an application's name in a database."""
    return Resource("APPLICATION", database.id, 0, name)


def mode_held(owner: LockOwner | None, resource: Resource) -> str:
    """The mode in which the owner holds a lock; NoLock when it does not."""
    held = None if owner is None else owner.locks.get(resource)
    return "NoLock" if held is None else SHOWN.get(held.mode, "NoLock")
