"""A server with one database and a way to run SQL in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from mssql_sandbox.engine.events import (
    Columns,
    Done,
    EnvChange,
    Event,
    Message,
    OutputParameter,
    Rows,
    RpcParameter,
)
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.exec.session import Session


@dataclass
class Answer:
    """What a request gave, by kind."""

    events: list[Event] = field(default_factory=list)

    @property
    def sets(self) -> list[list[tuple]]:
        """Rows of each result set."""
        found: list[list[tuple]] = []
        for event in self.events:
            if isinstance(event, Columns):
                found.append([])
            elif isinstance(event, Rows):
                found[-1].extend(event.rows)
        return found

    @property
    def rows(self) -> list[tuple]:
        """Rows of the only result set."""
        (rows,) = self.sets
        return rows

    @property
    def columns(self) -> Columns:
        """Description of the only result set."""
        (columns,) = [event for event in self.events if isinstance(event, Columns)]
        return columns

    @property
    def errors(self) -> list[int]:
        """Numbers of the errors."""
        return [event.number for event in self.events if isinstance(event, Message) and event.severity > 10]

    @property
    def counts(self) -> list[int | None]:
        """Row counts as reported."""
        return [event.count for event in self.events if isinstance(event, Done)]

    @property
    def changes(self) -> list[str]:
        """Environment changes."""
        return [event.kind for event in self.events if isinstance(event, EnvChange)]

    @property
    def outputs(self) -> list[object]:
        """Values of output parameters."""
        return [event.value for event in self.events if isinstance(event, OutputParameter)]


class Client:
    """Runs requests of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def batch(self, sql: str) -> Answer:
        """Run a batch inside a running event loop."""
        return Answer([event async for event in self.session.batch(sql)])

    def __call__(self, sql: str) -> Answer:
        """Run a batch."""
        return asyncio.run(self.batch(sql))

    def rpc(self, name: str, *parameters: RpcParameter) -> Answer:
        """Run a remote procedure call."""

        async def run() -> Answer:
            return Answer([event async for event in self.session.rpc(name, list(parameters))])

        return asyncio.run(run())


@pytest.fixture
def server() -> Server:
    server = Server()
    server.add_login("sa", "secret")
    server.create_database("db")
    return server


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[[], Client]]:
    made: list[Client] = []

    def new() -> Client:
        made.append(Client(Session(server, login="sa", database="db")))
        return made[-1]

    yield new
    for client in made:
        client.session.close()


@pytest.fixture
def sql(connect: Callable[[], Client]) -> Client:
    return connect()


@pytest.fixture
def table(sql: Client) -> Client:
    """A session whose database has three rows in a table t."""
    sql("CREATE TABLE t (id int NOT NULL PRIMARY KEY, name nvarchar(20) DEFAULT N'new', n int)")
    sql("INSERT t VALUES (1, N'one', 10), (2, N'two', 20), (3, N'three', NULL)")
    return sql
