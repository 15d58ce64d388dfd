"""Shared by the procedures: the checks at their start, and access to the capture of the current database."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mssql_sandbox.catalog.definitions import Call
from mssql_sandbox.cdc.instances import DatabaseCapture
from mssql_sandbox.cdc.service import CdcService
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.lock_requests import MustWait
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.exec.security import is_owner, is_sysadmin

T = TypeVar("T")


def service(call: Call) -> CdcService:
    """The server's change data capture."""
    return call.scope.server.catalog.cdc


def require_owner(call: Call, *, procedure: str) -> None:
    """Error 22904 unless the caller has the rights of db_owner."""
    if not is_owner(call.scope.session, call.scope.database):
        raise cdc_error(22904, procedure=procedure)


def require_sysadmin(call: Call, *, procedure: str) -> None:
    """Error 22902 unless the caller is a sysadmin."""
    if not is_sysadmin(call.scope.session):
        raise cdc_error(22902, "sysadmin", procedure=procedure)


def require_capture(call: Call, *, procedure: str) -> DatabaseCapture:
    """The capture of the current database; error 22901 if it is not enabled."""
    capture = service(call).capture(call.scope.database)
    if capture is None:
        raise cdc_error(22901, call.scope.database.name, procedure=procedure)
    return capture


def required_text(call: Call, name: str, *, procedure: str) -> str:
    """A string argument that must not be NULL or empty (22963)."""
    value = call.text(name)
    if not value:
        raise cdc_error(22963, "@" + name, procedure=procedure)
    return value


async def run(call: Call, name: str, work: Callable[[Transaction], T]) -> T:
    """Run `work` as one statement: in the session's transaction if one is open, else in a new one.

    Waits for locks as long as the session's LOCK_TIMEOUT allows, and restarts.
    """
    session = call.scope.session
    while True:
        current = session.transactions.current
        transaction = current or call.scope.server.transactions.begin(name=name, spid=session.spid)
        transaction.begin_statement()
        try:
            result = work(transaction)
        except MustWait as waiting:
            _give_up(transaction, own=current is None)
            timeout = session.options.lock_timeout
            await waiting.request.wait(None if timeout < 0 else timeout / 1000)
            continue
        except BaseException:
            _give_up(transaction, own=current is None)
            raise
        transaction.end_statement()
        if current is None:
            transaction.commit()
        return result


def _give_up(transaction: Transaction, *, own: bool) -> None:
    if own:
        transaction.rollback()
    else:
        transaction.undo_statement()
