"""System procedures for definitions: alias types, refreshed modules, the session's context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.flow import Answer, StepsTo
from mssql_sandbox.exec.names import Names
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.sprocs.named_arguments import Own, named_arguments
from mssql_sandbox.tsql.parser import Parser

_NULLABLE = {"NULL": True, "NOT NULL": False, "NONULL": False}


def _find(session: SessionState, database: Database, text: str) -> Any:
    names = Names(session)
    names.database = database
    return names.find(Parser(text).name())


def _add_type(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_addtype @typename, @phystype [, @nulltype]: predecessor of CREATE TYPE; 15036 for an unknown type."""
    given = named_arguments(("typename", "phystype", "nulltype", "owner"), parameters)
    name, physical = str(given["typename"]), str(given["phystype"])
    word = "NULL" if given.get("nulltype") is None else str(given["nulltype"]).upper()
    if word not in _NULLABLE:
        raise SqlError(15009, f"The object '{word}' does not exist in database '{database.name}' or is invalid for "
                              "this "
                       "operation.")  # fmt: skip
    compiler = Compiler(session)
    compiler.names.database = database
    try:
        type_ = compiler.type_of(Parser(physical).type_name())
    except SqlError:
        raise SqlError(15036, f"The data type '{physical}' does not exist or you do not have permission.") from None
    now = database.server.clock.local_datetime()

    def work(transaction: Transaction) -> None:
        schema = database.schema(session.default_schema(database))
        item = SchemaObject(
            name, database.next_object_id(), schema, "TYPE", now, now, definition=replace(type_, alias=name)
        )
        item.properties["nullable"] = _NULLABLE[word]
        database.add_object(transaction, item)

    yield from session.transactions.run(work)
    return 0, []


def _refresh(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_refreshview and related procedures: modules are compiled at each use, so only the name is checked."""
    name = str(named_arguments(("viewname",), parameters[:1])[_only(parameters)])
    if _find(session, database, name) is None:
        raise SqlError(
            15165, f"Could not find object '{name}' or you do not have permission.", procedure="sp_refreshsqlmodule"
        )
    return 0, []
    yield


def _only(parameters: Sequence[RpcParameter]) -> str:
    name = parameters[0].name if parameters else ""
    return name.lstrip("@").lower() if name else "viewname"


def _set_context(session: SessionState, _database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_set_session_context @key, @value [, @read_only]; 15664 for a key that was set read-only."""
    given = named_arguments(("key", "value", "read_only"), parameters)
    value = next((one for one in parameters if one.name.lower() == "@value"), None)
    value = parameters[1] if value is None else value
    key = str(given["key"]).lower()
    known = session.session_context.get(key)
    if known is not None and known[1]:
        raise SqlError(15664, f"Cannot set key '{given['key']}' in the session context. The key has been set as "
                              "read_only "
                       "for this session.")  # fmt: skip
    variant = None if value.value is None else (value.type, value.value)
    session.session_context[key] = (variant, bool(given.get("read_only")))
    return 0, []
    yield


OWN: Mapping[str, Own] = {
    "sp_set_session_context": _set_context,
    "sp_addtype": _add_type,
    "sp_refreshview": _refresh,
    "sp_refreshsqlmodule": _refresh,
    "sp_recompile": _refresh,
}
