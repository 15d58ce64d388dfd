"""Control of flow, TRY … CATCH, and statements about transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.errors import FATAL_SEVERITY, SqlError, error
from mssql_sandbox.exec.consequences import doom
from mssql_sandbox.exec.flow import CompileError, Jump, Steps, StepsTo
from mssql_sandbox.exec.interpreter import run_list, run_one
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql import statements as st


def _block(frame: Frame, node: st.Block) -> Steps:
    return (yield from run_list(frame, node.body))


def _holds(frame: Frame, condition: Any) -> StepsTo[bool]:
    """The truth of a condition, which may read tables; the test ends like a statement."""
    compiled = frame.compiled(condition, lambda compiler: (compiler.condition(condition), compiler.reads_tables))
    expr, reads = compiled
    if reads:
        holds = yield from frame.session.transactions.run(
            lambda transaction: expr.fn((), frame.context(transaction)) is True
        )
    else:
        holds = expr.fn((), frame.context(frame.session.transactions.current)) is True
    yield from frame.session.ended(frame)
    return holds


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
        # Functions begin without a value and may return NULL; a procedure's status is a number.
        frame.returned = 0 if value is None and frame.returned is not None else value  # type: ignore[assignment]
    return Jump("return")


def _try(frame: Frame, node: st.TryCatch) -> Steps:
    session = frame.session
    depth = session.try_depth
    session.try_depth = depth + 1
    try:
        jump = yield from run_list(frame, node.body)
    except SqlError as failure:
        session.try_depth = depth
        if failure.severity >= FATAL_SEVERITY or (isinstance(failure, CompileError) and _own(frame, failure)):
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
    """Compile errors cannot be caught in their own batch or module, only by callers."""
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


def describe_branches(frame: Frame, node: st.If) -> Steps:
    """SET FMTONLY ON: both branches of IF are described, whatever the condition."""
    yield from run_one(frame, node.then)
    if node.otherwise is not None:
        yield from run_one(frame, node.otherwise)
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.Block: _block,
    st.If: _if,
    st.While: _while,
    st.Jump: _jump,
    st.Goto: _goto,
    st.Label: _label_statement,
    st.Return: _return,
    st.TryCatch: _try,
    st.TransactionStatement: _transaction,
}
