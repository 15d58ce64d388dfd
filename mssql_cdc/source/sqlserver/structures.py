"""The structure of every table of a database, as Debezium reads it for its schema history (SNP-19, SCH-08).

This module only describes tables. What is read from captured tables, and under which key, is in `catalog`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from mssql_cdc.schema import Column, TableId, TableStructure
from mssql_cdc.source.sqlserver import catalog_statements as statements
from mssql_cdc.source.sqlserver.catalog import sql_type
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.keys import key_order


def structures(control: Control) -> list[TableStructure]:
    """The tables that the login can see. A table with CDC has only the columns of its newest capture instance."""
    catalog = control.value("SELECT DB_NAME()", doing="asking for the database's name")
    captured = _captured(control)
    keys = _keys(control)
    columns: dict[tuple[int, TableId], list[Column]] = defaultdict(list)
    for row in control.rows(statements.STRUCTURES, doing="reading the structure of all tables"):
        columns[row.object_id, TableId(catalog, row.schema_name, row.table_name)].append(_column(row))
    found: list[TableStructure] = []
    for (number, table), own in columns.items():
        names = captured.get(number, {column.name for column in own})
        kept = tuple(column for column in own if column.name in names)
        found.append(TableStructure(table, kept, tuple(name for name in keys.get(number, ()) if name in names)))
    return found


def _captured(control: Control) -> Mapping[int, set[str]]:
    """The captured columns of each table with CDC, by its object id."""
    instances = control.rows(statements.CAPTURE_INSTANCES, doing="reading capture instances")
    newest = {row.source_object_id: row.object_id for row in instances}  # They are sorted by their start.
    names: dict[int, set[str]] = defaultdict(set)
    for row in control.rows(statements.CAPTURED_COLUMNS, doing="reading captured columns"):
        names[row.object_id].add(row.column_name)
    return {source: names[instance] for source, instance in newest.items()}


def _keys(control: Control) -> Mapping[int, Sequence[str]]:
    """The primary key of each table, or else its first unique index, as `sp_statistics` sorts them."""
    indexes: dict[int, dict[tuple[bool, bool, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in control.rows(statements.STRUCTURE_KEYS, doing="reading the keys of all tables"):
        indexes[row.object_id][key_order(row)].append(row.column_name)
    return {number: own[min(own)] for number, own in indexes.items()}


def _column(row: Any) -> Column:
    return Column(
        name=row.name,
        type=sql_type(row),
        nullable=bool(row.is_nullable),
        position=row.column_id,
        identity=bool(row.is_identity),
        computed=bool(row.is_computed),
        default_text=row.default_text,
        alias=None if row.declared_type == row.type_name else row.declared_type,
    )
