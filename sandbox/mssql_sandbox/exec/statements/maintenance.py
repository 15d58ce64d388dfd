"""Administrative statements that change no rows: DBCC, CHECKPOINT, UPDATE STATISTICS, RECONFIGURE, BACKUP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.events import Message
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.parser import Parser

_DBCC = frozenset(
    [
        "CHECKALLOC",
        "CHECKCATALOG",
        "CHECKCONSTRAINTS",
        "CHECKDB",
        "CHECKFILEGROUP",
        "CHECKIDENT",
        "CHECKTABLE",
        "CLEANTABLE",
        "DBREINDEX",
        "DROPCLEANBUFFERS",
        "FLUSHAUTHCACHE",
        "FREEPROCCACHE",
        "FREESESSIONCACHE",
        "FREESYSTEMCACHE",
        "INDEXDEFRAG",
        "SHRINKDATABASE",
        "SHRINKFILE",
        "TRACEOFF",
        "TRACEON",
        "UPDATEUSAGE",
    ]
)
"""DBCC commands with an effect, or without a visible one; others that send result sets are not supported."""


def _maintenance(frame: Frame, node: st.Maintenance) -> Steps:
    """Nothing to maintain: CHECKPOINT, statistics and most of DBCC have no effect."""
    if node.kind == "dbcc":
        yield from _dbcc(frame, node)
    yield frame.session.done(frame, None, node.kind)
    return None


def _dbcc(frame: Frame, node: st.Maintenance) -> Steps:
    verb, argument = (*node.words, "", "")[:2]
    if verb not in _DBCC:
        raise SqlError(
            2526, "Incorrect DBCC statement. Check the documentation for the correct DBCC syntax and options."
        )
    if verb == "CHECKIDENT":
        _check_identity(frame, argument)
    elif verb in ("TRACEON", "TRACEOFF"):
        _switch_traces(frame.session.server, argument, on=verb == "TRACEON")
    if "NO_INFOMSGS" not in node.words:
        text = "DBCC execution completed. If DBCC printed error messages, contact your system administrator."
        yield Message(2528, 1, 0, text, frame.routine.name, node.line)
    return None


def _switch_traces(server: Server, text: str, *, on: bool) -> None:
    """DBCC TRACEON, TRACEOFF: flags apply to all sessions, with or without -1."""
    flags = {int(part) for part in text.split(",") if part.strip().lstrip("-").isdigit()} - {-1}
    server.trace_flags = server.trace_flags | flags if on else server.trace_flags - flags


def _check_identity(frame: Frame, text: str) -> None:
    parts = [part.strip().strip("'\"") for part in text.split(",")]
    table = frame.compiler().names.table(Parser(parts[0]).name())
    identity = table.identity
    if identity is None:
        raise SqlError(7997, f"'{table.name}' does not contain an identity column.")
    if len(parts) >= 3 and parts[1].upper() == "RESEED":
        value = int(parts[2])
        identity.last = value if table.row_count or identity.last is not None else value - identity.increment


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {st.Maintenance: _maintenance}
