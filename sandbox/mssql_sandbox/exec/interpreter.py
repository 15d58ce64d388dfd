"""Running statement lists: one statement after the other, and the effect of errors on the statements that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mssql_sandbox.errors import FATAL_SEVERITY, SqlError, error
from mssql_sandbox.exec import ordered_faults
from mssql_sandbox.exec.consequences import consequences, locate, only_told, report
from mssql_sandbox.exec.failures import followed
from mssql_sandbox.exec.flow import Abort, CompileError, Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql import statements as st

_RUN_WHILE_DESCRIBING = (st.SetOption, st.Block, st.TryCatch, st.Execute, st.ExecuteString)
_KEEPS_ERROR = frozenset({st.If, st.While, st.Block, st.TryCatch, st.RaiseError, st.Execute, st.ExecuteString})
_QUIET: Mapping[type, str] = {
    **dict.fromkeys((st.Print, st.SetVariable, st.WaitFor, st.DeclareCursor, st.CursorAction), "select"),
    **dict.fromkeys((st.SetOption, st.SetIsolation, st.SetIdentityInsert), "set"),
    st.Use: "use",
}
"""Statements that report only their end, and their names in that report."""


def run_batch(frame: Frame) -> Steps:
    """Run a routine's statements to the end; an `Abort` of its own scope ends here."""
    try:
        return (yield from run_list(frame, frame.routine.statements))
    except Abort as abort:
        if not abort.scope:
            raise
        return None


def run_inside(frame: Frame) -> Steps:
    """Run a routine's statements as a part of the running one, one level deeper."""
    session, routine = frame.session, frame.routine
    session.nest_level += 1
    routine.active = True
    try:
        yield from run_batch(frame)
    finally:
        routine.active = False
        session.nest_level -= 1
    return None


def run_list(frame: Frame, statements: Sequence[st.Statement]) -> Steps:
    """Run statements one after the other."""
    position = 0
    while position < len(statements):
        node = statements[position]
        jump = yield from run_one(frame, node)
        position += 1
        if jump is not None:
            if jump.kind != "goto":
                return jump
            place = _label(statements, jump.label)
            if place is None:
                return jump
            position = place
    return None


def _label(statements: Sequence[st.Statement], label: str) -> int | None:
    for place, node in enumerate(statements):
        if isinstance(node, st.Label) and node.name.lower() == label.lower():
            return place
    return None


def run_one(frame: Frame, node: st.Statement) -> Steps:
    """Run one statement; outside TRY its errors are reported here and determine what follows."""
    session = frame.session
    options = session.options
    if (options.noexec or options.parseonly) and not isinstance(node, st.SetOption):
        return None
    if options.fmtonly and not isinstance(node, _RUN_WHILE_DESCRIBING):
        describe = session.language.descriptions.get(type(node))
        return None if describe is None else (yield from describe(frame, node))
    handler = session.language.statements[type(node)]
    try:
        if session.server.catalog is not None and session.server.catalog.faults.statements:
            yield from ordered_faults.strike(session, node)
        jump = yield from handler(frame, node)
    except (SqlError, RecursionError) as reason:
        failure = followed(reason) if isinstance(reason, SqlError) else CompileError(error(191), frame.routine)
        locate(frame, node, failure)
        if failure.severity > 10:
            session.last_error = failure.number
            session.row_count = 0
        if failure.severity >= FATAL_SEVERITY or (session.try_depth and not only_told(session, failure)):
            raise failure from None
        yield from report(frame, node, failure)
        yield from consequences(session, failure)
        return None
    if type(node) not in _KEEPS_ERROR:
        session.last_error = 0
    quiet = _QUIET.get(type(node))
    if quiet is not None:
        yield from session.ended(frame, quiet)
    return jump
