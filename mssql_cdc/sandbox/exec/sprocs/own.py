"""Procedures that change what the executor keeps, and so are its own: application locks, settings, `renaming`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mssql_cdc.sandbox.engine.events import Message, RpcParameter
from mssql_cdc.sandbox.engine.lock_modes import LockMode
from mssql_cdc.sandbox.engine.lock_requests import MustWait, Resource
from mssql_cdc.sandbox.engine.storage.database import Database
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.flow import Answer, StepsTo, lock_pause
from mssql_cdc.sandbox.exec.session_state import SessionState
from mssql_cdc.sandbox.exec.sprocs import detaching, extended_properties, schema_procedures
from mssql_cdc.sandbox.exec.sprocs.named_arguments import Own, named_arguments
from mssql_cdc.sandbox.exec.sprocs.renaming import rename


def _get_lock(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_getapplock: 0 granted at once, 1 after waiting, -1 timed out, -3 deadlock victim."""
    given = named_arguments(("resource", "lockmode", "lockowner", "locktimeout", "dbprincipal"), parameters)
    modes = {"shared": LockMode.S, "update": LockMode.U, "exclusive": LockMode.X, "intentshared": LockMode.IS,
             "intentexclusive": LockMode.IX}  # fmt: skip
    mode = modes.get(str(given["lockmode"]).lower())
    if mode is None:
        raise error(155, value=given["lockmode"], function="@LockMode")
    current = session.transactions.current
    if current is None:
        raise SqlError(1223, "Cannot acquire an application lock for owner 'Transaction' without an open transaction.")
    timeout = given.get("locktimeout")
    wait_ms = session.options.lock_timeout if timeout is None else int(timeout)
    resource = Resource("APPLICATION", database.id, 0, str(given["resource"]))
    waited = False
    while True:
        try:
            session.server.locks.acquire(current, resource, mode)
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
    current = session.transactions.current
    resource = Resource("APPLICATION", database.id, 0, str(given["resource"]))
    if current is None or resource not in current.locks:
        raise error(1223)
    session.server.locks.release(current, resource)
    return 0, []
    yield


def _configure(session: SessionState, _database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_configure name, value: the name may be cut short while it stays unique."""
    given = named_arguments(("configname", "configvalue"), parameters)
    if "configname" in given and given.get("configvalue") is not None:
        name = str(given["configname"]).lower()
        matching = [key for key in session.server.config if key.lower().startswith(name)]
        known = next((key for key in matching if key.lower() == name or len(matching) == 1), None)
        if known is None:
            raise SqlError(15123, f"The configuration option '{given['configname']}' does not exist, or it may "
                           "be an advanced option.")  # fmt: skip
        old, session.server.config[known] = session.server.config[known], int(given["configvalue"])
        yield Message(
            15457, 1, 10, f"Configuration option '{known}' changed from {old} to {given['configvalue']}. Run "
            "the RECONFIGURE statement to install.", "sp_configure", 1,
        )  # fmt: skip
    return 0, []


OWN: Mapping[str, Own] = {
    "sp_rename": rename,
    "sp_getapplock": _get_lock,
    "sp_releaseapplock": _release_lock,
    "sp_configure": _configure,
    **detaching.OWN,
    **schema_procedures.OWN,
    **extended_properties.OWN,
}
