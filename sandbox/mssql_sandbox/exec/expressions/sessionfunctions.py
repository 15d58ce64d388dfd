"""Functions and @@ variables of the running session: row counts, errors, transactions, identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import error
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, derived
from mssql_sandbox.exec.session_state import SessionState

Read = Callable[["SessionState"], Any]
_NAME = t.nvarchar(128)
_IDENTITY = t.numeric(38, 0)


def _setting(name: str) -> Read:
    return lambda session: getattr(session, name)


def _option(name: str) -> Read:
    return lambda session: getattr(session.options, name)


def _version(session: SessionState) -> str:
    return session.server.version.text


GLOBALS: dict[str, tuple[SqlType, Read]] = {
    "@@ROWCOUNT": (t.INT, _setting("row_count")),
    "@@ERROR": (t.INT, _setting("last_error")),
    "@@TRANCOUNT": (t.INT, _setting("transaction_count")),
    "@@SPID": (t.SMALLINT, _setting("spid")),
    "@@IDENTITY": (_IDENTITY, _setting("last_identity")),
    "@@FETCH_STATUS": (t.INT, _setting("fetch_status")),
    "@@CURSOR_ROWS": (t.INT, _setting("cursor_rows")),
    "@@NESTLEVEL": (t.INT, _setting("nest_level")),
    "@@PROCID": (t.INT, _setting("procedure_id")),
    "@@VERSION": (t.nvarchar(300), _version),
    "@@SERVERNAME": (_NAME, lambda session: session.server.name),
    "@@SERVICENAME": (_NAME, lambda _session: "MSSQLSERVER"),
    "@@LANGUAGE": (_NAME, _option("language")),
    "@@LANGID": (t.SMALLINT, lambda _session: 0),
    "@@DATEFIRST": (t.TINYINT, _option("date_first")),
    "@@LOCK_TIMEOUT": (t.INT, _option("lock_timeout")),
    "@@TEXTSIZE": (t.INT, _option("text_size")),
    "@@OPTIONS": (t.INT, lambda session: session.options.bits()),
    "@@MAX_PRECISION": (t.TINYINT, lambda _session: 38),
    "@@MAX_CONNECTIONS": (t.INT, lambda _session: 32767),
    "@@MICROSOFTVERSION": (t.INT, lambda session: session.server.version.major << 24),
    "@@DBTS": (t.varbinary(8), lambda session: session.current_database.last_rowversion),
    "@@CONNECTIONS": (t.INT, lambda session: len(session.server.sessions)),
    "@@REMSERVER": (_NAME, lambda _session: None),
    "@@TIMETICKS": (t.INT, lambda _session: 31250),
    **dict.fromkeys(
        (
            "@@CPU_BUSY",
            "@@IDLE",
            "@@IO_BUSY",
            "@@PACK_RECEIVED",
            "@@PACK_SENT",
            "@@PACKET_ERRORS",
            "@@TOTAL_READ",
            "@@TOTAL_WRITE",
            "@@TOTAL_ERRORS",
        ),
        (t.INT, lambda _session: 0),
    ),
}


def _error_part(name: str) -> Read:
    def read(session: SessionState) -> Any:
        current = session.caught
        return None if current is None else getattr(current, name)

    return read


def _error_procedure(session: SessionState) -> str | None:
    current = session.caught
    return None if current is None or not current.procedure else current.procedure


def _next_rowversion(session: SessionState) -> bytes:
    """The lowest rowversion that no committed row has: the next one, since no earlier one is pending."""
    last = session.current_database.last_rowversion
    return (int.from_bytes(last, "big") + 1).to_bytes(8, "big")


def _zone(session: SessionState) -> tuple[str, str]:
    """Display name and id of the server's time zone."""
    minutes = session.server.clock.offset_minutes
    if not minutes:
        return "(UTC) Coordinated Universal Time", "UTC"
    shown = f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    return f"({shown}) {shown}", shown


FUNCTIONS: dict[str, tuple[SqlType, Read]] = {
    "ERROR_NUMBER": (t.INT, _error_part("number")),
    "ERROR_MESSAGE": (t.nvarchar(4000), _error_part("message")),
    "ERROR_SEVERITY": (t.INT, _error_part("severity")),
    "ERROR_STATE": (t.INT, _error_part("state")),
    "ERROR_LINE": (t.INT, _error_part("line")),
    "ERROR_PROCEDURE": (t.nvarchar(128), _error_procedure),
    "XACT_STATE": (t.SMALLINT, _setting("transaction_state")),
    "SCOPE_IDENTITY": (_IDENTITY, _setting("scope_identity")),
    "ROWCOUNT_BIG": (t.BIGINT, _setting("row_count")),
    "CURRENT_TRANSACTION_ID": (t.BIGINT, _setting("transaction_descriptor")),
    "TRIGGER_NESTLEVEL": (t.INT, _setting("trigger_level")),
    "CURRENT_REQUEST_ID": (t.SMALLINT, lambda _session: 0),
    "MIN_ACTIVE_ROWVERSION": (t.varbinary(8), _next_rowversion),
    "CURRENT_TIMEZONE": (t.varchar(64), lambda session: _zone(session)[0]),
    "CURRENT_TIMEZONE_ID": (t.varchar(64), lambda session: _zone(session)[1]),
    "CONTEXT_INFO": (t.varbinary(128), _setting("context_info")),
}


def call(found: tuple[SqlType, Read], name: str, arguments: list[Expr]) -> Expr:
    """A function without arguments."""
    if arguments and name != "TRIGGER_NESTLEVEL":
        raise error(174, name=name.lower(), count=0)
    type_, read = found

    def fn(_row: tuple, context: Context) -> Any:
        return read(context.session)

    made = derived(type_, fn, nullable=True)
    return Expr(made.type, fn, True, constant=True, varying=True)
