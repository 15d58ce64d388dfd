"""The Delta column that holds a source column's values: one of the same name until Delta cannot widen it to a new type.

Then the source column continues in a new Delta column, `<name>_2`, `<name>_3`, …: the first name that no other column
has. A Delta column is left for good: a type that comes back gets yet another one. `lake/history.py` decides this once,
when it records a version, so that every writer and reader of a row finds the column by the row's version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from mssql_cdc.lake.delta_schema import is_wider
from mssql_cdc.schema.arrow import RESERVED_CURRENT
from mssql_cdc.schema.tables import Column, FormerColumn, TableSchema
from mssql_cdc.schema.type_table import TYPES
from mssql_cdc.schema.types import SqlServerType

DELTA_COLUMN, CONTINUED = "Delta Column", "CONTINUED"
"""Aggregate type and type of the notification about such a change; Debezium has none, so it is not a record."""


@dataclass(frozen=True, slots=True)
class Continued:
    """A source column whose values are in another Delta column from version `since` on."""

    column: Column
    since: int

    @property
    def former(self) -> FormerColumn:
        """The Delta column that held the values before."""
        return self.column.former[-1]


def with_delta_columns(schema: TableSchema, earlier: Sequence[TableSchema]) -> TableSchema:
    """The structure with the Delta column of each of its columns.

    Args:
        schema: the structure of the rows to come.
        earlier: the versions of the table so far, oldest first.
    """
    homes = _homes(earlier)
    taken = {name.lower() for home in homes.values() for name in home.names}
    own = {column.name.lower() for column in schema.columns}
    blocked = {*RESERVED_CURRENT, *own, *taken}
    columns: list[Column] = []
    for column in schema.columns:
        if column.name in schema.hidden:
            columns.append(replace(column, delta_name=None, former=()))
            continue
        home = homes.get(column.name)
        if home is not None and home.fits(column.type):
            name, former = home.name, home.former
        else:
            is_free = home is None and column.name.lower() not in taken
            name = column.name if is_free else next(_free(column.name, blocked))
            former = (*home.former, FormerColumn(home.name, home.type)) if home is not None else ()
            blocked.add(name.lower())
        columns.append(replace(column, delta_name=name if name != column.name else None, former=former))
    return replace(schema, columns=tuple(columns))


def same_delta_columns(schema: TableSchema, known: TableSchema) -> TableSchema:
    """The structure with the Delta columns of a version that has the same columns."""
    if not any(column.delta_name or column.former for column in known.columns):
        return schema
    columns = zip(schema.columns, known.columns, strict=True)
    found = tuple(replace(column, delta_name=one.delta_name, former=one.former) for column, one in columns)
    return replace(schema, columns=found)


def continued(newer: TableSchema, earlier: Sequence[TableSchema]) -> list[Continued]:
    """The columns that have a different Delta column than in the versions before.

    Args:
        newer: a version of the table.
        earlier: the versions before it, oldest first.
    """
    homes = _homes(earlier)
    return [
        Continued(column, newer.version)
        for column in newer.columns
        if column.name in homes and column.former and column.former[-1].name == homes[column.name].name
    ]


@dataclass(frozen=True, slots=True)
class _Home:
    """The last Delta column of a source column, with the widest type that it had, and the Delta columns before it."""

    name: str
    type: SqlServerType
    former: tuple[FormerColumn, ...]

    @property
    def names(self) -> Iterator[str]:
        yield self.name
        yield from (one.name for one in self.former)

    def fits(self, kind: SqlServerType) -> bool:
        """Whether the Delta column holds values of this type, or can be widened to it."""
        if not _known(self.type, kind):
            return True  # This raises its own error when rows are read.
        has, wanted = self.type.arrow, kind.arrow
        return has.equals(wanted) or is_wider(has, wanted) or is_wider(wanted, has)


def _homes(versions: Sequence[TableSchema]) -> Mapping[str, _Home]:
    """The Delta columns by source column name, including columns that the source no longer has."""
    homes: dict[str, _Home] = {}
    for schema in versions:
        for column in schema.columns:
            if column.name in schema.hidden:
                continue
            known = homes.get(column.name)
            if known is not None and known.name == column.stored_name:
                homes[column.name] = replace(known, type=_wider(known.type, column.type))
            else:
                homes[column.name] = _Home(column.stored_name, column.type, column.former)
    return homes


def _wider(one: SqlServerType, other: SqlServerType) -> SqlServerType:
    return other if _known(one, other) and is_wider(other.arrow, one.arrow) else one


def _known(*kinds: SqlServerType) -> bool:
    return all(kind.name in TYPES for kind in kinds)


def _free(name: str, blocked: set[str]) -> Iterator[str]:
    """`<name>_2`, `<name>_3`, … without names that are taken, ignoring case."""
    return (found for number in count(2) if (found := f"{name}_{number}").lower() not in blocked)
