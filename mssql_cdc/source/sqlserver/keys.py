"""The columns that identify a captured table's rows (rule B12), and those whose text CDC may corrupt (rule E27)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mssql_cdc.schema import NO_CONSTRAINT, TYPES, Column, TableId, UniqueKey


def usable_keys(indexes: Iterable[Any], captured: set[str], collation: str) -> tuple[UniqueKey, ...]:
    """The keys that identify a row (rule B12), the best first.

    The primary key, then the unique indexes in order, if they have no filter and no computed column, are enabled, are
    completely shown and captured, and have no character column that CDC may corrupt (rule E27).

    Args:
        indexes: rows of `catalog_statements.UNIQUE_INDEXES`, one per index column.
        captured: names of the columns that the capture instance has.
        collation: the database's.
    """
    by_index: Mapping[int, list[Any]] = defaultdict(list)
    for row in indexes:
        by_index[row.index_id].append(row)
    candidates = sorted(by_index.values(), key=lambda rows: (not rows[0].is_primary_key, rows[0].index_id))
    found: list[UniqueKey] = []
    for unsorted in candidates:
        rows = sorted(unsorted, key=lambda row: row.key_ordinal)
        whole = [row.key_ordinal for row in rows] == list(range(1, len(rows) + 1))
        usable = whole and all(
            row.column_name in captured
            and not row.is_computed
            and not row.has_filter
            and not row.is_disabled
            and not _spoiled(row.type_name, row.collation_name, collation)
            for row in rows
        )
        if usable:
            columns = tuple(row.column_name for row in rows)
            found.append(UniqueKey(columns, rows[0].constraint_id or NO_CONSTRAINT))
    return tuple(found)


def doubtful_columns(table_id: TableId, columns: Iterable[Column], collation: str) -> tuple[str, ...]:
    """Lines about columns whose change rows may hold wrong text (rule E27).

    Args:
        table_id: named in each line.
        columns: as captured.
        collation: the database's; text of another collation's code page is doubtful.
    """
    return tuple(
        f"{table_id}: column {column.name!r} ({column.type.declaration}) has the collation {column.type.collation}, "
        f"the database {collation}; CDC may corrupt its non-ASCII text. Change the column to nvarchar"
        for column in columns
        if _spoiled(column.type.name, column.type.collation, collation)
    )


def _spoiled(type_name: str, collation: str | None, database_collation: str) -> bool:
    known = TYPES.get(type_name)
    return known is not None and known.code_page and collation not in {None, database_collation}


def key_order(row: Any) -> tuple[bool, bool, str]:
    """Sort key of a table's unique indexes: Debezium's key is the primary key, else what `sp_statistics` has first."""
    return not row.is_primary_key, row.index_id != 1, row.index_name


def shown_key(indexes: Iterable[Any], columns: Sequence[Column], key: Sequence[str]) -> tuple[str, ...]:
    """Return what records show as their key: Debezium's, whether or not it identifies a row.

    These are the captured columns of the primary key, else of the unique index that `sp_statistics` lists first,
    whatever its filter: the clustered one, then by name. A column that a filter excludes is in the lake only if it is
    part of the row's key; if one is missing, the row's key is shown.

    Args:
        indexes: rows of `catalog_statements.UNIQUE_INDEXES`, one per index column.
        columns: as captured, including those that a filter excludes.
        key: the row's key.
    """
    by_index: Mapping[tuple[bool, bool, str], list[Any]] = defaultdict(list)
    for row in indexes:
        by_index[key_order(row)].append(row)
    if not by_index:
        return ()
    captured = {column.name: not column.excluded or column.name in key for column in columns}
    rows = sorted(by_index[min(by_index)], key=lambda row: row.key_ordinal)
    names = [row.column_name for row in rows if row.column_name in captured]
    held = tuple(name for name in names if captured[name])
    return held if len(held) == len(names) or not key else tuple(key)
