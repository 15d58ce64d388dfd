"""Expressions and what a SQL Server answers: one session for the tables of cases."""

from collections.abc import Callable, Iterator

import pytest

from mssql_cdc.sandbox.engine.storage.server import Server
from mssql_cdc.sandbox.exec.session import Session
from mssql_cdc.sandbox.registry import Catalog
from mssql_cdc_tests.sandbox.exec.conftest import Client

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
