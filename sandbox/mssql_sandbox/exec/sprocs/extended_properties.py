"""sp_addextendedproperty and related procedures: properties of schemas, tables, columns and modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.flow import Answer, StepsTo
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.sprocs.named_arguments import Own, named_arguments

_NAMES = ("name", "value", "level0type", "level0name", "level1type", "level1name", "level2type", "level2name")
_DATABASE, _OBJECT, _PARAMETER, _SCHEMA, _PRINCIPAL, _TYPE, _INDEX = 0, 1, 2, 3, 4, 6, 7
_SPACES = {"FILEGROUP": (20, 1, 0), "PARTITION SCHEME": (20, 65601, 0), "PARTITION FUNCTION": (21, 65536, 0)}


@dataclass(frozen=True, slots=True)
class Place:
    """The owner of a property: class and ids as in sys.extended_properties, and the (type, name) levels."""

    class_: int
    major: int
    minor: int
    path: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str | None:
        """The name shown in messages."""
        return self.path[-1][1] if self.path else None


def kept(database: Database) -> dict[tuple[int, int, int, str], Any]:
    """Properties by (class, major id, minor id, name); values are (type, value)."""
    return database.properties.setdefault("extended properties", {})


def place_of(database: Database, levels: Sequence[tuple[str | None, str | None]]) -> Place:
    """The object that up to three levels of (type, name) name; 15135 if it does not exist."""
    path = tuple((kind.upper(), name or "") for kind, name in levels if kind is not None)
    if not path:
        return Place(_DATABASE, 0, 0)
    found = _ids(database, path)
    if found is None:
        raise _missing(".".join(name for _, name in path))
    return Place(*found, path)


def _ids(database: Database, path: tuple[tuple[str, str], ...]) -> tuple[int, int, int] | None:
    kind, name = path[0]
    if kind == "SCHEMA":
        schema = database.schemas.get(name)
        if schema is None or len(path) == 1:
            return None if schema is None else (_SCHEMA, schema.schema_id, 0)
        item = schema.objects.get(path[1][1])
        if item is None or len(path) > 2:
            return None if item is None else _part_of(item, *path[2])
        return _TYPE if item.type_code in ("TYPE", "TT") else _OBJECT, item.object_id, 0
    if kind in ("USER", "ROLE"):
        principal = database.principals.get(name)
        return None if principal is None else (_PRINCIPAL, principal.principal_id, 0)
    if kind == "TRIGGER":
        found = next((item for item in database.objects() if item.type_code == "TR" and item.name == name), None)
        return None if found is None else (_OBJECT, found.object_id, 0)
    return _SPACES.get(kind)


def _part_of(item: Any, kind: str, name: str) -> tuple[int, int, int] | None:
    if isinstance(item, Table):
        column, index = item.column(name), item.index(name)
        if kind == "COLUMN" and column is not None:
            return _OBJECT, item.object_id, column.column_id
        if kind == "INDEX" and index is not None:
            return _INDEX, item.object_id, index.index_id
        owned = next((object_id for own, object_id in _owned(item) if own.lower() == name.lower()), None)
        return (_OBJECT, owned, 0) if kind in ("CONSTRAINT", "TRIGGER") and owned is not None else None
    if kind == "COLUMN" and item.type_code == "V":
        return _OBJECT, item.object_id, 1
    node = getattr(item.definition, "node", None)
    for number, parameter in enumerate(node.parameters if node is not None else (), 1):
        if kind == "PARAMETER" and parameter.name.lower() == name.lower():
            return _PARAMETER, item.object_id, number
    return None


def _owned(table: Table) -> list[tuple[str, int]]:
    found = [(index.name, index.object_id) for index in table.indexes if index.constraint]
    found += [(check.name, check.object_id) for check in table.checks]
    found += [(key.name, key.object_id) for key in table.foreign_keys]
    found += [(column.default.name, column.default.object_id) for column in table.columns if column.default is not None]
    return found + [(trigger.name, trigger.object_id) for trigger in table.triggers]


def _missing(shown: str) -> SqlError:
    return SqlError(15135, f"Object is invalid. Extended properties are not permitted on '{shown}', or the object does "
                    "not exist.")  # fmt: skip


def _change(action: str) -> Own:
    def run(_session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
        order = _NAMES if action != "drop" else (_NAMES[0], *_NAMES[2:])
        given = named_arguments(order, parameters)
        if given.get("name") is None:
            raise error(201, name=f"sp_{action}extendedproperty", parameter="@name")
        name = str(given["name"])
        place = place_of(database, [(given.get(f"level{n}type"), given.get(f"level{n}name")) for n in range(3)])
        properties = kept(database)
        key = (place.class_, place.major, place.minor, name.lower())
        shown = place.shown or "object specified"
        if action == "add" and key in properties:
            raise SqlError(15233, f"Property cannot be added. Property '{name}' already exists for '{shown}'.")
        if action != "add" and key not in properties:
            raise SqlError(15217, f"Cannot update or delete the extended property '{name}'. It does not exist on "
                           f"'{shown}'.")  # fmt: skip
        if action == "drop":
            del properties[key]
        else:
            value = next((p for p in parameters if p.name.lower() == "@value"), None)
            value = parameters[1] if value is None and len(parameters) > 1 and not parameters[1].name else value
            variant = None if value is None or value.value is None else (value.type, value.value)
            properties[key] = (name, place, variant)
        return 0, []
        yield

    return run


OWN = {f"sp_{action}extendedproperty": _change(action) for action in ("add", "update", "drop")}
