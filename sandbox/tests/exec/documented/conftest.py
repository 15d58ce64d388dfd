"""Expressions and what a SQL Server answers: one session for the tables of cases."""

from collections.abc import Callable, Iterator

import pytest

from mssql_sandbox.engine.events import Message, Rows
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.exec.session import Session
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

Ask = Callable[[str], str | int | None]


@pytest.fixture(scope="module")
def run() -> Iterator[Client]:
    """A session of a server with its catalogue."""
    server = Server()
    server.add_login("sa", "secret")
    server.create_database("db")
    server.catalog = catalog = Catalog(server)
    client = Client(Session(server, login="sa", database="db"))
    yield client
    client.session.close()
    catalog.close()


@pytest.fixture
def ask(run: Client) -> Ask:
    """The text of an expression's value, or the number of its error."""

    def answer(expression: str) -> str | int | None:
        found = run(f"SELECT CAST(({expression}) AS nvarchar(400))")
        return found.errors[0] if found.errors else found.rows[0][0]

    return answer


SCHEMA = (
    """CREATE TABLE p (id int NOT NULL CONSTRAINT pk_p PRIMARY KEY, n varchar(3) NULL CONSTRAINT uq_p UNIQUE,
    c int CONSTRAINT ck_p CHECK (c > 0), d decimal(5, 2), b tinyint);
    CREATE UNIQUE INDEX ux ON p (d);
    CREATE TABLE f (id int IDENTITY PRIMARY KEY, pid int NOT NULL CONSTRAINT fk_f REFERENCES p (id), x int NOT NULL);
    INSERT p VALUES (1, 'a', 1, 1, 1); INSERT f (pid, x) VALUES (1, 1)""",
    "CREATE PROC begins AS BEGIN TRAN",
    "CREATE PROC ends AS ROLLBACK",
    "CREATE PROC fails AS\nINSERT p (id) VALUES (1)\nSELECT @@ERROR",
    "CREATE PROC adds @a int, @b int = 2 AS SELECT @a + @b",
)
Answers = Callable[[str], list[str]]


@pytest.fixture
def answers(sql: Client) -> Answers:
    """What the client of a database with some tables and procedures sees of a batch, in order."""
    for text in SCHEMA:
        assert not sql(text).errors

    def run(batch: str) -> list[str]:
        found: list[str] = []
        for event in sql(batch).events:
            if isinstance(event, Rows):
                found += [" ".join(map(str, row)) for row in event.rows]
            elif isinstance(event, Message):
                place = f"{event.number}/{event.severity}/{event.state}/L{event.line}"
                found.append(f"{place}{'/' * bool(event.procedure)}{event.procedure} {event.text}")
        return found

    return run
