"""Lock manager: granted locks, queues, conversions, deadlock detection.

Storage requests a lock with `acquire`; if it is not available, the request is queued and `MustWait` is raised. The
statement runner undoes the statement, awaits `request.wait(timeout)` and runs the statement again. A new request waits
for granted and for pending modes that conflict with it, a conversion for granted ones only. A row that a transaction
has changed is locked by its uncommitted version; the manager learns of that lock only when another transaction meets it
(`acquire_from`). What does not belong here: which locks a statement needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from mssql_sandbox.engine.lock_modes import COMPATIBLE, COVERS, LockMode, combined
from mssql_sandbox.engine.lock_requests import Duration, Granted, LockOwner, LockRequest, MustWait, Resource
from mssql_sandbox.errors import error


@dataclass(frozen=True, slots=True)
class LockRow:
    """A lock or a waiting request, for sys.dm_tran_locks and blocking views."""

    spid: int
    resource: Resource
    mode: LockMode
    status: Literal["GRANT", "CONVERT", "WAIT"]
    blocking_spid: int = 0


@dataclass(slots=True)
class _Entry:
    granted: dict[int, tuple[LockOwner, LockMode]] = field(default_factory=dict)
    queue: list[LockRequest] = field(default_factory=list)


class LockManager:
    """All locks of a server."""

    def __init__(self) -> None:
        self._entries: dict[Resource, _Entry] = {}
        self._row_locks: dict[tuple[int, int], int] = {}
        self._waiting: dict[int, LockRequest] = {}

    def has_row_locks(self, database_id: int, object_id: int) -> bool:
        """Whether the manager has any row lock of the table; writers skip the manager while it has none."""
        return (database_id, object_id) in self._row_locks

    def acquire(
        self, owner: LockOwner, resource: Resource, mode: LockMode, *, duration: Duration = "transaction"
    ) -> None:
        """Grant at once or raise `MustWait`; a held lock is converted upwards and keeps the longer duration."""
        held = owner.locks.get(resource)
        if held is not None and mode in COVERS[held.mode]:
            if duration == "transaction":
                held.duration = "transaction"
            return
        wanted = mode if held is None else combined(held.mode, mode)
        entry = self._entries.get(resource)
        if entry is None or self._free(entry, owner, wanted, converting=held is not None):
            if duration != "instant":
                self._grant(owner, resource, wanted, duration)
            return
        self._enqueue(entry, LockRequest(self, owner, resource, wanted, duration), converting=held is not None)

    def acquire_from(
        self, holder: LockOwner, owner: LockOwner, resource: Resource, mode: LockMode, *, duration: Duration
    ) -> None:
        """Queue behind `holder`, whose exclusive lock on a row was so far only implied by its uncommitted version."""
        held = holder.locks.get(resource)
        if held is None or held.mode is not LockMode.X:
            self._grant(holder, resource, LockMode.X, "transaction")
        self.acquire(owner, resource, mode, duration=duration)

    def try_acquire(
        self, owner: LockOwner, resource: Resource, mode: LockMode, *, duration: Duration = "transaction"
    ) -> bool:
        """Like `acquire` but returns False instead of queueing (READPAST, NOWAIT)."""
        held = owner.locks.get(resource)
        wanted = mode if held is None else combined(held.mode, mode)
        entry = self._entries.get(resource)
        if entry is not None and not self._free(entry, owner, wanted, converting=held is not None):
            return False
        if duration != "instant":
            self._grant(owner, resource, wanted, duration)
        return True

    def release(self, owner: LockOwner, resource: Resource) -> None:
        """Release one lock and grant the requests that it blocked."""
        if owner.locks.pop(resource, None) is None:
            return
        entry = self._entries[resource]
        del entry.granted[id(owner)]
        if resource.kind == "RID":
            self._count_row_lock(resource, -1)
        if entry.queue:
            self._grant_waiting(entry)
        if not entry.queue and not entry.granted:
            del self._entries[resource]

    def release_statement(self, owner: LockOwner) -> None:
        """Release the locks that were taken for a statement only."""
        short = [resource for resource, held in owner.locks.items() if held.duration == "statement"]
        for resource in short:
            self.release(owner, resource)

    def release_all(self, owner: LockOwner) -> None:
        """Release all locks of `owner`, and withdraw its requests."""
        waiting = self._waiting.get(id(owner))
        if waiting is not None:
            self.cancel(waiting)
        for resource in tuple(owner.locks):
            self.release(owner, resource)

    def cancel(self, request: LockRequest) -> None:
        """Withdraw a waiting request."""
        entry = self._entries.get(request.resource)
        if entry is not None and request in entry.queue:
            entry.queue.remove(request)
            del self._waiting[id(request.owner)]
            self._grant_waiting(entry)
            if not entry.queue and not entry.granted:
                del self._entries[request.resource]

    def rows(self) -> Iterator[LockRow]:
        """All locks and waiting requests."""
        for resource, entry in tuple(self._entries.items()):
            for owner, mode in entry.granted.values():
                yield LockRow(owner.spid, resource, mode, "GRANT")
            for request in entry.queue:
                blocker = next(iter(self._blockers(entry, request)), None)
                status: Literal["CONVERT", "WAIT"] = "CONVERT" if id(request.owner) in entry.granted else "WAIT"
                yield LockRow(request.owner.spid, resource, request.mode, status, blocker.spid if blocker else 0)

    # -- inside ---------------------------------------------------------------------------------------------

    def _free(self, entry: _Entry, owner: LockOwner, mode: LockMode, *, converting: bool) -> bool:
        compatible = COMPATIBLE[mode]
        if not converting and any(ahead.owner is not owner and ahead.mode not in compatible for ahead in entry.queue):
            return False
        return all(other is owner or held in compatible for other, held in entry.granted.values())

    def _grant(self, owner: LockOwner, resource: Resource, mode: LockMode, duration: Duration) -> None:
        held = owner.locks.get(resource)
        if held is None:
            owner.locks[resource] = Granted(mode, duration)
            if resource.kind == "RID":
                self._count_row_lock(resource, 1)
        else:
            held.mode = mode
            held.duration = "transaction" if duration == "transaction" else held.duration
        self._entries.setdefault(resource, _Entry()).granted[id(owner)] = (owner, mode)

    def _count_row_lock(self, resource: Resource, change: int) -> None:
        table = (resource.database_id, resource.object_id)
        count = self._row_locks.get(table, 0) + change
        if count:
            self._row_locks[table] = count
        else:
            self._row_locks.pop(table, None)

    def _enqueue(self, entry: _Entry, request: LockRequest, *, converting: bool) -> None:
        abandoned = self._waiting.get(id(request.owner))
        if abandoned is not None:
            self.cancel(abandoned)  # an owner waits for one lock at a time
        self._waiting[id(request.owner)] = request
        # A conversion goes before new requests: its owner already holds the resource.
        entry.queue.insert(0, request) if converting else entry.queue.append(request)
        victim = self._deadlock_victim(request)
        if victim is not None:
            failure = error(1205, spid=victim.owner.spid, resource="lock")
            self.cancel(victim)
            victim.settle(failure)
            if victim is request:
                raise failure
        raise MustWait(request)

    def _grant_waiting(self, entry: _Entry) -> None:
        for request in tuple(entry.queue):
            if self._blockers(entry, request):
                continue
            entry.queue.remove(request)
            del self._waiting[id(request.owner)]
            if request.duration != "instant":
                self._grant(request.owner, request.resource, request.mode, request.duration)
            request.settle()

    @staticmethod
    def _blockers(entry: _Entry, request: LockRequest) -> list[LockOwner]:
        compatible = COMPATIBLE[request.mode]
        found = [o for o, held in entry.granted.values() if o is not request.owner and held not in compatible]
        for earlier in entry.queue:
            if earlier is request or id(request.owner) in entry.granted:
                break
            if earlier.owner is not request.owner and earlier.mode not in compatible:
                found.append(earlier.owner)
        return found

    def _deadlock_victim(self, request: LockRequest) -> LockRequest | None:
        """The request to fail if `request` closes a cycle of waits: lowest priority, then cheapest to undo."""
        path: list[LockRequest] = []
        seen: set[int] = set()

        def search(current: LockRequest) -> bool:
            path.append(current)
            seen.add(id(current.owner))
            for owner in self._blockers(self._entries[current.resource], current):
                if owner is request.owner:
                    return True
                onward = self._waiting.get(id(owner))
                if onward is not None and id(owner) not in seen and search(onward):
                    return True
            path.pop()
            return False

        if not search(request):
            return None
        return min(path, key=lambda r: (r.owner.deadlock_priority, r.owner.rollback_cost(), r is not request))
