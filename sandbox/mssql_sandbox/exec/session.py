"""Sessions: one per connection. Requests in, events out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from mssql_sandbox.engine.events import BulkData, Done, Event, RpcParameter, TmRequest
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.apicursors.cursor import ApiCursors
from mssql_sandbox.exec.calls import remote
from mssql_sandbox.exec.consequences import end_of_batch
from mssql_sandbox.exec.dialect import TSQL
from mssql_sandbox.exec.driving import DrivenSession
from mssql_sandbox.exec.failures import messages_of
from mssql_sandbox.exec.flow import Abort, Steps
from mssql_sandbox.exec.handles import PreparedStatements
from mssql_sandbox.exec.interpreter import run_batch
from mssql_sandbox.exec.parameterisation import Parameteriser
from mssql_sandbox.exec.routine import Frame, Routine
from mssql_sandbox.exec.statements.bulk import bulk_load
from mssql_sandbox.exec.text_rules import check_flow
from mssql_sandbox.tsql.parser import LONGEST_TEXT, parse
from mssql_sandbox.tsql.statements import VariableDeclaration

_ROUTINES = 512


class Session(DrivenSession):
    """One logged-in client. Runs one request at a time."""

    def __init__(
        self,
        server: Server,
        *,
        login: str,
        database: str,
        application: str = "",
        host: str = "",
        read_only_intent: bool = False,
    ) -> None:
        self.api_cursors = ApiCursors()
        self._parameteriser = Parameteriser()
        super().__init__(
            server, TSQL, login=login, database=database, application=application, host=host,
            read_only_intent=read_only_intent,
        )  # fmt: skip

    def batch(self, sql: str) -> AsyncGenerator[Event, None]:
        """Run a batch of SQL text."""
        return self._drive(self._batch(sql))

    def _batch(self, sql: str) -> Steps:
        try:
            self.running_text = sql
            routine, values = self._shared_routine(sql)
            routine.active = True
            try:
                frame = Frame(self, routine)
                frame.values[: len(values)] = values
                yield from run_batch(frame)
            finally:
                routine.active = False
        except SqlError as failure:
            self.last_error = failure.number
            yield from messages_of(failure)
            yield Done(None, "error", self.transaction_descriptor != 0, False, True)
        except Abort:
            pass
        yield from end_of_batch(self)
        return None

    def rpc(self, name: str, parameters: list[RpcParameter]) -> AsyncGenerator[Event, None]:
        """Call a procedure: a special one (`sp_executesql`, `sp_prepare`, …), a system or a user's procedure."""
        return self._drive(remote.call(self, name, parameters))

    def transaction_request(self, request: TmRequest) -> AsyncGenerator[Event, None]:
        """Begin, commit, roll back or save a transaction."""
        return self._drive(self.transactions.request(request))

    def bulk_load(self, data: BulkData) -> AsyncGenerator[Event, None]:
        """Store the rows that an INSERT BULK statement announced."""
        return self._drive(self._bulk_load(data))

    def _bulk_load(self, data: BulkData) -> Steps:
        try:
            yield from bulk_load(self, data)
        except SqlError as failure:
            self.last_error = failure.number
            yield from messages_of(failure)
            yield Done(None, "insert bulk", self.transaction_descriptor != 0, False, True)

    def reset(self, *, keep_transaction: bool) -> None:
        """Reset to the state after login; `keep_transaction` keeps the open transaction."""
        kept, count = (self.transactions.current, self.transactions.count) if keep_transaction else (None, 0)
        if not keep_transaction:
            self._end_transaction()
        self.temporary.drop_all()
        self._start()
        self.prepared = PreparedStatements()
        self.api_cursors = ApiCursors()
        self.current_database = self.login_database
        self.transactions.current, self.transactions.count = kept, count

    def kill(self) -> None:
        """Called by another session: the request stops, the transaction is rolled back, the connection is closed.

        A waiting request fails with error 596, which ends its connection.
        """
        waits = self._waiting is not None
        self.cancel()
        self._end_transaction()
        self.killed = True
        if self.on_kill is not None and not waits:
            self.on_kill()

    def close(self) -> None:
        """Roll back and release everything."""
        self.cancel()
        self._end_transaction()
        self.temporary.drop_all()
        self.server.sessions.pop(self.spid, None)

    # ---- routines ---------------------------------------------------------------------------------------------

    def routine(self, text: str, parameters: tuple[VariableDeclaration, ...] = (), *, key: object = None) -> Routine:
        """The compiled batch of a text, kept per session until something it depends on changes."""
        full = (text, key, self.current_database.name, self.options.quoted_identifier)
        found = self._kept_routine(full)
        if found is not None:
            return found
        statements = parse(text, quoted_identifier=self.options.quoted_identifier)
        check_flow(statements, returns_values=False)
        routine = Routine(self, statements, parameters)
        if len(text) <= LONGEST_TEXT:
            self._keep_routine(full, routine)
        return routine

    def _shared_routine(self, sql: str) -> tuple[Routine, tuple[Any, ...]]:
        """The routine of a batch; changes that differ only in literals share one, with the literals as values."""
        quoted_identifier = self.options.quoted_identifier
        found = self._parameteriser.read(sql, quoted_identifier=quoted_identifier)
        if found is None:
            return self.routine(sql), ()
        full = (found.key, "literals", self.current_database.name, quoted_identifier)
        routine = self._kept_routine(full)
        if routine is None:
            routine = Routine(self, *found.statement(quoted_identifier=quoted_identifier))
            self._keep_routine(full, routine)
        return routine, found.values

    def _kept_routine(self, key: Any) -> Routine | None:
        found = self.routines.get(key)
        if found is None or found.active or found.database is not self.current_database:
            return None
        self.routines.move_to_end(key)
        return found

    def _keep_routine(self, key: Any, routine: Routine) -> None:
        self.routines[key] = routine
        if len(self.routines) > _ROUTINES:
            self.routines.popitem(last=False)
