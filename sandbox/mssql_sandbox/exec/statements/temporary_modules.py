"""Temporary procedures: `#p` is its session's own, `##p` everybody's until its maker leaves. They live in tempdb.

Their statements run in the database in which they were made. Views and functions are never temporary.
"""

from __future__ import annotations

from mssql_sandbox.engine.storage.objects import SchemaObject, is_private
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.modules import Module
from mssql_sandbox.tsql import statements as st

_REFUSED = {
    "view": (4103, '"{name}": Temporary views are not allowed.'),
    "function": (1074, "Creation of temporary functions is not allowed."),
}


def refuse_temporary(node: st.CreateModule) -> None:
    """Errors 4103 and 1074: views and functions may not be temporary [doc: sys.messages]."""
    refused = _REFUSED.get(node.kind)
    if refused is not None:
        number, text = refused
        raise SqlError(number, text.format(name=node.name[-1]), severity=15)


def new_temporary(
    compiler: Compiler, transaction: Transaction, name: str, code: str, definition: Module, text: str
) -> SchemaObject:
    """Enter a procedure into tempdb, for this session or for all; 2714 if the name is taken."""
    session = compiler.session
    tempdb = session.server.database("tempdb")
    now = tempdb.server.clock.local_datetime()
    item = SchemaObject(name, tempdb.next_object_id(), tempdb.schema("dbo"), code, now, now, 0, definition, text)
    if is_private(name):
        session.temporary.add(item, transaction)
        transaction.on_undo(session.routines.clear)
    else:
        tempdb.add_object(transaction, item)
        session.temporary.add_shared(item)
    return item
