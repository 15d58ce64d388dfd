"""Resolving names: databases, schemas, tables, views, modules, temporary tables, system objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.product import refuse_other_database
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import SchemaObject, is_private
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.tsql.ast import Name

Dependency = tuple[Any, str, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A name with its database and schema filled in; `schema` is empty if none was written."""

    database: Database
    schema: str
    name: str


class Names:
    """Finds objects for one session in its current database; records what compiled statements depend on."""

    def __init__(self, session: SessionState) -> None:
        self.session = session
        self.server = session.server
        self.database: Database = session.current_database
        self.module_schema = ""
        """Schema of the module whose text is compiled: bare names are searched there."""
        self.dependencies: list[Dependency] = []

    def place(self, name: Name) -> Place:
        """Database, schema and local name; callers raise errors such as 208. A server part must be this server.

        Error 942 for a database that is offline.
        """
        parts = ("",) * (4 - len(name)) + tuple(name)
        if parts[0] and parts[0].lower() != self.server.name.lower():
            raise SqlError(
                7202, f"Could not find server '{parts[0]}' in sys.servers. Verify that the correct server name was "
                "specified. If necessary, execute the stored procedure sp_addlinkedserver to add the server to "
                "sys.servers.",
                severity=11, state=2,
            )  # fmt: skip
        if parts[3].startswith("##"):
            return Place(self.server.databases["tempdb"], "dbo", parts[3])
        database = self.server.databases.get(parts[1]) if parts[1] else self.database
        if parts[1] and parts[1].lower() not in (self.database.name.lower(), "tempdb"):
            refuse_other_database(self.server.version, ".".join(name))
        if database is None:
            raise error(208, name=".".join(name))
        if database.options.state == "OFFLINE":
            raise error(942, name=database.name)
        return Place(database, parts[2], parts[3])

    def find(self, name: Name) -> Table | SchemaObject | None:
        """A user object: temporary table, table, view, module, target of a synonym; None if there is none."""
        if is_private(name[-1]):
            return self.session.temporary.find(name[-1])
        place = self.place(name)
        for schema_name in [place.schema] if place.schema else self.search_path(place.database):
            schema = place.database.schemas.get(schema_name)
            found = None if schema is None else schema.objects.get(place.name)
            if found is not None:
                if found.type_code == "SN":
                    return self.find(found.definition)
                self._depend(schema.objects, place.name, found)  # type: ignore[union-attr]
                return found
        return None

    def search_path(self, database: Database) -> list[str]:
        """Schemas in which a bare name is searched."""
        default = self.module_schema or self.session.default_schema(database)
        return [default] if default.lower() == "dbo" else [default, "dbo"]

    def _depend(self, objects: Any, name: str, found: Any) -> None:
        columns = found.columns if isinstance(found, Table) else found.definition
        indexes = tuple(found.indexes) if isinstance(found, Table) else None
        self.dependencies.append((objects, name, found, columns, indexes))

    def table(self, name: Name, *, action: str = "") -> Table:
        """A table by name; 208, or errors such as 4902 and 3701 that callers raise for their statement."""
        found = self.find(name)
        if not isinstance(found, Table):
            raise error(4902, name=".".join(name)) if action == "alter" else error(208, name=".".join(name))
        return found

    def schema_for_new(self, name: Name) -> tuple[Database, str]:
        """Database and schema in which an object of this name is created."""
        place = self.place(name)
        schema = place.schema or self.session.default_schema(place.database)
        if schema not in place.database.schemas:
            raise error(2760, name=schema)
        return place.database, schema


def still_valid(dependencies: list[Dependency]) -> bool:
    """Whether everything that a compiled statement depends on is unchanged."""
    for objects, name, item, columns, indexes in dependencies:
        if objects.get(name) is not item:
            return False
        if indexes is None:
            if item.definition is not columns:
                return False
        elif item.columns is not columns or tuple(item.indexes) != indexes:
            return False
    return True
