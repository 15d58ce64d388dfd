"""Applying the faults that are ordered for statements; the server's `faults` holds the orders."""

from __future__ import annotations

from mssql_sandbox.exec.flow import Pause, Steps
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.tsql import statements as st

_HOLDS_OTHERS = (st.Block, st.If, st.While)


def strike(session: SessionState, node: st.Statement) -> Steps:
    """Delay the statement, or raise the error that was ordered for it."""
    if isinstance(node, _HOLDS_OTHERS):
        return None
    server = session.server
    late = server.catalog.faults.before_statement(
        session.statement_text(node), spid=session.spid, application=session.application
    )
    if late:
        yield Pause(lambda: server.clock.sleep(late))
    return None
