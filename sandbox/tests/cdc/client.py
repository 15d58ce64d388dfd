"""What the rules of change data capture are tested with: T-SQL in, rows and messages out.

`World` is the part that a rule may use, whatever the server; `LocalWorld` is a sandbox inside the test process, without
a wire and with a clock that stands still until a test lets time pass. `remote.RemoteWorld` is any server behind ODBC.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, TypeVar

from mssql_sandbox.engine.clock import Clock
from mssql_sandbox.engine.events import Columns, Message, Rows
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.session import Session
from mssql_sandbox.registry import Catalog

T = TypeVar("T")
START = datetime(2026, 1, 5, 12, 0, tzinfo=timezone.utc)  # noqa: UP017
DATABASE = "testdb"


@dataclass
class Answer:
    """What one batch has sent: result sets as lists of tuples, their column names, and messages."""

    sets: list[list[tuple]] = field(default_factory=list)
    names: list[list[str]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    @property
    def errors(self) -> list[int]:
        """Numbers of the errors."""
        return [message.number for message in self.messages if message.severity > 10]


class World(ABC):
    """A server with one fresh database. Dates differ in form between servers: compare them in SQL."""

    database: str

    @abstractmethod
    def close(self) -> None:
        """Leave nothing behind."""

    @abstractmethod
    def send(self, sql: str, *, login: str = "sa", name: str = "") -> Answer:
        """Run a batch; errors come back as messages too. `name` tells several sessions of one login apart."""

    @abstractmethod
    def add_user(self, name: str, *roles: str) -> None:
        """A login that may connect (`login=name`), and its user of that name in the database, in these roles."""

    @abstractmethod
    def stop_capture(self) -> None:
        """Let nothing be captured but by `capture`."""

    @abstractmethod
    def capture(self) -> None:
        """Bring everything committed into the change tables."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Let time pass, so that commits get different times."""

    @abstractmethod
    def require_messages(self) -> None:
        """Skip the test where the client does not show messages which are no errors."""

    def execute(self, sql: str, *, login: str = "sa", name: str = "") -> Answer:
        """Run a batch and raise its first error."""
        answer = self.send(sql, login=login, name=name)
        for message in answer.messages:
            if message.severity > 10:
                raise SqlError(
                    message.number,
                    message.text,
                    severity=message.severity,
                    state=message.state,
                    procedure=message.procedure,
                )
        return answer

    def rows(self, sql: str, *, login: str = "sa", name: str = "") -> list[tuple]:
        """The rows of the last result set."""
        return self.execute(sql, login=login, name=name).sets[-1]

    def value(self, sql: str, *, login: str = "sa", name: str = "") -> Any:
        """The only value of the only row."""
        ((value,),) = self.rows(sql, login=login, name=name)
        return value

    def error(self, sql: str, *, login: str = "sa", name: str = "") -> Message:
        """The first error of a batch which must fail."""
        answer = self.send(sql, login=login, name=name)
        errors = [message for message in answer.messages if message.severity > 10]
        assert errors, f"no error from {sql!r}, but {answer}"
        return errors[0]

    def enable(self, *tables: str, **arguments: str) -> None:
        """Enable change data capture for the database, and for tables of schema dbo, with further arguments."""
        if not self.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()"):
            self.execute("EXEC sys.sp_cdc_enable_db")
        for table in tables:
            self.enable_table(table, **arguments)

    def enable_table(self, table: str, **arguments: str) -> Answer:
        """Enable a table; further arguments as T-SQL literals."""
        more = "".join(f", @{name} = {value}" for name, value in arguments.items() if name != "role_name")
        role = arguments.get("role_name", "NULL")
        return self.execute(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{table}', "
            f"@role_name = {role}{more}"
        )

    def changes(self, instance: str, columns: str = "*") -> list[tuple]:
        """The rows of a change table in the documented order."""
        return self.rows(
            f"SELECT {columns} FROM cdc.[{instance}_CT] ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation"
        )


class LocalWorld(World):
    """A sandbox whose time stands still until a test lets it pass, and an event loop for its jobs."""

    def __init__(self, server: Server | None = None) -> None:
        self.runner = asyncio.Runner()
        self.clock = server.clock if server is not None else Clock()
        self.clock.freeze()
        self.clock.set(START)
        self.server = server or Server(clock=self.clock)
        self.server.add_login("sa", "secret")
        self.server.catalog = Catalog(self.server)
        self.server.create_database(DATABASE)
        self.database = DATABASE
        self._sessions: dict[str, Session] = {}

    def close(self) -> None:
        """End all sessions and jobs."""
        for session in self._sessions.values():
            session.close()
        self.server.catalog.close()
        self.runner.close()

    def session(self, login: str = "sa", *, name: str = "") -> Session:
        """The session of a login; a name which begins with `readonly` connects with the read-only intent."""
        key = f"{login}/{name}"
        if key not in self._sessions or self._sessions[key].killed:
            self._sessions[key] = Session(
                self.server,
                login=login,
                database=DATABASE,
                application="tests",
                read_only_intent=name.startswith("readonly"),
            )
        return self._sessions[key]

    def send(self, sql: str, *, login: str = "sa", name: str = "") -> Answer:
        """Run a batch; errors come back as messages too."""
        return self.run(self._collect(self.session(login, name=name), sql))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the server's loop."""
        return self.runner.run(work)

    async def _collect(self, session: Session, sql: str) -> Answer:
        answer = Answer()
        async for event in session.batch(sql):
            if isinstance(event, Columns):
                answer.sets.append([])
                answer.names.append([column.name for column in event.columns])
            elif isinstance(event, Rows):
                answer.sets[-1].extend(event.rows)
            elif isinstance(event, Message):
                answer.messages.append(event)
        return answer

    def add_user(self, name: str, *roles: str) -> None:
        """A login and its user, in these roles."""
        self.execute(f"CREATE LOGIN [{name}] WITH PASSWORD = 'secret'")
        self.execute(f"CREATE USER [{name}] FOR LOGIN [{name}]")
        for role in roles:
            self.execute(f"ALTER ROLE [{role}] ADD MEMBER [{name}]")

    def stop_capture(self) -> None:
        """Stop the Agent."""
        self.execute("EXEC sandbox.agent_stop")

    def capture(self) -> None:
        """Scan until nothing is left."""
        self.execute("EXEC sandbox.capture_run")

    def require_messages(self) -> None:
        """Sessions hide nothing."""

    def wait(self, seconds: float) -> None:
        """Move the clock; nothing else runs."""
        self.clock.advance(seconds)

    def pass_time(self, seconds: float) -> None:
        """Let time pass and the jobs that it wakes run."""
        self.clock.advance(seconds)
        self.run(_breathe())


async def _breathe() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
