"""Communication between running statements and the session that drives them: pauses, jumps, aborts.

Statements run as plain generators of events. Where they must wait they yield a `Pause`; the session awaits it and sends
the result back in. So no statement is a coroutine, and execution stays fast.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.lock_requests import LockRequest
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError

MAX_NESTING = 32
"""The maximum nesting depth of modules."""
Outputs = list[tuple[int, str, SqlType, Any]]
Answer = tuple[int, Outputs]
"""The results of a procedure: status, and outputs as position among the arguments, name, type, value."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Something to await; its result is sent back into the generator, its exception thrown."""

    wait: Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Jump:
    """How a statement list ended early: `break`, `continue`, `return`, or `goto` with a label."""

    kind: str
    label: str = ""


T = TypeVar("T")
StepsTo = Generator[Event | Pause, Any, T]
"""Part of a running statement, with a result."""
Steps = StepsTo[Jump | None]
"""A running statement."""


class CompileError(SqlError):
    """An error found while a statement was compiled: it ends its batch or module, but no transaction."""

    def __init__(self, failure: SqlError, routine: object) -> None:
        self.routine = routine
        super().__init__(
            failure.number, failure.message, severity=failure.severity, state=failure.state,
            procedure=failure.procedure, line=failure.line,
        )  # fmt: skip
        self.before = failure.before


class Abort(Exception):  # noqa: N818 - a signal: its errors have been reported already
    """The batch (`scope` False) or only the running module or batch (`scope` True) ends here."""

    def __init__(self, *, scope: bool) -> None:
        super().__init__("scope" if scope else "batch")
        self.scope = scope


class Cancelled(Exception):  # noqa: N818 - a signal
    """The client sent an attention, or the session was killed."""


def lock_pause(request: LockRequest, timeout_ms: int) -> Pause:
    """Waiting for a lock under SET LOCK_TIMEOUT (-1: for ever)."""
    return Pause(lambda: request.wait(None if timeout_ms < 0 else timeout_ms / 1000))
