"""Transactions of a session: @@TRANCOUNT, implicit transactions, and the course of a statement inside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from mssql_sandbox.engine.events import Done, EnvChange, TmRequest
from mssql_sandbox.engine.lock_requests import MustWait
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.transaction_scopes import Isolation
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.failures import message_of
from mssql_sandbox.exec.flow import Steps, StepsTo, T, lock_pause
from mssql_sandbox.exec.options import SessionOptions

LEVELS = {
    "read uncommitted": Isolation.READ_UNCOMMITTED,
    "read committed": Isolation.READ_COMMITTED,
    "repeatable read": Isolation.REPEATABLE_READ,
    "serializable": Isolation.SERIALIZABLE,
    "snapshot": Isolation.SNAPSHOT,
}


class TransactionOwner(Protocol):
    """What the transactions need from their session."""

    server: Server
    spid: int
    options: SessionOptions
    current_database: Database


class SessionTransactions:
    """The open transaction of a session, if any, and the nesting level of BEGIN."""

    __slots__ = ("_session", "count", "current", "isolation")

    def __init__(self, session: TransactionOwner) -> None:
        self._session = session
        self.current: Transaction | None = None
        self.count = 0
        self.isolation = Isolation.READ_COMMITTED

    def _new(self, name: str) -> Transaction:
        session = self._session
        return session.server.transactions.begin(
            spid=session.spid, isolation=self.isolation, name=name, deadlock_priority=session.options.deadlock_priority
        )

    def begin(self, name: str = "user_transaction") -> Iterator[EnvChange]:
        """BEGIN TRANSACTION: a new one, or one level deeper."""
        self.count += 1
        if self.current is None:
            self.current = self._new(name or "user_transaction")
            yield EnvChange("begin", new=self.current.id)

    def commit(self) -> Iterator[EnvChange]:
        """COMMIT: the outermost one makes the changes visible. 3902 without a transaction, 3930 if doomed."""
        if self.current is None:
            raise error(3902)
        if self.count > 1:
            self.count -= 1
            return
        transaction = self.current
        transaction.commit()
        self.current, self.count = None, 0
        yield EnvChange("commit", old=transaction.id)

    def rollback(self, name: str = "") -> Iterator[EnvChange]:
        """ROLLBACK: to a savepoint, or of everything. 3903 without a transaction, 6401 for an unknown name."""
        transaction = self.current
        if transaction is None:
            raise error(3903)
        if name and name.lower() != transaction.name.lower():
            if not transaction.has_savepoint(name):
                raise error(6401, name=name)
            if transaction.doomed:
                raise error(3931)
            transaction.rollback_to(name)
            return
        transaction.rollback()
        self.current, self.count = None, 0
        yield EnvChange("rollback", old=transaction.id)

    def save(self, name: str) -> None:
        """SAVE TRANSACTION; 628 without a transaction."""
        if self.current is None:
            raise error(628)
        self.current.save(name)

    def set_isolation(self, level: Isolation) -> None:
        """SET TRANSACTION ISOLATION LEVEL, also for the rest of the running transaction; 3951 into snapshot."""
        if (
            level is Isolation.SNAPSHOT
            and self.current is not None
            and self.isolation is not level
            and self.current.undo
        ):
            raise error(3951, database=self._session.current_database.name)
        self.isolation = level
        if self.current is not None:
            self.current.isolation = level

    def request(self, request: TmRequest) -> Steps:
        """A request of the transaction manager, as drivers send it instead of BEGIN, COMMIT, ROLLBACK and SAVE."""
        if request.isolation:
            self.set_isolation(Isolation(request.isolation))
        try:
            if request.kind == "begin":
                yield from self.begin(request.name)
            elif request.kind == "save":
                self.save(request.name)
            elif request.kind == "commit":
                yield from self.commit()
            else:
                yield from self.rollback(request.name)
            if request.begin_next:
                if request.next_isolation:
                    self.set_isolation(Isolation(request.next_isolation))
                yield from self.begin(request.next_name)
        except SqlError as failure:
            yield message_of(failure)
            yield Done(None, request.kind, self.current is not None, False, True)
            return None
        yield Done(None, request.kind, self.current is not None)
        return None

    # ---- statements -----------------------------------------------------------------------------------

    def enter(self) -> tuple[Transaction, bool]:
        """The transaction for a statement, and whether it is the statement's own (autocommit)."""
        if self.current is not None:
            return self.current, False
        return self._new("user_transaction"), True

    def implicit_begin(self) -> Iterator[EnvChange]:
        """IMPLICIT_TRANSACTIONS: statements that touch data open a transaction."""
        if self.current is None and self._session.options.implicit:
            yield from self.begin("implicit_transaction")

    def run(self, work: Callable[[Transaction], T], then: Callable[[T], Steps] | None = None) -> StepsTo[T]:
        """Run `work` as one statement: atomic, restarted after a wait for a lock, committed if it is alone.

        `then` runs with the result inside the same statement (triggers). The generator's value is what `work` returned.
        """
        yield from self.implicit_begin()
        transaction, own = self.enter()
        if transaction.doomed:
            raise error(3930)
        while True:
            transaction.begin_statement()
            try:
                result = work(transaction)
            except MustWait as wait:
                transaction.undo_statement()
                try:
                    yield lock_pause(wait.request, self._session.options.lock_timeout)
                except BaseException:
                    if own:
                        transaction.rollback()
                    raise
                continue
            except BaseException:
                if transaction.state == "active":
                    transaction.undo_statement()
                    if own:
                        transaction.rollback()
                raise
            if then is not None:
                yield from self._then(transaction, then(result), own=own)
                if transaction.state != "active":
                    return result
            transaction.end_statement()
            if own:
                transaction.commit()
            return result

    def _then(self, transaction: Transaction, steps: Steps, *, own: bool) -> Steps:
        """Run the work of a statement inside its transaction; @@TRANCOUNT is at least 1 meanwhile."""
        if own:
            self.current, self.count = transaction, 1
        try:
            yield from steps
        except BaseException:
            if transaction.state == "active":
                transaction.undo_statement()
                if own:
                    transaction.rollback()
            if own:
                self.current, self.count = None, 0
            raise
        if own:
            self.current, self.count = None, 0
        return None
