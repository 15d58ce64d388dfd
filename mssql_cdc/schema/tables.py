"""The model of a source table: its name, its columns, its key, its version.

It contains only values: `source/` reads them from a source, `schema/arrow.py` derives Arrow schemas, and
`lake/history.py` stores them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema.types import SqlServerType


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """`catalog.schema.name`; the catalog (database) is None for sources that have none."""

    catalog: str | None
    schema: str
    name: str

    @property
    def text(self) -> str:
        """`catalog.schema.name` as Debezium writes it; a key of the `tables` map in `_offsets`."""
        return f"{self.schema}.{self.name}" if self.catalog is None else f"{self.catalog}.{self.schema}.{self.name}"

    @property
    def parts(self) -> tuple[str, str, str]:
        """Catalog, schema and name, as filters and signals match them; a missing catalog is an empty text."""
        return self.catalog or "", self.schema, self.name

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class FormerColumn:
    """A Delta column that held a source column's values under earlier versions, and the widest type that it had."""

    name: str
    type: SqlServerType


@dataclass(frozen=True, slots=True)
class Column:
    """One captured column. `position` is its ordinal in the source table, from 1.

    `excluded` columns are read but kept out of `before`, `after` and the current table (column filters);
    a key column still stays in the key, as in Debezium. `alias` is the name of the alias type, or `sysname`, that the
    column is declared with. `description` is only for display; `delta_name`, the Delta column that holds the values
    (None: the one with the column's own name), and `former`, those that held them before, oldest first, are unknown to
    the source (`lake/delta_columns.py`). A difference in any of these three is not a different structure.
    """

    name: str
    type: SqlServerType
    nullable: bool = True
    position: int = 0
    identity: bool = False
    computed: bool = False
    default_text: str | None = None
    key_ordinal: int | None = None
    excluded: bool = False
    alias: str | None = None
    description: str | None = field(default=None, compare=False)
    delta_name: str | None = field(default=None, compare=False)
    former: tuple[FormerColumn, ...] = field(default=(), compare=False)

    @property
    def stored_name(self) -> str:
        """The column's name in `before`, `after` and `key` of the change log."""
        return self.delta_name or self.name


NO_CONSTRAINT = 0
"""Takes the place of a constraint's object id: the key is a unique index without a constraint."""


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A key that identifies rows: its columns in key order, and the object id of its constraint (or NO_CONSTRAINT).

    A constraint that is dropped and added again has a new object id (B15). None: the id is not known.
    """

    columns: tuple[str, ...]
    constraint: int | None = None

    def continues(self, former: UniqueKey) -> bool:
        """Whether rows have been unique by the same columns since the former key was seen, as far as is known."""
        known = self.constraint is not None and former.constraint is not None
        return self.columns == former.columns and (not known or self.constraint == former.constraint)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table as one capture instance shows it, from `from_lsn` (a position's LSN text) onwards.

    `columns` are in source order. `key_columns` are names in key order and may be empty (rule B12 says which key);
    `key_constraint` is the constraint that they belong to (`UniqueKey`). `version` is `_schema` of the change log's
    rows; `incarnation` grows each time the source table is dropped and created (B15). `key_since` is the version since
    which the key's definition has been the same. `object_id` is the source table's, `capture_object_id` the change
    table's, `instance` the capture instance's name. `shown_key` are the columns that records show as their key
    (EVT-02): those of an index other than the lake's, or part of one; empty in versions older than this field, and
    without a unique index.
    """

    table_id: TableId
    columns: tuple[Column, ...]
    key_columns: tuple[str, ...] = ()
    version: int = 1
    incarnation: int = 1
    key_since: int = 1
    object_id: int | None = None
    capture_object_id: int | None = None
    instance: str | None = None
    from_lsn: str | None = None
    description: str | None = field(default=None, compare=False)
    shown_key: tuple[str, ...] = field(default=(), compare=False)
    key_constraint: int | None = None

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for column in self.value_columns:
            if column.name.lower() in seen:
                raise SchemaError(
                    f"{self.table_id} has columns like {column.name!r} that differ only by case, which Delta "
                    "refuses; leave one out in the capture instance, or with column.exclude.list, whose patterns "
                    f"ignore case unless they say (?-i:{column.name})"
                )
            seen.add(column.name.lower())
        missing = [name for name in self.key_columns if name not in {column.name for column in self.columns}]
        if missing:
            raise SchemaError(f"Key columns {missing} of {self.table_id} are not captured")

    @property
    def value_columns(self) -> tuple[Column, ...]:
        """The columns of `before`, `after` and the current table: all that no column filter excludes."""
        return tuple(column for column in self.columns if not column.excluded)

    @property
    def hidden(self) -> frozenset[str]:
        """The columns that a filter excludes and that no key needs: none of their data gets into the lake."""
        return frozenset(one.name for one in self.columns if one.excluded and one.name not in self.key_columns)

    @property
    def key(self) -> UniqueKey:
        """The key that identifies rows; without columns if there is none."""
        return UniqueKey(self.key_columns, self.key_constraint)

    @property
    def record_key(self) -> tuple[str, ...]:
        """The columns of records' keys, unless `message.key.columns` names others."""
        return self.shown_key or self.key_columns

    @property
    def keys(self) -> tuple[Column, ...]:
        """The key's columns in key order."""
        return tuple(self.column(name) for name in self.key_columns)

    @property
    def key_definition(self) -> tuple[tuple[str, SqlServerType], ...]:
        """The name and the whole type of each key column, in key order (rule B15)."""
        return tuple((column.name, column.type) for column in self.keys)

    @property
    def key_fingerprint(self) -> str | None:
        """A hash of `key_definition`; None: no key."""
        if not self.key_columns:
            return None
        return _fingerprint(self.key_definition)

    @property
    def key_id(self) -> str | None:
        """Shared by rows whose `_key` identifies rows in the same way: the definition, and since when it has held."""
        return f"{self.key_fingerprint}:{self.key_since}" if self.key_columns else None

    def column(self, name: str) -> Column:
        """The column with exactly this name.

        Raises:
            SchemaError: there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(f"{self.table_id} has no column {name!r}; it has {[c.name for c in self.columns]}")

    def has_key_of(self, other: TableSchema) -> bool:
        """Whether rows have been unique by the same columns, of the same types, in both and in between (rule B15)."""
        return self.key_definition == other.key_definition and self.key.continues(other.key)

    def keyed_by(self, names: Sequence[str], *, constraint: int | None = None) -> TableSchema:
        """The same table with these key columns, in key order.

        Args:
            names: The names of the columns.
            constraint: The constraint that they belong to, as in `UniqueKey`.
        """
        columns = tuple(
            replace(c, key_ordinal=names.index(c.name) + 1 if c.name in names else None) for c in self.columns
        )
        return replace(self, columns=columns, key_columns=tuple(names), key_constraint=constraint)

    def same_structure(self, other: TableSchema) -> bool:
        """Whether rows of both have the same shape: names, types, nullability, key."""
        return self.columns == other.columns and self.key_columns == other.key_columns

    def to_json(self) -> str:
        """Everything as JSON, for a task descriptor and `_schema_history.columns`; `from_json` is its inverse."""
        rest = asdict(self)
        if self.description is None:
            del rest["description"]
        if not self.shown_key:
            del rest["shown_key"]
        if self.key_constraint is None:
            del rest["key_constraint"]
        rest["columns"] = [_column_dict(column) for column in self.columns]
        return json.dumps(rest, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> TableSchema:
        """The schema whose `to_json()` this is."""
        data: dict[str, Any] = json.loads(text)
        data["table_id"] = TableId(**data["table_id"])
        data["columns"] = _columns(data["columns"])
        data["key_columns"] = tuple(data["key_columns"])
        data["shown_key"] = tuple(data.get("shown_key", ()))
        return cls(**data)


@dataclass(frozen=True, slots=True)
class TableStructure:
    """A table that is not captured, as schema change records describe it.

    Delta never holds its rows, so its columns may have any names and types.
    """

    table_id: TableId
    columns: tuple[Column, ...]
    key_columns: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Columns and key as JSON; `from_json` is its inverse."""
        columns = [_column_dict(column) for column in self.columns]
        return json.dumps({"columns": columns, "key_columns": self.key_columns}, ensure_ascii=False)

    @classmethod
    def from_json(cls, table_id: TableId, text: str) -> TableStructure:
        """The structure whose `to_json()` this is."""
        data: dict[str, Any] = json.loads(text)
        return cls(table_id, _columns(data["columns"]), tuple(data["key_columns"]))


@lru_cache(maxsize=4096)
def _fingerprint(definition: tuple[tuple[str, SqlServerType], ...]) -> str:
    found = [(name, asdict(kind)) for name, kind in definition]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]


def _column_dict(column: Column) -> dict[str, Any]:
    """Include only values that differ from the default, so that the texts stay short and old texts stay readable."""
    kind = {name: value for name, value in asdict(column.type).items() if value is not None}
    blank = Column(column.name, column.type)
    own = {n: v for n, v in asdict(column).items() if n != "type" and v != getattr(blank, n)}
    return {"name": column.name, "type": kind, **own}


def _columns(found: Iterable[dict[str, Any]]) -> tuple[Column, ...]:
    return tuple(
        Column(type=SqlServerType(**column.pop("type")), former=_former(column.pop("former", ())), **column)
        for column in map(dict, found)
    )


def _former(found: Iterable[dict[str, Any]]) -> tuple[FormerColumn, ...]:
    return tuple(FormerColumn(one["name"], SqlServerType(**one["type"])) for one in found)
