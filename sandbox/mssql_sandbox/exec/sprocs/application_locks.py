"""`sp_getapplock` and `sp_releaseapplock`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.engine.lock_requests import LockOwner, MustWait
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.application_locks import MODES, resource_of
from mssql_sandbox.exec.flow import Answer, StepsTo, lock_pause
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.sprocs.named_arguments import Own, named_arguments


def _owner(session: SessionState, given: Mapping[str, Any]) -> LockOwner | None:
    """Who is to hold the lock; None when it is the transaction and none is open."""
    wanted = str(given.get("lockowner") or "Transaction").lower()
    return session.application_owner if wanted == "session" else session.transactions.current


def _get_lock(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_getapplock: 0 granted at once, 1 after waiting, -1 timed out, -3 deadlock victim."""
    given = named_arguments(("resource", "lockmode", "lockowner", "locktimeout", "dbprincipal"), parameters)
    mode = MODES.get(str(given["lockmode"]).lower())
    if mode is None:
        raise error(155, value=given["lockmode"], function="@LockMode")
    owner = _owner(session, given)
    if owner is None:
        raise SqlError(1223, "Cannot acquire an application lock for owner 'Transaction' without an open transaction.")
    timeout = given.get("locktimeout")
    wait_ms = session.options.lock_timeout if timeout is None else int(timeout)
    resource = resource_of(database, str(given["resource"]))
    waited = False
    while True:
        try:
            session.server.locks.acquire(owner, resource, mode)
        except MustWait as wait:
            waited = True
            try:
                yield lock_pause(wait.request, wait_ms)
            except SqlError as failure:
                return (-1 if failure.number == 1222 else -3), []
            continue
        return int(waited), []


def _release_lock(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    given = named_arguments(("resource", "lockowner", "dbprincipal"), parameters)
    owner = _owner(session, given)
    resource = resource_of(database, str(given["resource"]))
    if owner is None or resource not in owner.locks:
        raise error(1223)
    session.server.locks.release(owner, resource)
    return 0, []
    yield


OWN: Mapping[str, Own] = {"sp_getapplock": _get_lock, "sp_releaseapplock": _release_lock}
