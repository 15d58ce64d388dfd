"""APPLOCK_MODE and APPLOCK_TEST: what is held, and whether a lock could be had."""

from __future__ import annotations

from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.lock_requests import LockOwner
from mssql_sandbox.errors import error
from mssql_sandbox.exec.application_locks import MODES, SessionOwner, mode_held, resource_of
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, coerce
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast

_TEXT = t.nvarchar(255)


def _texts(compiler: Compiler, node: ast.Function, scope: Scope, count: int) -> list[Any]:
    if len(node.arguments) != count:
        raise error(174, name=node.name[-1].lower(), count=count)
    return [coerce(compiler.value(argument, scope), _TEXT).fn for argument in node.arguments]


def _owner(context: Context, kind: str) -> LockOwner | None:
    session = context.session
    return session.application_owner if kind.lower() == "session" else session.transactions.current


def applock_mode(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    """APPLOCK_MODE(principal, resource, owner)."""
    _, resource, owner = _texts(compiler, node, scope, 3)

    def fn(row: tuple, context: Context) -> str:
        wanted = resource_of(context.session.current_database, str(resource(row, context)))
        return mode_held(_owner(context, str(owner(row, context))), wanted)

    return Expr(t.nvarchar(32), fn, constant=True, varying=True)


def applock_test(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    """APPLOCK_TEST(principal, resource, mode, owner): 1 when the lock could be had at once."""
    _, resource, mode, owner = _texts(compiler, node, scope, 4)

    def fn(row: tuple, context: Context) -> int:
        session = context.session
        wanted = resource_of(session.current_database, str(resource(row, context)))
        kind = MODES.get(str(mode(row, context)).lower())
        if kind is None:
            raise error(155, value=mode(row, context), function="@LockMode")
        asking = _owner(context, str(owner(row, context))) or SessionOwner(session.spid)
        return int(session.server.locks.try_acquire(asking, wanted, kind, duration="instant"))

    return Expr(t.SMALLINT, fn, constant=True, varying=True)


SPECIALS = {"APPLOCK_MODE": applock_mode, "APPLOCK_TEST": applock_test}
