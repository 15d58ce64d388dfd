"""A small server with one table, and helpers that play sessions."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from mssql_sandbox.engine.storage import index_changes
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.storage.views import open_view
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.transaction_scopes import Isolation
from mssql_sandbox.engine.types import INT, varchar

ResultT = TypeVar("ResultT")


def committed(database: Database, action: Callable[[Transaction], ResultT]) -> ResultT:
    """Run `action` in a transaction of its own."""
    transaction = database.server.transactions.begin()
    transaction.begin_statement()
    result = action(transaction)
    transaction.end_statement()
    transaction.commit()
    return result


def make_table(database: Database, name: str = "t", *, primary_key: bool = True) -> Table:
    """A table (id int primary key, code varchar(10) unique, note varchar(10))."""

    def create(transaction: Transaction) -> Table:
        code = varchar(10, collation=database.collation)
        columns = [Column("id", INT, nullable=False), Column("code", code), Column("note", code)]
        table = database.create_table(transaction, "dbo", name, columns)
        if primary_key:
            key = Index(f"PK_{name}", 0, (("id", False),), unique=True, clustered=True, constraint="PRIMARY KEY")
            index_changes.add_index(table, transaction, key)
        index_changes.add_index(table, transaction, Index(f"UQ_{name}", 0, (("code", False),), unique=True))
        return table

    made = committed(database, create)
    assert isinstance(made, Table)
    return made


def rows_of(table: Table, transaction: Transaction, hints: frozenset[str] = frozenset()) -> list[tuple]:
    """All rows that a statement of the transaction sees."""
    transaction.begin_statement()
    rows = [row for part in table.scan(open_view(transaction, table.database, hints=hints)) for row in part]
    transaction.end_statement()
    return rows


def now(table: Table) -> list[tuple]:
    """All committed rows."""
    reader = table.database.server.transactions.begin(isolation=Isolation.READ_COMMITTED)
    rows = rows_of(table, reader)
    reader.commit()
    return rows


@pytest.fixture
def database() -> Database:
    return Server().create_database("d")


@pytest.fixture
def table(database: Database) -> Table:
    return make_table(database)
