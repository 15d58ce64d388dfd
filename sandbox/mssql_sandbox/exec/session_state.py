"""The state of a session, as statements, functions and views see it."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Protocol

from mssql_sandbox.engine.clients import IN_PROCESS, ConnectionFacts
from mssql_sandbox.engine.events import Done, Event, RpcParameter
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.flow import Answer, Steps, StepsTo
from mssql_sandbox.exec.handles import PreparedStatements
from mssql_sandbox.exec.language import Language
from mssql_sandbox.exec.options import SessionOptions
from mssql_sandbox.exec.temporaries import TemporaryTables
from mssql_sandbox.exec.transactions import SessionTransactions
from mssql_sandbox.tsql.statements import Statement, VariableDeclaration

_FIRST_SPID = 51


class TriggerLevel:
    """The state of a running trigger."""

    __slots__ = ("columns", "deleted", "inserted", "trigger")

    def __init__(self, trigger: Any, inserted: list[tuple], deleted: list[tuple], columns: tuple[str, ...]) -> None:
        self.trigger = trigger
        self.inserted = inserted
        self.deleted = deleted
        self.columns = columns


class InProcedure(Protocol):
    """The part of a routine's run that is reported at the end of its statements."""

    events_in_procedure: bool


class SessionState:
    """One logged-in client: state that outlives its requests, and state of the current request.

    Operations that statements need from a session are only declared here; the session classes above implement them.
    """

    api_cursors: object
    """The server cursors that the client has opened (`apicursors.cursor`)."""

    def __init__(
        self,
        server: Server,
        language: Language,
        *,
        login: str,
        database: str,
        application: str = "",
        host: str = "",
        read_only_intent: bool = False,
    ) -> None:
        self.server = server
        self.language = language
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
        self.routines: OrderedDict[Any, Any] = OrderedDict()
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
        self.bulk: object = None
        """The announced bulk load of INSERT BULK (`statements.bulk`)."""

    def _end_transaction(self) -> None:
        current = self.transactions.current
        if current is not None and current.state == "active":
            current.rollback()
        self.transactions.current, self.transactions.count = None, 0

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
        """Columns that the triggering statement has set."""
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
        """Store the last identity value."""
        self.last_identity = self.scope_identity = Decimal(value)

    def statement_text(self, node: Statement) -> str:
        """The text of a statement of the running batch, for logs of DDL."""
        return self.running_text[node.start : node.end].strip() if node.end else self.running_text

    def done(self, frame: InProcedure, count: int | None, command: str, *, error: bool = False) -> Done:
        """The end of a statement; NOCOUNT hides the count."""
        shown = None if self.options.nocount else count
        return Done(shown, command, self.transactions.current is not None, frame.events_in_procedure, error)

    def ended(self, frame: InProcedure, command: str = "select") -> Iterator[Done]:
        """The end of a statement without rows and count; under NOCOUNT modules do not report it.

        Every statement except the declaration of variables ends this way, as does each test of IF and WHILE
        [doc: MS-TDS 2.2.7.6, SET NOCOUNT; wire: go-mssqldb's own tests count them].
        """
        if not (frame.events_in_procedure and self.options.nocount):
            yield self.done(frame, None, command)

    def routine(self, text: str, parameters: tuple[VariableDeclaration, ...] = (), *, key: object = None) -> Any:
        """The compiled batch of a text."""
        raise NotImplementedError

    def breathe(self) -> Steps:
        """Let other tasks run once in a while, and notice an attention, in loops without events."""
        raise NotImplementedError


CallProcedure = Callable[[SessionState, Sequence[RpcParameter]], StepsTo[Answer]]
