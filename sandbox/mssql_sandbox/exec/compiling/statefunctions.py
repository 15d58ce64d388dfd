"""Functions that read the running session or take arguments in a form of their own.

COLUMNS_UPDATED, CURSOR_STATUS, FORMATMESSAGE, SESSION_CONTEXT, CONNECTIONPROPERTY.
"""

from __future__ import annotations

from typing import Any

from mssql_sandbox.cdc_messages import MESSAGES
from mssql_sandbox.engine import types as t
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, coerce, derived
from mssql_sandbox.exec.message_texts import formatted
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast

_CLOSED, _NONE = -1, -3


def columns_updated(_compiler: Compiler, node: ast.Function, _scope: Scope) -> Expr:
    """COLUMNS_UPDATED(): a bit per column id of the trigger's table, eight to a byte, the first one lowest."""
    if node.arguments:
        raise error(174, name="columns_updated", count=0)

    def fn(_row: tuple, context: Context) -> bytes:
        stack = context.session.trigger_stack
        if not stack:
            raise SqlError(421, "COLUMNS_UPDATED can only be used within a CREATE TRIGGER statement.")
        level = stack[-1]
        parent = level.trigger.definition.parent
        ids = [column.column_id for column in parent.columns if column.name in level.columns]
        mask = sum(1 << (number - 1) for number in ids)
        width = (max((column.column_id for column in parent.columns), default=1) + 7) // 8
        return mask.to_bytes(width, "little")

    return Expr(t.varbinary(128), fn, False, constant=True, varying=True)


def cursor_status(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    """CURSOR_STATUS(kind, name): 1 open, 0 open without rows, -1 closed, -2 no cursor in the variable, -3 unknown."""
    if len(node.arguments) != 2:
        raise error(174, name="cursor_status", count=2)
    kind, name = (coerce(compiler.value(one, scope), t.nvarchar(128)) for one in node.arguments)
    slots = compiler.variables.slots

    def fn(row: tuple, context: Context) -> int:
        wanted, which = str(name.fn(row, context) or ""), str(kind.fn(row, context) or "").lower()
        if which == "variable":
            slot = slots.get(wanted.lower())
            if slot is None or not slot.cursor:
                return _NONE
            cursor = context.values[slot.place]
            return -2 if cursor is None else _state(cursor)
        cursor = context.session.cursors.get(wanted.lower())
        return _NONE if cursor is None else _state(cursor)

    return derived(t.SMALLINT, fn, kind, name, nullable=False)


def _state(cursor: Any) -> int:
    if cursor.rows is None:
        return _CLOSED
    return 1 if cursor.rows else 0


def format_message(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    """FORMATMESSAGE(text or number, …): filled as by RAISERROR; NULL for an unknown number."""
    if not node.arguments:
        raise error(174, name="formatmessage", count=1)
    parts = [compiler.value(one, scope) for one in node.arguments]
    first, *rest = (part.fn for part in parts)

    def fn(row: tuple, context: Context) -> str | None:
        template = first(row, context)
        if isinstance(template, int):
            known = MESSAGES.get(template)
            template = None if known is None else known[1]
        return None if template is None else formatted(str(template), [one(row, context) for one in rest])

    return derived(t.nvarchar(2048, collation=compiler.collation), fn, *parts, nullable=True)


def session_context(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    """SESSION_CONTEXT(key): the value set with sp_set_session_context, as sql_variant."""
    if len(node.arguments) != 1:
        raise error(174, name="session_context", count=1)
    key = coerce(compiler.value(node.arguments[0], scope), t.nvarchar(128)).fn

    def fn(row: tuple, context: Context) -> Any:
        found = context.session.session_context.get(str(key(row, context)).lower())
        return None if found is None else found[0]

    return Expr(t.SQL_VARIANT, fn, True, varying=True)


_CONNECTION = {"net_transport": "TCP", "protocol_type": "TSQL", "auth_scheme": "SQL", "physical_net_transport": "TCP"}


def connection_property(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    """CONNECTIONPROPERTY(name): NULL for addresses, which only the protocol layer knows, and for unknown names."""
    if len(node.arguments) != 1:
        raise error(174, name="connectionproperty", count=1)
    key = coerce(compiler.value(node.arguments[0], scope), t.nvarchar(128)).fn

    def fn(row: tuple, context: Context) -> Any:
        found = _CONNECTION.get(str(key(row, context)).lower())
        return None if found is None else (t.nvarchar(40, collation=compiler.collation), found)

    return Expr(t.SQL_VARIANT, fn, True, varying=True)


SPECIALS = {
    "CONNECTIONPROPERTY": connection_property,
    "SESSION_CONTEXT": session_context,
    "COLUMNS_UPDATED": columns_updated,
    "CURSOR_STATUS": cursor_status,
    "FORMATMESSAGE": format_message,
}
