"""Which columns of a table a check compares, and the name of each one that it does not, with the reason.

The structure comes from the source's own catalog; what the lake has recorded is compared with it, and mismatches are
reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from mssql_cdc.config import Connector
from mssql_cdc.schema import Column, TableSchema
from mssql_cdc.source.values import SourceTable, Texts

Unknown = Mapping[Texts, frozenset[str]]
"""Keys whose rows have cells that CDC never delivered, and the columns of those cells."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a check compares in a table.

    Attributes:
        schema: the source's structure, cut down to the compared columns; its key is the lake's.
        left_out: the columns that are not compared, with the reason.
        structure: what the lake has recorded about the structure that differs from the source.
        keyed: whether every column of the key is compared, so that the key identifies rows.
        sought: the source's whole structure with the key that ranges are formed from: the lake's, where it is unique at
            the source, so that an index has its order.
    """

    schema: TableSchema
    sought: TableSchema
    left_out: tuple[str, ...] = ()
    structure: tuple[str, ...] = ()
    keyed: bool = True

    @property
    def columns(self) -> tuple[Column, ...]:
        """The compared columns."""
        return self.schema.columns

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the compared columns."""
        return tuple(column.name for column in self.columns)

    @property
    def sought_by_key(self) -> bool:
        """Whether the source can find rows by the texts of their keys; in `sql_variant`, no text equals a number."""
        return self.keyed and all(column.type.has_bounds for column in self.schema.keys)

    def key(self, texts: Texts) -> Texts:
        """The texts of a row's key; empty for a table whose rows no key identifies."""
        if not self.keyed:
            return ()
        named = dict(zip(self.names, texts, strict=True))
        return tuple(named[name] for name in self.schema.key_columns)

    def without(self, names: Collection[str]) -> Compared:
        """The same without columns that CDC does not deliver with every change.

        Args:
            names: The columns, none of which is part of the key.
        """
        columns = tuple(column for column in self.columns if column.name not in names)
        named = (column.name for column in self.columns if column.name in names)
        left_out = (*self.left_out, *(f"{name} (CDC does not deliver it with every change)" for name in named))
        return replace(self, schema=replace(self.schema, columns=columns), left_out=left_out)

    def known(self, texts: Texts, key: Texts, unknown: Unknown) -> Texts:
        """The row's texts without the cells that CDC never delivered.

        Args:
            texts: The row's canonical texts.
            key: The row's key.
            unknown: The cells that CDC never delivered, by key.
        """
        blank = unknown.get(key)
        if not blank:
            return texts
        return tuple(None if name in blank else text for name, text in zip(self.names, texts, strict=True))


def compared_of(
    table: SourceTable, lake: TableSchema, *, connector: Connector, masked: Collection[str], stored: Collection[str]
) -> Compared:
    """What a check compares in a table.

    Args:
        table: the table as the source describes it.
        lake: the newest structure that the lake has recorded.
        connector: its filters exclude columns.
        masked: columns with a mask.
        stored: the columns, by the source's names, that the lake's table has.
    """
    recorded = {column.name: column for column in lake.columns}
    columns: list[Column] = []
    left_out: list[str] = []
    structure: list[str] = []
    for column in table.columns:
        known = recorded.get(column.name)
        if known is not None and lake.object_id == table.object_id and known.position != column.position:
            known = None  # A different column, which was dropped.
        reason = _reason(column, known, connector, table, masked, stored)
        if not reason and not lake.key_columns and known is not None and known.former:
            # A second image of a row would not be recognized: it has the value in another column, of another type.
            reason = f"its type changed: rows have it in {known.former[-1].name} or in {known.stored_name}"
        if reason or known is None:
            left_out.append(f"{column.name} ({reason})")
        else:
            columns.append(replace(column, delta_name=known.delta_name, former=known.former))
        if known is not None and (difference := _type_difference(known, column)):
            structure.append(f"{column.name}: {difference}")
    present = {column.name for column in table.columns}
    left_out += [f"{c.name} (no longer at the source)" for c in lake.value_columns if c.name not in present]
    structure += _key_differences(table, lake)
    names = {column.name for column in columns}
    keyed = bool(lake.key_columns) and set(lake.key_columns) <= names
    key = lake.key_columns if keyed else ()
    schema = replace(lake, table_id=table.table_id, columns=tuple(columns), key_columns=key, object_id=table.object_id)
    unique = set(lake.key_columns) <= present and frozenset(lake.key_columns) in map(frozenset, table.unique)
    sought = replace(schema, columns=table.columns, key_columns=lake.key_columns if unique else ())
    return Compared(schema, sought, tuple(left_out), tuple(structure), keyed)


def _reason(
    column: Column,
    known: Column | None,
    connector: Connector,
    table: SourceTable,
    masked: Collection[str],
    stored: Collection[str],
) -> str | None:
    """Why the column is not compared; None if it is."""
    captured = {instance.get(column.name) for instance in table.captured}
    if column.position not in captured:
        return "not captured" if captured <= {None} else "not captured: dropped and added again"
    if not connector.filters.columns.matches(*table.table_id.parts, column.name):
        return "excluded"
    if column.name in masked:
        return "masked"
    if column.computed:
        return "computed"
    if known is None or known.excluded or column.name not in stored:
        return "not in the lake yet"
    if known.type.kind is not column.type.kind:
        return _type_difference(known, column)
    return None


def _type_difference(known: Column, column: Column) -> str | None:
    """How the type that the lake has recorded differs from the source's; None if it does not."""
    lake, source = known.type.declaration, column.type.declaration
    collations = known.type.collation, column.type.collation
    if None not in collations and collations[0] != collations[1]:
        lake, source = f"{lake} COLLATE {collations[0]}", f"{source} COLLATE {collations[1]}"
    return f"{lake} in the lake, {source} at the source" if lake != source else None


def _key_differences(table: SourceTable, lake: TableSchema) -> Sequence[str]:
    unique = {frozenset(names) for names in table.unique}
    key = frozenset(lake.key_columns)
    if key and key not in unique:
        return [f"the key ({', '.join(lake.key_columns)}) is no longer unique at the source"]
    if not key and unique:
        first = ", ".join(table.unique[0])
        return [f"the source has the key ({first}), which the lake does not use"]
    return []
