"""PRINT, RAISERROR, THROW, WAITFOR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.cdc_messages import MESSAGES
from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.events import Message
from mssql_sandbox.engine.ticks import DAY_TICKS, SECOND_TICKS
from mssql_sandbox.errors import FATAL_SEVERITY, SqlError, after, error
from mssql_sandbox.exec.expressions.base import coerce
from mssql_sandbox.exec.flow import Pause, Steps
from mssql_sandbox.exec.message_texts import formatted
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st

_SUBSTITUTES = t.INTEGERS | t.STRINGS | t.BINARIES
"""The types that RAISERROR accepts as arguments."""


def _text(frame: Frame, node: ast.Expression) -> str:
    expr = frame.compiled(
        node, lambda compiler: coerce(compiler.value(node), t.nvarchar(4000, collation=compiler.collation))
    )
    value = expr.fn((), frame.context(frame.session.transactions.current))
    return "" if value is None else value


def _print(frame: Frame, node: st.Print) -> Steps:
    text = _text(frame, node.value)
    yield Message(0, 1, 0, text or " ", frame.routine.name, node.line)
    return None


def _raiserror(frame: Frame, node: st.RaiseError) -> Steps:
    session = frame.session
    first = frame.evaluate(node.message)
    severity = int(frame.evaluate(node.severity))
    state = int(frame.evaluate(node.state))
    state = 1 if state < 0 else min(state, 255)
    if severity > 18 and "LOG" not in node.options:
        raise error(2754)
    arguments = [_substitute(frame, argument, place) for place, argument in enumerate(node.arguments, 1)]
    known = MESSAGES.get(first) if isinstance(first, int) else None
    if known is not None:
        default, template = known
        number, text = int(first), formatted(template, arguments)
        severity = default if severity < 0 else severity
    elif isinstance(first, int) and (first < 13000 or first == 50000):
        raise error(2732, value=first)
    elif isinstance(first, int):
        raise SqlError(
            18054, f"Error {first}, severity {severity}, state {state} was raised, but no message with that error "
            "number was found in sys.messages. If error is larger than 50000, make sure the user-defined message "
            "is added using sp_addmessage."
        )  # fmt: skip
    else:
        number, text = 50000, formatted("" if first is None else str(first), arguments)
    if severity <= 10:
        session.last_error = number if "SETERROR" in node.options else 0
        yield Message(number, state, max(severity, 0), text, frame.routine.name, node.line)
        yield from session.ended(frame)
        return None
    failure = SqlError(number, text, severity=severity, state=state, line=node.line)
    if severity >= FATAL_SEVERITY:
        failure = after(error(2745, spid=session.spid, raised=number, level=severity), failure)
    failure.raised = True  # type: ignore[attr-defined]
    raise failure


def _substitute(frame: Frame, node: ast.Expression, place: int) -> Any:
    """An argument value: integers and text only, 2748 for others."""
    expr = frame.compiled(node, lambda compiler: compiler.value(node))
    if not expr.null and expr.type.name not in _SUBSTITUTES:
        raise error(2748, type=expr.type.name, ordinal=place)
    return expr.fn((), frame.context())


def _throw(frame: Frame, node: st.Throw) -> Steps:
    session = frame.session
    if not node.arguments:
        caught = session.caught
        if caught is None:
            raise error(10704)
        again = SqlError(
            caught.number, caught.message, severity=caught.severity, state=caught.state, procedure=caught.procedure,
            line=caught.line,
        )  # fmt: skip
    else:
        number, message, state = (frame.evaluate(argument) for argument in node.arguments)
        if not 50000 <= int(number) <= 2147483647:
            raise error(35100, value=number)
        again = SqlError(int(number), str(message), severity=16, state=int(state), line=node.line)
    again.thrown = True  # type: ignore[attr-defined]
    raise again
    yield


def _waitfor(frame: Frame, node: st.WaitFor) -> Steps:
    value = frame.compiled(node, lambda compiler: compiler.value(node.value))
    given = value.fn((), frame.context())
    text_type = value.type if value.type.name in t.DATES else t.nvarchar(50)
    try:
        ticks = convert(given, text_type, t.time(7))
    except SqlError:
        raise error(148, text=given) from None
    clock = frame.session.server.clock
    if node.kind == "TIME":
        ticks = (ticks - clock.local_ticks() % DAY_TICKS) % DAY_TICKS
    yield Pause(lambda: clock.sleep(ticks / SECOND_TICKS))
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.Print: _print,
    st.RaiseError: _raiserror,
    st.Throw: _throw,
    st.WaitFor: _waitfor,
}
