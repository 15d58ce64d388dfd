"""The consequences of an uncaught error: messages, and whether the statement, the batch or the transaction ends."""

from __future__ import annotations

from mssql_sandbox.engine.events import EnvChange, Message
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.failures import aborts_batch, message_of, messages_of
from mssql_sandbox.exec.flow import Abort, CompileError, Steps
from mssql_sandbox.exec.options import ARITHMETIC_ERRORS
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.tsql import statements as st

_TERMINATING = frozenset({220, 232, 512, 515, 547, 550, 1505, 2601, 2627, 2628, 3960, 8115, 8134, 8152, 8672})
_CHANGES = (
    st.Insert, st.Update, st.Delete, st.Merge, st.CreateIndex, st.AlterColumn, st.Execute, st.InsertBulk,
)  # fmt: skip
"""Statements that change rows: message 3621 reports that they were terminated."""


def _terminated(failure: SqlError, node: st.Statement) -> bool:
    """Whether message 3621 follows; for duplicates among the rows of a new key always."""
    if any(part.number == 1505 for part in failure.before):
        return True
    return failure.number in _TERMINATING and isinstance(node, _CHANGES)


def locate(frame: Frame, node: st.Statement, failure: SqlError) -> None:
    """Set where an error was raised: line and module."""
    for part in (failure, *failure.before):
        if not part.line:
            part.line = node.line
    if not failure.procedure and frame.routine.name:
        failure.procedure = frame.routine.name


def only_told(session: SessionState, failure: SqlError) -> bool:
    """Whether the trigger continues after the error: RAISERROR in triggers without TRY in or around them."""
    return getattr(failure, "raised", False) and session.try_depth == len(session.trigger_stack)


def report(frame: Frame, node: st.Statement, failure: SqlError) -> Steps:
    """Report an error to the client, and the end of the statement."""
    yield from messages_of(failure)
    if _terminated(failure, node):
        yield Message(3621, 0, 0, "The statement has been terminated.", failure.procedure, failure.line)
    yield frame.session.done(frame, None, "error", error=True)
    return None


def consequences(session: SessionState, failure: SqlError) -> Steps:
    """What an unhandled error ends: the statement, the batch, or also the transaction."""
    if failure.severity <= 10:
        return None
    raised = getattr(failure, "raised", False)
    options = session.options
    arithmetic = failure.number in ARITHMETIC_ERRORS and options.arithabort and not options.ansi_warnings
    if aborts_batch(failure) or arithmetic or (options.xact_abort and not raised):
        yield from roll_back(session)
        raise Abort(scope=False)
    if isinstance(failure, CompileError) or getattr(failure, "thrown", False):
        raise Abort(scope=isinstance(failure, CompileError))
    return None


def roll_back(session: SessionState) -> Steps:
    """Roll the open transaction back because of an error."""
    if session.transactions.current is not None:
        yield from session.transactions.rollback()
    return None


def doom(session: SessionState, failure: SqlError) -> None:
    """The effect of a caught error on the open transaction: some errors doom it."""
    current = session.transactions.current
    raised = getattr(failure, "raised", False)
    if current is not None and (aborts_batch(failure) or (session.options.xact_abort and not raised)):
        current.doomed = True


def end_of_batch(session: SessionState) -> Steps:
    """A doomed transaction does not outlive its batch: 3998."""
    current = session.transactions.current
    if current is not None and current.doomed:
        failure = error(3998)
        yield message_of(failure)
        events: list[EnvChange] = list(session.transactions.rollback())
        yield from events
    return None
