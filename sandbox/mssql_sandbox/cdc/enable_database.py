"""Enabling and disabling change data capture for a database.

Creates and drops the user and schema `cdc`, the metadata tables and the placeholder functions. Jobs are created with
the first *table* and dropped with the last, by `agent`; the procedures' parameter checks are in `procedures`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mssql_sandbox.catalog.columns import layout as column_layout
from mssql_sandbox.cdc.instances import DatabaseCapture
from mssql_sandbox.cdc.layout import DATABASE_PROCEDURES, METADATA_TABLES, PLACEHOLDERS, SCHEMA, TableLayout
from mssql_sandbox.engine.storage import index_changes
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.objects import Principal, SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Tool:
    """A database and the transaction that creates its objects."""

    database: Database
    transaction: Transaction

    def create(self, layout: TableLayout) -> Table:
        """A metadata table with its unique clustered index."""
        columns = [Column(c.name, c.type, nullable=c.nullable) for c in column_layout(layout.columns).columns]
        table = self.database.create_table(self.transaction, layout.schema, layout.name, columns, is_ms_shipped=True)
        key = tuple((name, False) for name in layout.key)
        index = Index(f"{layout.name}_clustered_idx", 0, key, unique=True, clustered=True)
        if layout.primary:
            index.constraint, index.object_id = "PRIMARY KEY", self.database.next_object_id()
        index_changes.add_index(table, self.transaction, index)
        for name, column, unique in layout.others:
            index_changes.add_index(table, self.transaction, Index(name, 0, ((column, False),), unique=unique))
        return table

    def procedure(self, name: str) -> SchemaObject:
        """A procedure of the capture and cleanup jobs: visible in the catalogue, and called by the jobs only."""
        return self._object(name, "P", shipped=True, properties={})

    def function(self, name: str, *, shipped: bool, properties: dict[str, object] | None = None) -> SchemaObject:
        """An inline table-valued function in the schema `cdc`; its name determines its behaviour."""
        return self._object(name, "IF", shipped=shipped, properties=properties or {})

    def _object(self, name: str, code: str, *, shipped: bool, properties: dict[str, object]) -> SchemaObject:
        database = self.database
        now = database.server.clock.local_datetime()
        item = SchemaObject(
            name,
            database.next_object_id(),
            database.schema(SCHEMA),
            code,
            now,
            now,
            is_ms_shipped=shipped,
            properties=properties,
        )
        database.add_object(self.transaction, item)
        return item


def enable_database(database: Database, transaction: Transaction) -> DatabaseCapture:
    """Create all objects and start to keep the log; the caller has done the checks."""
    tool = Tool(database, transaction)
    database.create_schema(transaction, SCHEMA, owner=SCHEMA)
    now = database.server.clock.local_datetime()
    user = Principal(SCHEMA, database.next_principal_id(), "S", SCHEMA, member_of={"db_owner"}, create_date=now)
    database.principals[SCHEMA] = user
    transaction.on_undo(lambda: database.principals.pop(SCHEMA))
    for layout in METADATA_TABLES:
        tool.create(layout)
    for name in PLACEHOLDERS:
        tool.function(name, shipped=True)
    for name in DATABASE_PROCEDURES:
        tool.procedure(name)
    _set_enabled(database, transaction, to=True)
    return DatabaseCapture(database, database.log.end_position, (database.next_object_id(), now))


def disable_database(database: Database, transaction: Transaction) -> None:
    """Drop the schema `cdc` with its objects, `dbo.systranschemas` and the user; discard the log."""
    for table in database.tables():
        _untrack(table, transaction)
    schema = database.schema(SCHEMA)
    for item in schema.objects.values():
        database.drop_object(transaction, item)
    old = database.find("dbo", "systranschemas")
    if old is not None:
        database.drop_object(transaction, old)
    database.drop_schema(transaction, SCHEMA)
    user = database.principals.pop(SCHEMA)
    if user is not None:
        transaction.on_undo(lambda: database.principals.__setitem__(SCHEMA, user))
    _set_enabled(database, transaction, to=False)


def _untrack(table: Table, transaction: Transaction) -> None:
    if not table.tracked:
        return
    marked = [column for column in table.columns if column.replicated]

    def undo() -> None:
        table.tracked = True
        for column in marked:
            column.replicated = True

    transaction.on_undo(undo)
    table.tracked = False
    for column in marked:
        column.replicated = False


def _set_enabled(database: Database, transaction: Transaction, *, to: bool) -> None:
    before = database.options.cdc_enabled, database.log.capturing

    def undo() -> None:
        database.options.cdc_enabled, database.log.capturing = before

    transaction.on_undo(undo)
    database.options.cdc_enabled = to
    if to:
        database.log.capturing = True
    else:
        database.log.stop_capturing()
