"""The sandbox's exceptions: SQL Server's errors, and a server that does not start.

Every layer of the sandbox raises `SqlError`, normally through `error(number, **values)`. What does not
belong here: the texts (error_messages.py), deciding when something is an error.
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
        """Errors that are told before this one, unless it is caught: TRY sees the last error only."""

    def __str__(self) -> str:
        return f"Msg {self.number}, Level {self.severity}, State {self.state}: {self.message}"


class StartError(RuntimeError):
    """A server has not started; the text holds what it printed."""


FATAL_SEVERITY = 20
"""The severity from which on an error ends the connection."""
AT_CALL = -1
"""The line of errors that a call itself makes: they are reported in the called procedure, at line 0."""


def error(number: int, *, state: int | None = None, severity: int | None = None, **values: object) -> SqlError:
    """The error `number` with its catalogued text; the places of the text are given by name."""
    template = MESSAGES[number]
    return SqlError(
        number,
        template.text.format(**values),
        severity=template.severity if severity is None else severity,
        state=template.state if state is None else state,
    )


def call_error(number: int, procedure: str, *, state: int | None = None, **values: object) -> SqlError:
    """An error of calling a procedure: wrong arguments, a wrong @@TRANCOUNT at its end."""
    made = error(number, state=state, severity=None, **values)
    made.procedure, made.line = procedure, AT_CALL
    return made


def after(earlier: SqlError, last: SqlError) -> SqlError:
    """The last of two errors that one statement makes; the earlier one is told before it."""
    last.before = (*earlier.before, earlier)
    return last
