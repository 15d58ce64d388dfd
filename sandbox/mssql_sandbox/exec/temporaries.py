"""Temporary tables of a session: its local ones (`#t`), and the global ones (`##t`) that it has created."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import error


class TemporaryTables:
    """Own tables by name; a procedure drops its tables when it ends, the session all when it ends."""

    __slots__ = ("_database", "_own", "_shared")

    def __init__(self, server: Server) -> None:
        self._database = server.databases["tempdb"]
        self._own: dict[object, Table] = {}
        self._shared: list[Table] = []

    def find(self, name: str) -> Table | None:
        """The session's own table of this name."""
        return self._own.get(self._database.collation.key(name))

    def add(self, item: Table, transaction: Transaction) -> None:
        """Keep an own table, unless the transaction is rolled back; 2714 if the name is taken."""
        key = self._database.collation.key(item.name)
        if key in self._own:
            raise error(2714, name=item.name)
        self._keep(key, item)
        transaction.on_undo(lambda: self._forget(key))

    def _keep(self, key: object, item: Table) -> None:
        self._own[key] = item
        self._database.temporary[item.object_id] = item

    def _forget(self, key: object) -> Table | None:
        item = self._own.pop(key, None)
        if item is not None:
            self._database.temporary.pop(item.object_id, None)
        return item

    def add_shared(self, item: Table) -> None:
        """Remember a `##` table that this session has created."""
        self._shared.append(item)

    def drop(self, name: str, transaction: Transaction) -> None:
        """Forget an own table, unless the transaction is rolled back."""
        key = self._database.collation.key(name)
        item = self._forget(key)
        if item is not None:
            transaction.on_undo(lambda: self._keep(key, item))

    def drop_all(self) -> None:
        """Remove own tables and drop shared ones, at the end of the session."""
        for key in list(self._own):
            self._forget(key)
        transaction = self._database.server.transactions.begin(spid=0)
        for item in self._shared:
            if self._database.find("dbo", item.name) is item:
                self._database.drop_object(transaction, item)
        transaction.commit()
        self._shared.clear()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """The run of a procedure: own tables that it creates are dropped afterwards."""
        before = set(self._own)
        try:
            yield
        finally:
            for key in self._own.keys() - before:
                self._forget(key)
