"""Faults between server and client, and a log of what clients sent: procedures of the schema `sandbox`.

Slow answers, a corrupted packet, a connection cut before, during or after an answer. How these change packets belongs
to `tds.watching`, faults of the statements themselves to `faults`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

from mssql_sandbox.catalog.definitions import Call, Scope, procedure, view
from mssql_sandbox.engine.events import Event, RpcParameter, TableValue
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.text import display
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.apicursors.cursor import cursors_of
from mssql_sandbox.faults import OrderedFault
from mssql_sandbox.tds.watching import Cut, Request, WireFault

KEPT_STATEMENTS = 10_000
_SHOWN_CHARACTERS = 200


@dataclass(slots=True)
class WireFaults:
    """The ordered faults and the statement log of a server. TDS calls `request` before each request runs."""

    server: Server
    orders: list[tuple[OrderedFault, WireFault]] = field(default_factory=list)
    logging: bool = False
    log: deque[tuple] = field(default_factory=lambda: deque(maxlen=KEPT_STATEMENTS))
    _number: int = 0

    @property
    def active(self) -> bool:
        """Whether anything is ordered or logged."""
        return self.logging or bool(self.orders)

    def request(self, spid: int, request: Request) -> WireFault | None:
        """Log the request if logging is on, and return the fault that applies to it."""
        session = self.server.sessions[spid]
        text = request.text or _prepared_text(session, request)
        if self.logging:
            self._keep(session, request, text)
        for order, fault in self.orders:
            if order.strikes(text or request.name, session.application):
                return fault
        return None

    def _keep(self, session: Any, request: Request, text: str) -> None:
        self._number += 1
        parameters = ", ".join(map(_shown, request.parameters)) if request.parameters else None
        self.log.append((
            self._number, self.server.clock.utc_ticks(), session.spid, session.login, session.application,
            session.database, request.kind, request.name or None, text or None, parameters,
        ))  # fmt: skip


def _prepared_text(session: Any, request: Request) -> str:
    """The text behind the handle of sp_execute and sp_cursorexecute."""
    name = request.name.lower()
    if name not in ("sp_execute", "sp_cursorexecute") or not request.parameters:
        return ""
    known: dict[Any, Any] = session.prepared.known if name == "sp_execute" else cursors_of(session).prepared
    found = known.get(request.parameters[0].value)
    return found.text if found is not None else ""


def _shown(parameter: RpcParameter) -> str:
    """`@name=value`, shortened if it is long."""
    value = parameter.value
    if value is None:
        text = "NULL"
    elif isinstance(value, TableValue):
        text = f"{len(value.rows)} rows"
    elif isinstance(value, bytes):
        text = f"0x{value.hex().upper()}"
    else:
        text = display(value, parameter.type)
    return f"{parameter.name}={text[:_SHOWN_CHARACTERS]}{'…' if len(text) > _SHOWN_CHARACTERS else ''}"


# ---- procedures ----------------------------------------------------------------------------------------------------


async def _order(call: Call, fault: WireFault) -> AsyncIterator[Event]:
    call.scope.server.catalog.wire.orders.append((OrderedFault.of(call), fault))
    return
    yield


def _slow_results(call: Call) -> AsyncIterator[Event]:
    return _order(call, WireFault(seconds=float(call.arguments["seconds"])))  # type: ignore[arg-type]


def _corrupt_packet(call: Call) -> AsyncIterator[Event]:
    return _order(call, WireFault(corrupt=call.number("packet") or 1))


def _cut_connection(call: Call) -> AsyncIterator[Event]:
    when = (call.text("when") or "").lower()
    known: tuple[Cut, ...] = get_args(Cut)[1:]
    for cut in known:
        if cut == when:
            return _order(call, WireFault(cut=cut, packet=call.number("packet") or 1))
    raise SqlError(50000, f"sandbox.cut_connection: @when = '{when}'; expected {', '.join(known)}.")


async def _statement_log(call: Call) -> AsyncIterator[Event]:
    """Switching on clears the log; switching off keeps it."""
    wire: WireFaults = call.scope.server.catalog.wire
    wire.logging = bool(call.number("on"))
    if wire.logging:
        wire.log.clear()
    return
    yield


def _statements(scope: Scope) -> Iterator[tuple]:
    return iter(tuple(scope.server.catalog.wire.log))


_CHOICE = "@pattern nvarchar(4000)"
_TIMES = "@nth int = 1, @times int = 1, @application nvarchar(128) = NULL"

PROCEDURES = (
    procedure("sandbox.slow_results", f"{_CHOICE}, @seconds float, {_TIMES}", _slow_results),
    procedure("sandbox.corrupt_packet", f"{_CHOICE}, @packet int = 1, {_TIMES}", _corrupt_packet),
    procedure(
        "sandbox.cut_connection",
        f"{_CHOICE}, @when nvarchar(20) = N'middle', @packet int = 1, {_TIMES}",
        _cut_connection,
    ),
    procedure("sandbox.statement_log", "@on bit = 1", _statement_log),
)
VIEWS = (
    view(
        "sandbox.statements",
        "number bigint, at_utc datetime2(7), session_id int, login_name nvarchar(128), program_name nvarchar(128)?, "
        "database_name nvarchar(128), kind varchar(20), procedure_name nvarchar(400)?, text nvarchar(max)?, "
        "parameters nvarchar(max)?",
        _statements,
    ),
)
