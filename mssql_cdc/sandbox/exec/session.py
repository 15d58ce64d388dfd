"""Sessions: one per connection. Requests in, events out; transactions, options and temporary objects in between."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine.clients import IN_PROCESS, ConnectionFacts
from mssql_cdc.sandbox.engine.events import BulkData, Done, EnvChange, Event, Message, RpcParameter, TmRequest
from mssql_cdc.sandbox.engine.product import refuse_use
from mssql_cdc.sandbox.engine.storage.database import Database
from mssql_cdc.sandbox.engine.storage.server import Server
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec import remote
from mssql_cdc.sandbox.exec.apicursors.cursor import ApiCursors
from mssql_cdc.sandbox.exec.dialect import TSQL
from mssql_cdc.sandbox.exec.failures import end_of_batch, message_of
from mssql_cdc.sandbox.exec.flow import Abort, Cancelled, Pause, Steps
from mssql_cdc.sandbox.exec.interpreter import run_batch
from mssql_cdc.sandbox.exec.options import SessionOptions
from mssql_cdc.sandbox.exec.parameterisation import Parameteriser
from mssql_cdc.sandbox.exec.prepared import PreparedStatements
from mssql_cdc.sandbox.exec.routine import Frame, Routine
from mssql_cdc.sandbox.exec.security import user_of
from mssql_cdc.sandbox.exec.statements.bulk import BulkTarget, bulk_load
from mssql_cdc.sandbox.exec.temporaries import TemporaryTables
from mssql_cdc.sandbox.exec.transactions import SessionTransactions
from mssql_cdc.sandbox.tsql.parser import LONG_TEXT, parse
from mssql_cdc.sandbox.tsql.statements import Statement, VariableDeclaration

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.statements.triggers import TriggerLevel

_ROUTINES = 512
_FIRST_SPID = 51


def _thrower(steps: Steps) -> Callable[[], Any]:
    """How a cancelled request goes on: with the signal thrown where it stands."""
    return lambda: steps.throw(Cancelled())


class Session:
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
        self.server = server
        self.language = TSQL
        self.login = login
        self.original_login = login
        self.application = application
        self.host = host
        self.read_only_intent = read_only_intent
        self.current_database: Database = server.database(database)
        self.login_database = self.current_database
        self.spid = next(n for n in range(_FIRST_SPID, 32767) if n not in server.sessions)
        server.sessions[self.spid] = self
        self.login_time = server.clock.local_datetime()
        self.random = random.Random()  # noqa: S311 - RAND(), not a secret
        self.prepared = PreparedStatements()
        self.api_cursors = ApiCursors()
        self._parameteriser = Parameteriser()
        self._cancelled = False
        self._waiting: asyncio.Future[Any] | None = None
        self.on_kill: Callable[[], None] | None = None
        self.open_lane: Callable[[], Any] | None = None
        self.connection: ConnectionFacts = IN_PROCESS
        self._start()

    def _start(self) -> None:
        self.options = SessionOptions()
        self.transactions = SessionTransactions(self)
        self.temporary = TemporaryTables(self.server)
        self.cursors: dict[str, Any] = {}
        self.routines: OrderedDict[Any, Routine] = OrderedDict()
        self.identity_insert: Table | None = None
        self.row_count = 0
        self.last_error = 0
        self.last_identity: Decimal | None = None
        self.scope_identity: Decimal | None = None
        self.fetch_status = 0
        self.cursor_rows = 0
        self.nest_level = 0
        self.procedure_id = 0
        self.try_depth = 0
        self.caught: SqlError | None = None
        self.context_info: bytes | None = None
        self.session_context: dict[str, Any] = {}
        self.trigger_stack: list[TriggerLevel] = []
        self.pending: list[Event] = []
        self.users: list[str] = []
        self.killed = False
        self.running_text = ""
        self.bulk: BulkTarget | None = None

    # ---- state that functions and views ask for -----------------------------------------------------------

    @property
    def database(self) -> str:
        """Name of the current database."""
        return self.current_database.name

    @property
    def transaction_descriptor(self) -> int:
        """The open transaction, 0 for none."""
        current = self.transactions.current
        return 0 if current is None else current.id

    @property
    def transaction_count(self) -> int:
        """@@TRANCOUNT."""
        return self.transactions.count

    @property
    def transaction_state(self) -> int:
        """XACT_STATE(): 1 open, -1 doomed, 0 none."""
        current = self.transactions.current
        return 0 if current is None else -1 if current.doomed else 1

    @property
    def trigger_level(self) -> int:
        """TRIGGER_NESTLEVEL()."""
        return len(self.trigger_stack)

    def trigger_columns(self) -> tuple[str, ...]:
        """Columns that the statement behind the running trigger has set."""
        return self.trigger_stack[-1].columns if self.trigger_stack else ()

    def default_schema(self, database: Database) -> str:
        """The schema for bare names."""
        login = self.server.logins.get(self.login)
        if login is not None and "sysadmin" in login.server_roles:
            return "dbo"
        for principal in database.principals.values():
            if principal.login is not None and principal.login.casefold() == self.login.casefold():
                return principal.default_schema or "dbo"
        return "dbo"

    def note_identity(self, value: int | Decimal) -> None:
        """Remember the identity value just given."""
        self.last_identity = self.scope_identity = Decimal(value)

    # ---- requests ----------------------------------------------------------------------------------------------

    def batch(self, sql: str) -> AsyncGenerator[Event, None]:
        """Run a batch of SQL text."""
        return self._drive(self._batch(sql))

    def rpc(self, name: str, parameters: list[RpcParameter]) -> AsyncGenerator[Event, None]:
        """Call a procedure: a special one (`sp_executesql`, `sp_prepare`, …), the catalogue's or a user's."""
        return self._drive(remote.call(self, name, parameters))

    def transaction_request(self, request: TmRequest) -> AsyncGenerator[Event, None]:
        """Begin, commit, roll back or save a transaction."""
        return self._drive(self.transactions.request(request))

    def bulk_load(self, data: BulkData) -> AsyncGenerator[Event, None]:
        """Store the rows that an INSERT BULK statement has announced."""
        return self._drive(self._bulk_load(data))

    def _bulk_load(self, data: BulkData) -> Steps:
        try:
            yield from bulk_load(self, data)
        except SqlError as failure:
            self.last_error = failure.number
            yield message_of(failure)
            yield Done(None, "insert bulk", self.transaction_descriptor != 0, False, True)

    def reset(self, *, keep_transaction: bool) -> None:
        """Back to the state after login; with `keep_transaction` the open transaction goes on."""
        kept, count = (self.transactions.current, self.transactions.count) if keep_transaction else (None, 0)
        if not keep_transaction:
            self._end_transaction()
        self.temporary.drop_all()
        self._start()
        self.prepared = PreparedStatements()
        self.api_cursors = ApiCursors()
        self.current_database = self.login_database
        self.transactions.current, self.transactions.count = kept, count

    def cancel(self) -> None:
        """End waits; the request under way stops at its next event."""
        self._cancelled = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.cancel()

    def kill(self) -> None:
        """Another session ends this one: its request stops, its transaction is rolled back, the connection is cut."""
        self.cancel()
        self._end_transaction()
        self.killed = True
        if self.on_kill is not None:
            self.on_kill()

    def statement_text(self, node: Statement) -> str:
        """The text of a statement of the running batch, for logs of DDL."""
        return self.running_text[node.start : node.end].strip() if node.end else self.running_text

    def close(self) -> None:
        """Roll back and release everything."""
        self.cancel()
        self._end_transaction()
        self.temporary.drop_all()
        self.server.sessions.pop(self.spid, None)

    def _end_transaction(self) -> None:
        current = self.transactions.current
        if current is not None and current.state == "active":
            current.rollback()
        self.transactions.current, self.transactions.count = None, 0

    # ---- running -------------------------------------------------------------------------------------------------

    async def _drive(self, steps: Generator[Event | Pause, Any, Any]) -> AsyncGenerator[Event, None]:
        """Hand events on and await pauses."""
        self._cancelled = False
        resume: Callable[[], Any] = steps.__next__
        try:
            while True:
                try:
                    item = resume()
                except StopIteration:
                    break
                if type(item) is Pause:
                    resume = await self._pause(item, steps)
                    continue
                for event in self.pending:
                    yield event
                self.pending.clear()
                yield item  # type: ignore[misc]
                resume = _thrower(steps) if self._cancelled else steps.__next__
            for event in self.pending:
                yield event
            self.pending.clear()
        except Cancelled:
            pass
        finally:
            steps.close()
            self.try_depth = 0

    async def _pause(self, pause: Pause, steps: Generator[Event | Pause, Any, Any]) -> Callable[[], Any]:
        """Await a pause; how the generator goes on."""
        self._waiting = asyncio.ensure_future(pause.wait())
        try:
            result = await self._waiting
        except asyncio.CancelledError:
            driver = asyncio.current_task()
            # An attention ends the wait; when the connection itself ends, its task has to end too.
            if not self._cancelled or (driver is not None and driver.cancelling()):
                raise
            return _thrower(steps)
        except Exception as failure:  # noqa: BLE001 - handed on to the statement that waits
            return lambda failure=failure: steps.throw(failure)
        finally:
            self._waiting = None
        return lambda: steps.send(result)

    def breathe(self) -> Steps:
        """Let others run once in a while, and notice an attention, in loops that give no events."""
        self._loops = getattr(self, "_loops", 0) + 1
        if self._loops % 256 == 0:
            yield Pause(lambda: asyncio.sleep(0))
            if self._cancelled:
                raise Cancelled
        return None

    def routine(self, text: str, parameters: tuple[VariableDeclaration, ...] = (), *, key: object = None) -> Routine:
        """The compiled batch of a text, kept per session while nothing about it changes."""
        full = (text, key, self.current_database.name, self.options.quoted_identifier)
        found = self._kept_routine(full)
        if found is not None:
            return found
        statements = parse(text, quoted_identifier=self.options.quoted_identifier)
        routine = Routine(self, statements, parameters)
        if len(text) <= LONG_TEXT:
            self._keep_routine(full, routine)
        return routine

    def _shared_routine(self, sql: str) -> tuple[Routine, tuple[Any, ...]]:
        """The routine of a batch; changes that differ in literals only share one, with the literals as values."""
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
            yield message_of(failure)
            yield Done(None, "error", self.transaction_descriptor != 0, False, True)
        except Abort:
            pass
        yield from end_of_batch(self)
        return None

    def done(self, frame: Frame, count: int | None, command: str, *, error: bool = False) -> Done:
        """The end of a statement; NOCOUNT hides the count."""
        shown = None if self.options.nocount else count
        return Done(shown, command, self.transactions.current is not None, frame.events_in_procedure, error)

    def use(self, name: str) -> Steps:
        """USE: 911 for an unknown database, 916 where the login has no user."""
        database = self.server.databases.get(name)
        if database is None:
            raise error(911, name=name)
        if database.options.state != "ONLINE":
            raise error(942, name=database.name)
        if database is not self.current_database:
            refuse_use(self.server.version)
        if user_of(self, database) is None:
            raise error(916, login=self.login, database=database.name)
        old = self.current_database.name
        self.current_database = database
        yield EnvChange("database", new=database.name, old=old)
        yield Message(5701, 2, 10, f"Changed database context to '{database.name}'.")
        return None
