"""Errors as events, and the errors that end a batch regardless of SET options."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.engine.events import Message
from mssql_sandbox.errors import AT_CALL, SqlError, after, error

_ABORTING = frozenset({235, 241, 242, 244, 245, 248, 293, 295, 1205, 3609, 3960, 8114, 8169, 8170, 3961})


_MADE_NONE = frozenset({1752, 1753, 1757, 1759, 1763, 1767, 1769, 1770, 1773, 1774, 1776, 1778, 1779, 1781, 1785, 8111})
"""Errors of constraints that 1750 follows: the constraint could not be created."""


def followed(failure: SqlError) -> SqlError:
    """The error that TRY sees: the last one of the statement."""
    return after(failure, error(1750)) if failure.number in _MADE_NONE else failure


def messages_of(failure: SqlError) -> Iterator[Message]:
    """An error as events, after those that come before it."""
    return map(message_of, (*failure.before, failure))


def message_of(failure: SqlError) -> Message:
    """An error as an event."""
    line = 0 if failure.line == AT_CALL else max(failure.line, 1)
    return Message(failure.number, failure.state, failure.severity, failure.message, failure.procedure, line)


def aborts_batch(failure: SqlError) -> bool:
    """Errors that end the batch and roll the transaction back regardless of XACT_ABORT."""
    return failure.number in _ABORTING or failure.severity >= 19
