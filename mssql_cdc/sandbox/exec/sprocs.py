"""Procedures that change what the executor keeps, and so are its own: sp_rename, application locks, settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.conversion import convert
from mssql_cdc.sandbox.engine.events import Message, RpcParameter
from mssql_cdc.sandbox.engine.locks import LockMode, MustWait, Resource
from mssql_cdc.sandbox.engine.storage import alter
from mssql_cdc.sandbox.engine.storage.database import Database
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.flow import StepsTo, lock_pause
from mssql_cdc.sandbox.exec.names import Names
from mssql_cdc.sandbox.tsql.parser import Parser

if TYPE_CHECKING:
    from mssql_cdc.sandbox.engine.transaction import Transaction
    from mssql_cdc.sandbox.exec.procedures import Answer
    from mssql_cdc.sandbox.exec.session import Session


def _arguments(names: Sequence[str], parameters: Sequence[RpcParameter]) -> dict[str, Any]:
    """Values by parameter name (lower case, without @)."""
    found: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        name = parameter.name.lstrip("@").lower() if parameter.name else names[number]
        value = parameter.value
        if isinstance(value, str) or value is None or isinstance(value, int):
            found[name] = value
        else:
            found[name] = convert(value, parameter.type, t.nvarchar(4000))
    return found


def _rename(session: Session, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_rename @objname, @newname [, @objtype]: objects, columns, indexes."""
    given = _arguments(("objname", "newname", "objtype"), parameters)
    path = Parser(str(given["objname"])).name()
    new, kind = str(given["newname"]), str(given.get("objtype") or "OBJECT").upper()
    names = Names(session)
    names.database = database

    def work(transaction: Transaction) -> None:
        if kind == "COLUMN":
            table = _table(names, path[:-1], given)
            if table.ordinal(path[-1]) is None:
                raise _not_found(given)
            alter.rename_column(table, transaction, path[-1], new)
            alter.log_ddl(table, transaction, "rename", f"EXEC sp_rename '{given['objname']}', '{new}', 'COLUMN'",
                          column=path[-1])  # fmt: skip
            return
        if kind == "INDEX":
            table = _table(names, path[:-1], given)
            index = table.index(path[-1])
            if index is None:
                raise _not_found(given)
            old = index.name
            index.name = new
            transaction.on_undo(lambda: setattr(index, "name", old))
            return
        found = names.find(path)
        if found is None:
            raise _not_found(given)
        found.schema  # noqa: B018 - tables and modules alike have one
        database.rename(transaction, found, new)

    yield from session.transactions.run(work)
    caution = "Caution: Changing any part of an object name could break scripts and stored procedures."
    yield Message(15477, 1, 10, caution, "sp_rename", 1)
    return 0, []


def _table(names: Names, path: tuple[str, ...], given: dict[str, Any]) -> Table:
    found = names.find(path) if path else None
    if not isinstance(found, Table):
        raise _not_found(given)
    return found


def _not_found(given: dict[str, Any]) -> SqlError:
    kind = given.get("objtype") or "object"
    return SqlError(
        15248, f"Either the parameter @objname is ambiguous or the claimed @objtype ({kind}) is wrong.", severity=11
    )


def _get_lock(session: Session, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_getapplock: 0 granted at once, 1 after waiting, -1 timed out, -3 deadlock victim."""
    given = _arguments(("resource", "lockmode", "lockowner", "locktimeout", "dbprincipal"), parameters)
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


def _release_lock(session: Session, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    given = _arguments(("resource", "lockowner", "dbprincipal"), parameters)
    current = session.transactions.current
    resource = Resource("APPLICATION", database.id, 0, str(given["resource"]))
    if current is None or resource not in current.locks:
        raise error(1223)
    session.server.locks.release(current, resource)
    return 0, []
    yield


def _configure(session: Session, _database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_configure name, value."""
    given = _arguments(("configname", "configvalue"), parameters)
    if "configname" in given and given.get("configvalue") is not None:
        name = str(given["configname"]).lower()
        known = next((key for key in session.server.config if key.lower() == name), None)
        if known is None:
            raise SqlError(15123, f"The configuration option '{given['configname']}' does not exist, or it may "
                           "be an advanced option.")  # fmt: skip
        old, session.server.config[known] = session.server.config[known], int(given["configvalue"])
        yield Message(
            15457, 1, 10, f"Configuration option '{known}' changed from {old} to {given['configvalue']}. Run "
            "the RECONFIGURE statement to install.", "sp_configure", 1,
        )  # fmt: skip
    return 0, []


Own = Callable[["Session", Database, Sequence[RpcParameter]], StepsTo["Answer"]]
OWN: dict[str, Own] = {
    "sp_rename": _rename,
    "sp_getapplock": _get_lock,
    "sp_releaseapplock": _release_lock,
    "sp_configure": _configure,
}
