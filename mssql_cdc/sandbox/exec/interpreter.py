"""Running statement lists: control of flow, errors with their consequences, and the table of statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec import ordered_faults, procedures
from mssql_cdc.sandbox.exec.failures import consequences, doom, end_of_batch, locate, message_of, only_told, report
from mssql_cdc.sandbox.exec.flow import Abort, CompileError, Jump, Steps, StepsTo
from mssql_cdc.sandbox.exec.routine import Frame
from mssql_cdc.sandbox.exec.statements import (
    administration,
    alterations,
    bulk,
    changes,
    cursors,
    definitions,
    indexes,
    inserts,
    merging,
    messages,
    places,
    queries,
    schemas,
    settings,
    small_objects,
    tables,
)
from mssql_cdc.sandbox.tsql import statements as st


def run_batch(frame: Frame) -> Steps:
    """Run a routine's statements to the end; an `Abort` of its own scope ends here."""
    try:
        return (yield from run_list(frame, frame.routine.statements))
    except Abort as abort:
        if not abort.scope:
            raise
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
    """Run one statement; outside TRY its errors are reported here and decide what happens next."""
    session = frame.session
    options = session.options
    if (options.noexec or options.parseonly) and not isinstance(node, st.SetOption):
        return None
    if options.fmtonly and not isinstance(node, _DESCRIBED):
        return (yield from _describe(frame, node))
    handler = _HANDLERS[type(node)]
    try:
        if session.server.catalog is not None and session.server.catalog.faults.statements:
            yield from ordered_faults.strike(session, node)
        jump = yield from handler(frame, node)
    except SqlError as failure:
        locate(frame, node, failure)
        if failure.severity > 10:
            session.last_error = failure.number
            session.row_count = 0
        if failure.severity >= 20 or (session.try_depth and not only_told(session, failure)):
            raise
        yield from report(frame, failure)
        yield from consequences(session, failure)
        return None
    if type(node) not in _KEEPS_ERROR:
        session.last_error = 0
    return jump


def _describe(frame: Frame, node: st.Statement) -> Steps:
    """SET FMTONLY ON: queries give their columns, both branches of IF are looked into, nothing else happens."""
    if isinstance(node, st.SelectStatement):
        yield from queries.describe(frame, node)
    elif isinstance(node, st.If):
        yield from run_one(frame, node.then)
        if node.otherwise is not None:
            yield from run_one(frame, node.otherwise)
    return None


# ---- control of flow ------------------------------------------------------------------------------------------


def _block(frame: Frame, node: st.Block) -> Steps:
    return (yield from run_list(frame, node.body))


def _holds(frame: Frame, condition: Any) -> StepsTo[bool]:
    """The truth of a condition, which may read tables."""
    compiled = frame.compiled(condition, lambda compiler: (compiler.condition(condition), compiler.reads_tables))
    expr, reads = compiled
    if not reads:
        return expr.fn((), frame.context(frame.session.transactions.current)) is True
    return (
        yield from frame.session.transactions.run(lambda transaction: expr.fn((), frame.context(transaction)) is True)
    )


def _if(frame: Frame, node: st.If) -> Steps:
    if (yield from _holds(frame, node.condition)):
        return (yield from run_one(frame, node.then))
    if node.otherwise is not None:
        return (yield from run_one(frame, node.otherwise))
    return None


def _while(frame: Frame, node: st.While) -> Steps:
    while (yield from _holds(frame, node.condition)):
        jump = yield from run_one(frame, node.body)
        yield from frame.session.breathe()
        if jump is None or jump.kind == "continue":
            continue
        if jump.kind == "break":
            return None
        return jump
    return None


def _jump(_frame: Frame, node: st.Jump) -> Steps:
    return Jump(node.kind)
    yield  # a generator like all handlers


def _goto(_frame: Frame, node: st.Goto) -> Steps:
    return Jump("goto", node.label)
    yield


def _label_statement(_frame: Frame, _node: st.Label) -> Steps:
    return None
    yield


def _return(frame: Frame, node: st.Return) -> Steps:
    if node.value is not None:
        expr = frame.compiled(node, lambda compiler: compiler.value(node.value))  # type: ignore[arg-type]
        value = yield from frame.session.transactions.run(lambda transaction: expr.fn((), frame.context(transaction)))
        frame.returned = value if value is not None else 0
    return Jump("return")


def _try(frame: Frame, node: st.TryCatch) -> Steps:
    session = frame.session
    depth = session.try_depth
    session.try_depth = depth + 1
    try:
        jump = yield from run_list(frame, node.body)
    except SqlError as failure:
        session.try_depth = depth
        if failure.severity >= 20 or (isinstance(failure, CompileError) and _own(frame, failure)):
            raise
        caught = failure
    else:
        session.try_depth = depth
        return jump
    finally:
        session.try_depth = depth
    doom(session, caught)
    before, session.caught = session.caught, caught
    try:
        return (yield from run_list(frame, node.handler))
    finally:
        session.caught = before


def _own(frame: Frame, failure: CompileError) -> bool:
    """Compile errors cannot be caught in the batch or module where they are, only by callers."""
    return failure.routine is frame.routine


# ---- transactions ---------------------------------------------------------------------------------------------


def _transaction(frame: Frame, node: st.TransactionStatement) -> Steps:
    session = frame.session
    name = node.name if isinstance(node.name, str) else str(frame.evaluate(node.name) or "")
    if len(name) > 32:
        raise error(103, text=name)
    transactions = session.transactions
    if node.action == "begin":
        yield from transactions.begin(name)
        if session.options.implicit and transactions.count == 1:
            transactions.count = 2
    elif node.action == "commit":
        yield from transactions.commit()
    elif node.action == "rollback":
        yield from transactions.rollback(name)
    else:
        yield from transactions.implicit_begin()
        transactions.save(name)
    yield session.done(frame, None, node.action)
    return None


_DESCRIBED = (st.SetOption, st.Block, st.TryCatch, st.Execute, st.ExecuteString)
_KEEPS_ERROR = frozenset({st.If, st.While, st.Block, st.TryCatch, st.RaiseError, st.Execute, st.ExecuteString})
_HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.Block: _block,
    st.If: _if,
    st.While: _while,
    st.Jump: _jump,
    st.Goto: _goto,
    st.Label: _label_statement,
    st.Return: _return,
    st.TryCatch: _try,
    st.TransactionStatement: _transaction,
    st.SelectStatement: queries.select,
    st.Insert: inserts.insert,
    st.InsertBulk: bulk.insert_bulk,
    st.Update: changes.update,
    st.Delete: changes.delete,
    st.Truncate: changes.truncate,
    st.Merge: merging.merge,
    st.Execute: procedures.execute,
    st.ExecuteString: procedures.execute_string,
    **settings.HANDLERS,
    **messages.HANDLERS,
    **cursors.HANDLERS,
    **administration.HANDLERS,
    **definitions.HANDLERS,
    **indexes.HANDLERS,
    **small_objects.HANDLERS,
    **alterations.HANDLERS,
    **places.HANDLERS,
    **schemas.HANDLERS,
    st.CreateTable: tables.create_table,
}

__all__ = ["end_of_batch", "message_of", "run_batch", "run_list", "run_one"]
