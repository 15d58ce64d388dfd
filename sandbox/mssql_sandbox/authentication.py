"""Logins: passwords, disabled logins, and passwords that must be changed."""

from __future__ import annotations

import hmac

from mssql_sandbox.engine.storage.server import Login as Account
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.errors import error
from mssql_sandbox.tds.login import Login


def authenticate(engine: Server, login: Login) -> Account:
    """The account of a client; a new password that the client sends is stored.

    Raises:
        SqlError: 18456 for an unknown login or a wrong password, 18470 for a disabled one, 18488 if the
            password must be changed.
    """
    account = engine.logins.get(login.user)
    if account is None or not _same(account.password, login.password):
        raise error(18456, login=login.user)
    if account.disabled:
        raise error(18470, login=login.user)
    if login.new_password is not None:
        account.password, account.must_change = login.new_password, False
    if account.must_change:
        raise error(18488, login=login.user)
    return account


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))
