"""System procedures that define things: alias types, ranges of sequences, messages, refreshed modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.flow import Answer, StepsTo
from mssql_sandbox.exec.names import Names
from mssql_sandbox.exec.sequences import Sequence as SequenceObject
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.sprocs.named_arguments import Own, named_arguments
from mssql_sandbox.tsql.parser import Parser

_NULLABLE = {"NULL": True, "NOT NULL": False, "NONULL": False}


def _find(session: SessionState, database: Database, text: str) -> Any:
    names = Names(session)
    names.database = database
    return names.find(Parser(text).name())


def _add_type(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_addtype @typename, @phystype [, @nulltype]: CREATE TYPE of old; 15036 for an unknown physical type."""
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


def _drop_type(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_droptype @typename; 15036 an unknown type, 15180 one that columns have."""
    name = str(named_arguments(("typename",), parameters)["typename"])
    found = _find(session, database, name)
    if found is None or found.type_code != "TYPE":
        raise SqlError(15036, f"The data type '{name}' does not exist or you do not have permission.")
    if any(column.type.alias == found.name for table in database.tables() for column in table.columns):
        raise SqlError(15180, "Cannot drop. The data type is being used.")
    yield from session.transactions.run(lambda transaction: database.drop_object(transaction, found))
    return 0, []


def _sequence_range(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_sequence_get_range: several values at once, as first and last; 11732 where they do not fit."""
    names = (
        "sequence_name", "range_size", "range_first_value", "range_last_value", "range_cycle_count",
        "sequence_increment", "sequence_min_value", "sequence_max_value",
    )  # fmt: skip
    given = named_arguments(names, parameters)
    found = _find(session, database, str(given["sequence_name"]))
    if found is None or not isinstance(found.definition, SequenceObject):
        raise error(208, name=given["sequence_name"])
    sequence: SequenceObject = found.definition
    size = int(given["range_size"])
    first = sequence.start if sequence.next_value is None else sequence.next_value
    last = first + (size - 1) * sequence.increment
    if size < 1 or not sequence.minimum <= last <= sequence.maximum:
        raise SqlError(
            11732, f"The requested range for sequence object '{found.schema.name}.{found.name}' exceeds the maximum or "
            "minimum limit. Retry with a smaller range."
        )  # fmt: skip
    sequence.next_value = last + sequence.increment
    values = {
        "range_first_value": first, "range_last_value": last, "range_cycle_count": 0,
        "sequence_increment": sequence.increment, "sequence_min_value": sequence.minimum,
        "sequence_max_value": sequence.maximum,
    }  # fmt: skip
    outputs = []
    for place, parameter in enumerate(parameters):
        name = parameter.name.lstrip("@").lower() if parameter.name else names[place]
        if parameter.output and name in values:
            source = t.INT if name == "range_cycle_count" else sequence.type
            outputs.append((place, parameter.name, parameter.type, convert(values[name], source, parameter.type)))
    return 0, outputs
    yield


def _refresh(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_refreshview and its like: modules are compiled anew at each use, so only the name counts."""
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


def _add_message(session: SessionState, _database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_addmessage @msgnum, @severity, @msgtext …; 15043 a number that is taken, 15040 one below 50001."""
    given = named_arguments(("msgnum", "severity", "msgtext", "lang", "with_log", "replace"), parameters)
    number = int(given["msgnum"])
    if number <= 50000:
        raise SqlError(15040, "User-defined error messages must have an ID greater than 50000.")
    known = session.server.messages
    if number in known and str(given.get("replace") or "").upper() != "REPLACE":
        raise SqlError(15043, "You must specify 'REPLACE' to overwrite an existing message.")
    known[number] = (int(given["severity"]), str(given["msgtext"]))
    return 0, []
    yield


def _drop_message(session: SessionState, _database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_dropmessage @msgnum; 15179 where there is none."""
    given = named_arguments(("msgnum", "lang"), parameters)
    if session.server.messages.pop(int(given["msgnum"]), None) is None:
        raise SqlError(15179, f"The message number {given['msgnum']} does not exist.")
    return 0, []
    yield


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
    "sp_droptype": _drop_type,
    "sp_sequence_get_range": _sequence_range,
    "sp_refreshview": _refresh,
    "sp_refreshsqlmodule": _refresh,
    "sp_recompile": _refresh,
    "sp_addmessage": _add_message,
    "sp_dropmessage": _drop_message,
}
