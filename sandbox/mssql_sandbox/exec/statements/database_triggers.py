"""Database triggers: enabling and disabling them."""

from __future__ import annotations

from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import error
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.security import is_owner
from mssql_sandbox.tsql import statements as st


def switch(frame: Frame, node: st.AlterTableSet) -> Steps:
    """ENABLE | DISABLE TRIGGER names | ALL ON DATABASE. 1088 for an unknown name or without permission."""
    session = frame.session
    database = session.current_database
    mine = database.objects() if is_owner(session, database) else ()
    own = (item for item in mine if item.type_code == "TR" and item.definition.parent is None)
    known = {item.name.casefold(): item for item in own}

    def work(_transaction: Transaction) -> None:
        for name in node.names or tuple(known):
            found = known.get(name.casefold())
            if found is None:
                raise error(1088, name=name)
            found.definition.disabled = node.action.startswith("disable")

    yield from session.transactions.run(work)
    yield session.done(frame, None, "alter")
    return None
