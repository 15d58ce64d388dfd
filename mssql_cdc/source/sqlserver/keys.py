"""The columns that identify a captured table's rows (rule B12), and those whose text CDC may spoil (rule E27)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mssql_cdc.schema import NO_CONSTRAINT, TYPES, Column, TableId, UniqueKey


def usable_keys(indexes: Iterable[Any], captured: set[str], collation: str) -> tuple[UniqueKey, ...]:
    """The keys that identify a row (rule B12), the best first.

    The primary key, then the unique indexes in order, that have no filter and no computed column, are enabled, are
    wholly shown and captured, and have no character column that CDC may spoil (rule E27).

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


def captured_part(indexes: Iterable[Any], columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the captured columns of the primary key, in key order."""
    captured = {column.name for column in columns if not column.excluded}
    rows = sorted((one for one in indexes if one.is_primary_key), key=lambda one: one.key_ordinal)
    return tuple(one.column_name for one in rows if one.column_name in captured)
