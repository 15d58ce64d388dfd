"""The sandbox's exceptions: SQL Server's errors, and a server that does not start.

Every layer raises `SqlError`, normally through `error(number, **values)`. The texts belong to error_messages.py.
"""

from __future__ import annotations

from mssql_sandbox.error_messages import MESSAGES


class SqlError(Exception):
    """An error as the server reports it: number, text, severity (class), state and where it was raised."""

    def __init__(
        self,
        number: int,
        message: str,
        *,
        severity: int = 16,
        state: int = 1,
        procedure: str = "",
        line: int = 0,
    ) -> None:
        super().__init__(number, message)
        self.number = number
        self.message = message
        self.severity = severity
        self.state = state
        self.procedure = procedure
        self.line = line
        self.before: tuple[SqlError, ...] = ()
        """Errors reported before this one unless it is caught: TRY sees only the last error."""

    def __str__(self) -> str:
        return f"Msg {self.number}, Level {self.severity}, State {self.state}: {self.message}"


class StartError(RuntimeError):
    """A server has not started; the text holds what it printed."""


FATAL_SEVERITY = 20
"""Errors of this severity and above end the connection."""
AT_CALL = -1
"""The line of errors raised by a call itself: they are reported in the called procedure, at line 0."""


def error(number: int, *, state: int | None = None, severity: int | None = None, **values: object) -> SqlError:
    """The error `number` with its text; `values` fill the placeholders."""
    template = MESSAGES[number]
    return SqlError(
        number,
        template.text.format(**values),
        severity=template.severity if severity is None else severity,
        state=template.state if state is None else state,
    )


def call_error(number: int, procedure: str, *, state: int | None = None, **values: object) -> SqlError:
    """An error of a procedure call: wrong arguments, or a wrong @@TRANCOUNT at its end."""
    made = error(number, state=state, severity=None, **values)
    made.procedure, made.line = procedure, AT_CALL
    return made


def after(earlier: SqlError, last: SqlError) -> SqlError:
    """The last of two errors of one statement; the earlier one is reported before it."""
    last.before = (*earlier.before, earlier)
    return last
