"""Faults on demand: procedures of the schema `sandbox`, callable through any driver.

They control time, the capture job, SQL Server Agent, cleanup and connections, and make statements that match a pattern
fail or start late. Nothing happens unless a procedure is called.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.cdc.cleanup import run_cleanup
from mssql_sandbox.cdc.instances import DatabaseCapture
from mssql_sandbox.cdc.job_settings import RETENTION
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.events import Event
from mssql_sandbox.error_messages import MESSAGES
from mssql_sandbox.errors import SqlError

_YEAR_1 = datetime(1, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
CONNECTION_RESET = 10054


class _Places(dict[str, str]):
    """Fills the unknown placeholders of a message text with their names."""

    def __missing__(self, key: str) -> str:
        return key


def ordered_error(number: int, *, spid: int) -> SqlError:
    """The error of this number with the server's text; 10054 ends the connection."""
    if number == CONNECTION_RESET:
        return SqlError(number, "The connection was reset.", severity=20)
    template = MESSAGES.get(number)
    if template is None:
        return SqlError(number, f"Error {number} was ordered for this statement.", state=51)
    text = template.text.format_map(_Places(spid=str(spid)))
    return SqlError(number, text, severity=template.severity, state=template.state)


@dataclass(slots=True)
class OrderedFault:
    """A fault for statements whose text matches: from the `nth` match on, `times` times.

    The statement starts `seconds` late, or fails with error `number` if that is not 0.
    """

    pattern: re.Pattern[str]
    nth: int
    times: int
    application: str
    number: int = 0
    seconds: float = 0.0
    seen: int = 0

    @staticmethod
    def of(call: Call, *, number: int = 0, seconds: float = 0.0) -> OrderedFault:
        """The fault described by a procedure's arguments."""
        pattern = re.compile(call.text("pattern") or "", re.IGNORECASE | re.DOTALL)
        nth, times = call.number("nth") or 1, call.number("times") or 1
        return OrderedFault(pattern, nth, times, call.text("application") or "", number, seconds)

    def strikes(self, text: str, application: str) -> bool:
        """Whether the fault applies to this statement; counts the matches."""
        if self.application and self.application.casefold() not in application.casefold():
            return False
        if not self.pattern.search(text):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


@dataclass(slots=True)
class Faults:
    """The faults that are ordered. The executor calls `before_statement` with the text of each statement."""

    statements: list[OrderedFault] = field(default_factory=list)

    def before_statement(self, text: str, *, spid: int, application: str = "") -> float:
        """The seconds by which this statement starts late.

        Raises:
            SqlError: the error that is ordered for this statement; 10054 has severity 20, which ends the connection.
        """
        late = 0.0
        for fault in self.statements:
            if fault.strikes(text, application):
                if fault.number:
                    raise ordered_error(fault.number, spid=spid)
                late += fault.seconds
        return late


def _capture(call: Call) -> DatabaseCapture:
    capture = call.scope.server.catalog.cdc.capture(call.scope.database)
    if capture is None:
        raise cdc_error(22901, call.scope.database.name, procedure="sandbox")
    return capture


async def _nothing() -> AsyncIterator[Event]:
    return
    yield


def _advance_clock(call: Call) -> AsyncIterator[Event]:
    seconds = call.arguments["seconds"]
    call.scope.server.clock.advance(float(seconds))  # type: ignore[arg-type]
    return _nothing()


def _set_clock(call: Call) -> AsyncIterator[Event]:
    ticks = call.number("utc")
    assert ticks is not None
    call.scope.server.clock.set(_YEAR_1 + timedelta(microseconds=ticks // 10))
    return _nothing()


def _freeze_clock(call: Call) -> AsyncIterator[Event]:
    call.scope.server.clock.freeze()
    return _nothing()


def _resume_clock(call: Call) -> AsyncIterator[Event]:
    call.scope.server.clock.resume()
    return _nothing()


def _capture_pause(call: Call) -> AsyncIterator[Event]:
    _capture(call).paused = True
    return _nothing()


def _capture_resume(call: Call) -> AsyncIterator[Event]:
    capture = _capture(call)
    capture.paused = False
    capture.history.let_go(call.scope.server.clock.local_datetime())
    return _nothing()


def _capture_hang(call: Call) -> AsyncIterator[Event]:
    """Let the capture job hang within a scan, which then has no end in `sys.dm_cdc_log_scan_sessions`."""
    capture = _capture(call)
    capture.paused = True
    capture.history.hang(call.scope.server.clock.local_datetime(), call.number("records") or 0)
    return _nothing()


def _capture_lag(call: Call) -> AsyncIterator[Event]:
    _capture(call).lag_seconds = float(call.arguments["seconds"])  # type: ignore[arg-type]
    return _nothing()


async def _capture_run(call: Call) -> AsyncIterator[Event]:
    read = call.scope.server.catalog.cdc.scan_now(call.scope.database)
    for event in result_set(columns("transactions int"), [(read,)]):
        yield event


async def _capture_error(call: Call) -> AsyncIterator[Event]:
    """Add a row to `sys.dm_cdc_errors`, as a failed scan does."""
    number = call.number("number") or 22859
    now = call.scope.server.clock.local_datetime()
    _capture(call).history.fail(now, number, 16, 1, call.text("message") or "")
    return
    yield


def _agent_stop(call: Call) -> AsyncIterator[Event]:
    call.scope.server.catalog.cdc.stop_agent()
    return _nothing()


def _agent_start(call: Call) -> AsyncIterator[Event]:
    call.scope.server.catalog.cdc.start_agent()
    return _nothing()


async def _cleanup_now(call: Call) -> AsyncIterator[Event]:
    minutes = call.number("retention")
    mark = run_cleanup(_capture(call), RETENTION if minutes is None else minutes)
    for event in result_set(columns("low_water_mark binary(10)?"), [(mark,)]):
        yield event


async def _drop_connection(call: Call) -> AsyncIterator[Event]:
    """End the sessions of an application, or one by its spid. The caller's own session ends only by its spid."""
    spid, application = call.number("spid"), call.text("application")
    own = call.scope.session.spid
    dropped = 0
    for session in list(call.scope.server.sessions.values()):
        by_name = application is not None and application.casefold() in session.application.casefold()
        if (spid is not None and session.spid == spid) or (by_name and session.spid != own):
            session.kill()
            dropped += 1
    for event in result_set(columns("dropped int"), [(dropped,)]):
        yield event


def _order(call: Call, fault: OrderedFault) -> AsyncIterator[Event]:
    call.scope.server.catalog.faults.statements.append(fault)
    return _nothing()


def _fail_statement(call: Call) -> AsyncIterator[Event]:
    return _order(call, OrderedFault.of(call, number=call.number("number") or 1205))


def _delay_statement(call: Call) -> AsyncIterator[Event]:
    seconds = call.arguments["seconds"]
    return _order(call, OrderedFault.of(call, seconds=float(seconds)))  # type: ignore[arg-type]


async def _clear_faults(call: Call) -> AsyncIterator[Event]:
    call.scope.server.catalog.faults.statements.clear()
    call.scope.server.catalog.wire.orders.clear()
    for capture in call.scope.server.catalog.cdc.captures():
        capture.paused, capture.lag_seconds = False, 0.0
        capture.history.let_go(call.scope.server.clock.local_datetime())
        capture.failures.clear()
    return
    yield


PROCEDURES = (
    procedure("sandbox.advance_clock", "@seconds float", _advance_clock),
    procedure("sandbox.set_clock", "@utc datetime2(7)", _set_clock),
    procedure("sandbox.freeze_clock", "", _freeze_clock),
    procedure("sandbox.resume_clock", "", _resume_clock),
    procedure("sandbox.capture_pause", "", _capture_pause),
    procedure("sandbox.capture_resume", "", _capture_resume),
    procedure("sandbox.capture_hang", "@records int = 0", _capture_hang),
    procedure("sandbox.capture_lag", "@seconds float", _capture_lag),
    procedure("sandbox.capture_run", "", _capture_run),
    procedure("sandbox.capture_error", "@number int = 22859, @message nvarchar(1024) = NULL", _capture_error),
    procedure("sandbox.agent_stop", "", _agent_stop),
    procedure("sandbox.agent_start", "", _agent_start),
    procedure("sandbox.cleanup_now", "@retention int = NULL", _cleanup_now),
    procedure("sandbox.drop_connection", "@spid int = NULL, @application nvarchar(128) = NULL", _drop_connection),
    procedure(
        "sandbox.fail_statement",
        "@pattern nvarchar(4000), @number int = 1205, @nth int = 1, @times int = 1, @application nvarchar(128) = NULL",
        _fail_statement,
    ),
    procedure(
        "sandbox.delay_statement",
        "@pattern nvarchar(4000), @seconds float, @nth int = 1, @times int = 1, @application nvarchar(128) = NULL",
        _delay_statement,
    ),
    procedure("sandbox.clear_faults", "", _clear_faults),
)
