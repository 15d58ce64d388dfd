"""Temporary tables of a session: its own (`#t`), and the shared ones (`##t`) that it has made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mssql_cdc.sandbox.engine.storage.server import Server
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.engine.transaction import Transaction
from mssql_cdc.sandbox.errors import error


class TemporaryTables:
    """Own tables by name; procedures drop theirs when they end, the session all when it ends."""

    __slots__ = ("_database", "_own", "_shared")

    def __init__(self, server: Server) -> None:
        self._database = server.databases["tempdb"]
        self._own: dict[object, Table] = {}
        self._shared: list[Table] = []

    def find(self, name: str) -> Table | None:
        """The session's own table of this name."""
        return self._own.get(self._database.collation.key(name))

    def add(self, table: Table, transaction: Transaction) -> None:
        """Keep an own table, unless the transaction is rolled back; 2714 if the name is taken."""
        key = self._database.collation.key(table.name)
        if key in self._own:
            raise error(2714, name=table.name)
        self._keep(key, table)
        transaction.on_undo(lambda: self._forget(key))

    def _keep(self, key: object, table: Table) -> None:
        self._own[key] = table
        self._database.temporary[table.object_id] = table

    def _forget(self, key: object) -> Table | None:
        table = self._own.pop(key, None)
        if table is not None:
            self._database.temporary.pop(table.object_id, None)
        return table

    def add_shared(self, table: Table) -> None:
        """Remember a `##` table that this session has made."""
        self._shared.append(table)

    def drop(self, name: str, transaction: Transaction) -> None:
        """Forget an own table, unless the transaction is rolled back."""
        key = self._database.collation.key(name)
        table = self._forget(key)
        if table is not None:
            transaction.on_undo(lambda: self._keep(key, table))

    def drop_all(self) -> None:
        """Forget own tables and drop shared ones, as the end of the session does."""
        for key in list(self._own):
            self._forget(key)
        transaction = self._database.server.transactions.begin(spid=0)
        for table in self._shared:
            if self._database.table("dbo", table.name) is table:
                self._database.drop_object(transaction, table)
        transaction.commit()
        self._shared.clear()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """The run of a procedure: own tables that it makes are gone afterwards."""
        before = set(self._own)
        try:
            yield
        finally:
            for key in self._own.keys() - before:
                self._forget(key)
