"""A database: schemas with their objects, principals, options, log and counters.

What does not belong here: rows (table.py) and what a statement may do (the executor).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mssql_sandbox.engine.collation import Collation
from mssql_sandbox.engine.log import Log
from mssql_sandbox.engine.storage import rule_changes, schema_change
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.objects import NameMap, Principal, Schema, SchemaObject
from mssql_sandbox.engine.storage.recovery import Recovery
from mssql_sandbox.engine.storage.table import Kind, Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import error

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.server import Server

SYSTEM_DATABASES = ("master", "tempdb", "model", "msdb")
_FIXED_ROLES = ("db_owner", "db_accessadmin", "db_securityadmin", "db_ddladmin", "db_backupoperator",
                "db_datareader", "db_datawriter", "db_denydatareader", "db_denydatawriter")  # fmt: skip


@dataclass(slots=True)
class DatabaseOptions:
    """Options of a database that affect behaviour."""

    read_committed_snapshot: bool = False
    allow_snapshot_isolation: bool = False
    compatibility_level: int = 160
    read_only: bool = False
    recovery_model: str = "FULL"
    user_access: str = "MULTI_USER"
    state: str = "ONLINE"
    cdc_enabled: bool = False
    ansi_null_default: bool = False
    recursive_triggers: bool = False


class Database:
    """A database of a server."""

    def __init__(self, server: Server, name: str, database_id: int, *, collation: Collation) -> None:
        self.server = server
        self.name = name
        self.id = database_id
        self.collation = collation
        self.create_date = server.clock.local_datetime()
        self.owner = "sa"
        self.options = DatabaseOptions(allow_snapshot_isolation=name in {"master", "msdb"})
        self.log = Log()
        self.recovery = Recovery()
        self.schemas: NameMap[Schema] = NameMap(collation)
        self.principals: NameMap[Principal] = NameMap(collation)
        self.properties: dict[str, Any] = {}
        self.temporary: dict[int, Table | SchemaObject] = {}
        """tempdb's tables of single sessions, by id: the catalogue lists them, no schema contains them."""
        self._next_object_id = 245_575_913
        self._next_schema_id = 5
        self._next_principal_id = 5
        self._rowversion = 2000
        self._objects: dict[int, SchemaObject] = {}
        for number, schema in ((1, "dbo"), (2, "guest"), (3, "INFORMATION_SCHEMA"), (4, "sys")):
            self.schemas[schema] = Schema(schema, number, NameMap(collation), owner=schema)
        self._add_fixed_principals()

    def _add_fixed_principals(self) -> None:
        made = self.create_date
        self.principals["public"] = Principal("public", 0, "R", None, create_date=made)
        self.principals["dbo"] = Principal(
            "dbo", 1, "S", "dbo", login=self.owner, member_of={"db_owner"}, create_date=made
        )
        self.principals["guest"] = Principal("guest", 2, "S", "guest", create_date=made)
        for number, name in enumerate(("INFORMATION_SCHEMA", "sys"), 3):
            self.principals[name] = Principal(name, number, "S", None, create_date=made)
        for offset, role in enumerate(_FIXED_ROLES):
            self.principals[role] = Principal(role, 16384 + offset, "R", None, fixed_role=True, create_date=made)

    @property
    def is_system(self) -> bool:
        """Whether it is one of master, tempdb, model, msdb."""
        return self.name.lower() in SYSTEM_DATABASES

    def recollate(self, collation: Collation) -> None:
        """ALTER DATABASE … COLLATE: names compare by the new collation; existing columns keep theirs."""
        self.collation = collation
        self.schemas.recollate(collation)
        self.principals.recollate(collation)
        for schema in self.schemas.values():
            schema.objects.recollate(collation)

    # -- counters -----------------------------------------------------------------------------------------------

    def next_object_id(self) -> int:
        """A new object id, with the increments of SQL Server."""
        self._next_object_id += 16_000_057
        if self._next_object_id >= 2**31:
            self._next_object_id -= 2_000_000_000
        while self._next_object_id in self._objects:
            self._next_object_id += 1
        return self._next_object_id

    def next_rowversion(self) -> bytes:
        """The next value of the database's rowversion counter."""
        self._rowversion += 1
        return self._rowversion.to_bytes(8, "big")

    @property
    def last_rowversion(self) -> bytes:
        """@@DBTS."""
        return self._rowversion.to_bytes(8, "big")

    def next_principal_id(self) -> int:
        """A new principal id."""
        self._next_principal_id += 1
        return self._next_principal_id - 1

    # -- schemas and objects --------------------------------------------------------------------------------------

    def create_schema(self, transaction: Transaction, name: str, *, owner: str = "dbo") -> Schema:
        """A new schema; error 2714 if the name is taken."""
        if name in self.schemas:
            raise error(2714, name=name)
        schema = Schema(name, self._next_schema_id, NameMap(self.collation), owner)
        self._next_schema_id += 1
        self.schemas[name] = schema
        transaction.log_part(self).log.append()
        transaction.on_undo(lambda: self.schemas.pop(name))
        return schema

    def drop_schema(self, transaction: Transaction, name: str) -> None:
        """Remove an empty schema; errors 15151 (unknown), 3729 (not empty)."""
        schema = self.schemas.get(name)
        if schema is None:
            raise error(15151, action="drop", kind="schema", name=name)
        if len(schema.objects):
            raise error(3729, kind="schema", name=name, object=schema.objects.values()[0].name)
        transaction.log_part(self).log.append()
        self.schemas.pop(name)
        transaction.on_undo(lambda: self.schemas.__setitem__(name, schema))

    def schema(self, name: str) -> Schema:
        """The schema; error 2760 if there is none."""
        schema = self.schemas.get(name)
        if schema is None:
            raise error(2760, name=name)
        return schema

    def find(self, schema: str, name: str) -> Any | None:
        """The object of this name (a `Table` or another `SchemaObject`), or None."""
        found = self.schemas.get(schema)
        return None if found is None else found.objects.get(name)

    def table(self, schema: str, name: str) -> Table | None:
        """The table of this name, or None."""
        found = self.find(schema, name)
        return found if isinstance(found, Table) else None

    def object_by_id(self, object_id: int) -> Any | None:
        """The object with this id (tables, views, …, not constraints), or None."""
        return self._objects.get(object_id) or self.temporary.get(object_id)

    def objects(self) -> Iterator[Any]:
        """All schema objects."""
        for schema in self.schemas.values():
            yield from schema.objects.values()
        yield from tuple(self.temporary.values())

    def tables(self) -> Iterator[Table]:
        """All tables, system ones included."""
        return (found for found in self.objects() if isinstance(found, Table))

    def create_table(
        self,
        transaction: Transaction,
        schema: str,
        name: str,
        columns: Sequence[Column],
        *,
        kind: Kind = "user",
        is_ms_shipped: bool = False,
    ) -> Table:
        """A new empty table; keys follow with `index_changes.add_index` and so on. Errors 2714, 2705, 2738, 2744."""
        table = self.make_table(schema, name, columns, kind=kind, is_ms_shipped=is_ms_shipped)
        self.add_object(transaction, table)
        return table

    def make_table(
        self, schema: str, name: str, columns: Sequence[Column], *, kind: Kind = "user", is_ms_shipped: bool = False
    ) -> Table:
        """A table outside any schema: temporary tables and table variables, kept by their session."""
        seen: set[Any] = set()
        for column in columns:
            key = self.collation.key(column.name)
            if key in seen:
                raise error(2705, column=column.name, table=name)
            seen.add(key)
        rowversions = [column for column in columns if column.is_rowversion]
        if len(rowversions) > 1:
            raise error(2738, table=name, column=rowversions[1].name)
        if sum(column.identity is not None for column in columns) > 1:
            raise error(2744, table=name)
        return Table(
            name, database=self, schema=self.schema(schema), object_id=self.next_object_id(), columns=columns,
            kind=kind, create_date=self.server.clock.local_datetime(), is_ms_shipped=is_ms_shipped,
        )  # fmt: skip

    def add_object(self, transaction: Transaction, item: SchemaObject) -> None:
        """Add a table, view, procedure… to its schema, undoably; error 2714 if the name is taken."""
        objects = item.schema.objects
        if item.name in objects:
            raise error(2714, name=item.name)
        transaction.log_part(self).log.append()
        objects[item.name] = item
        self._objects[item.object_id] = item

        def undo() -> None:
            objects.pop(item.name)
            self._objects.pop(item.object_id, None)

        transaction.on_undo(undo)

    def drop_object(self, transaction: Transaction, item: SchemaObject) -> None:
        """Remove an object from its schema, undoably; error 3726 for a table that others reference."""
        if isinstance(item, Table):
            self._release_table(transaction, item)
        transaction.log_part(self).log.append()
        item.schema.objects.pop(item.name)
        self._objects.pop(item.object_id, None)

        def undo() -> None:
            item.schema.objects[item.name] = item
            self._objects[item.object_id] = item

        transaction.on_undo(undo)

    def _release_table(self, transaction: Transaction, table: Table) -> None:
        if any(key.table is not table for key in table.referenced_by):
            raise error(3726, name=table.full_name)
        schema_change.begin_ddl(table, transaction)
        for key in tuple(table.foreign_keys):
            rule_changes.drop_foreign_key(transaction, key)

    def rename(self, transaction: Transaction, item: SchemaObject, new_name: str) -> None:
        """sp_rename of an object; error 15335 if the name is taken."""
        objects, old = item.schema.objects, item.name
        taken = objects.get(new_name)
        if taken is not None and taken is not item:
            raise error(15335, name=new_name, kind="object")

        def move(before: str, after: str) -> None:
            objects.pop(before)
            item.name = after
            objects[after] = item

        transaction.log_part(self).log.append()
        transaction.on_undo(lambda: move(new_name, old))
        move(old, new_name)

    def transfer(self, transaction: Transaction, item: SchemaObject, schema: Schema) -> None:
        """ALTER SCHEMA … TRANSFER; error 15530 becomes 2714 if the name is taken there."""
        if item.name in schema.objects:
            raise error(2714, name=item.name)
        source = item.schema

        def move(before: Schema, after: Schema) -> None:
            before.objects.pop(item.name)
            item.schema = after
            after.objects[item.name] = item

        transaction.log_part(self).log.append()
        transaction.on_undo(lambda: move(schema, source))
        move(source, schema)
