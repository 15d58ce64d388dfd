"""Names and objects of a schema: one namespace per schema, compared by the database's collation.

What does not belong here: the meaning of views and procedures; their `definition` belongs to the executor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mssql_sandbox.engine.collation import Collation

T = TypeVar("T")
_REMEMBERED = 4096


class NameMap(Generic[T]):
    """A dictionary whose keys are names under a collation; keeps the names as written."""

    def __init__(self, collation: Collation) -> None:
        self.collation = collation
        self._items: dict[Any, tuple[str, T]] = {}
        self._keys: dict[str, Any] = {}

    def get(self, name: str) -> T | None:
        """The item called `name`, or None."""
        found = self._items.get(self._key(name))
        return None if found is None else found[1]

    def _key(self, name: str) -> Any:
        """The key of a name, cached because every statement looks up the same few names."""
        key = self._keys.get(name)
        if key is None:
            if len(self._keys) >= _REMEMBERED:
                self._keys.clear()
            key = self._keys[name] = self.collation.key(name)
        return key

    def __getitem__(self, name: str) -> T:
        return self._items[self.collation.key(name)][1]

    def __setitem__(self, name: str, item: T) -> None:
        self._items[self.collation.key(name)] = (name, item)

    def __delitem__(self, name: str) -> None:
        del self._items[self.collation.key(name)]

    def __contains__(self, name: str) -> bool:
        return self.collation.key(name) in self._items

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._items.values()])

    def __len__(self) -> int:
        return len(self._items)

    def values(self) -> list[T]:
        """All items, in order of creation."""
        return [item for _, item in self._items.values()]

    def pop(self, name: str) -> T | None:
        """Remove and return the item, None if there is none."""
        found = self._items.pop(self.collation.key(name), None)
        return None if found is None else found[1]

    def recollate(self, collation: Collation) -> None:
        """Compare names under another collation from now on."""
        self.collation = collation
        self._keys.clear()
        self._items = {collation.key(name): (name, item) for name, item in self._items.values()}


def is_private(name: str) -> bool:
    """Whether it is the name of a local temporary object; `##` names are global."""
    return name.startswith("#") and not name.startswith("##")


def private_listing(name: str, object_id: int) -> str:
    """The name in tempdb's catalogue: several sessions may have temporary objects of one name."""
    return f"{name:_<116}{object_id:012X}"


@dataclass(slots=True, eq=False)
class SchemaObject:
    """An object in a schema: view (V), procedure (P), function (FN, IF, TF), sequence (SO), trigger (TR), synonym (SN).

    Times are `datetime` storage values. `definition` is whatever the executor keeps, `text` the statement.
    """

    name: str
    object_id: int
    schema: Schema
    type_code: str
    create_date: int = 0
    modify_date: int = 0
    parent_object_id: int = 0
    definition: Any = None
    text: str = ""
    is_ms_shipped: bool = False
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def listed_name(self) -> str:
        """The name in the catalogue, which differs for temporary objects."""
        return private_listing(self.name, self.object_id) if is_private(self.name) else self.name


@dataclass(slots=True, eq=False)
class Schema:
    """A schema: an id, an owner and the names in it (tables, views, procedures, constraints' owners…)."""

    name: str
    schema_id: int
    objects: NameMap[Any]
    owner: str = "dbo"


@dataclass(slots=True, eq=False)
class Principal:
    """A database user or role, with its roles, grants and denials."""

    name: str
    principal_id: int
    type_code: str
    default_schema: str | None = "dbo"
    login: str | None = None
    member_of: set[str] = field(default_factory=set)
    permissions: list[tuple[str, str, str, str]] = field(default_factory=list)
    """(state GRANT|DENY, permission, class DATABASE|SCHEMA|OBJECT, 'schema.object' or schema or '')."""
    fixed_role: bool = False
    create_date: int = 0
