"""`sys.indexes`, `sys.index_columns`, `sys.key_constraints`, `sys.foreign_keys` and their columns."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.catalog.views.columns import CONSTRAINT
from mssql_sandbox.engine.storage.columnstore import columnstores
from mssql_sandbox.engine.storage.documents import xml_indexes
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.storage.view_indexes import view_indexes

_ACTIONS = {"NO ACTION": (0, "NO_ACTION"), "CASCADE": (1, "CASCADE"), "SET NULL": (2, "SET_NULL"),
            "SET DEFAULT": (3, "SET_DEFAULT")}  # fmt: skip


def column_id(table: Table, name: str) -> int:
    """The id of an existing column."""
    column = table.column(name)
    if column is None:
        raise KeyError(f"{table.full_name} has no column {name!r}, though a constraint names it")
    return column.column_id


def _indexes(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        partitioned = table.properties.get("partitioned")
        space = 1 if partitioned is None else partitioned.scheme.data_space_id
        if table.clustered is None and not any(each.clustered for each in columnstores(table)):
            yield (table.object_id, None, 0, 0, "HEAP", 0, space, 0, 0, 0, 0, 0, 0, None)
        for each in columnstores(table):
            kind = (5, "CLUSTERED COLUMNSTORE") if each.clustered else (6, "NONCLUSTERED COLUMNSTORE")
            yield (table.object_id, each.name, each.index_id, *kind, 0, space, 0, 0, 0, 0, 0, 0, None)
        for each in xml_indexes(table):
            yield (table.object_id, each.name, each.index_id, 3, "XML", 0, space, 0, 0, 0, 0, 0, 0, None)
        for index in table.indexes:
            yield (
                table.object_id,
                index.name,
                index.index_id,
                1 if index.clustered else 2,
                "CLUSTERED" if index.clustered else "NONCLUSTERED",
                int(index.unique),
                space,
                int(index.ignore_duplicates),
                int(index.constraint == "PRIMARY KEY"),
                int(index.constraint == "UNIQUE"),
                int(index.disabled and not index.hypothetical),
                int(index.hypothetical),
                int(index.predicate is not None),
                index.predicate_text or None,
            )


def _indexes_and_views(scope: Scope) -> Iterator[tuple]:
    """The indexes of tables, then those of views, as far as they are needed."""
    yield from _indexes(scope)
    asked = scope.object_id
    for item in scope.database.objects():
        if item.type_code == "V" and asked in (None, item.object_id):
            for each in view_indexes(item):
                kind = (1, "CLUSTERED") if each.clustered else (2, "NONCLUSTERED")
                yield (item.object_id, each.name, each.index_id, *kind, int(each.unique), 1, 0, 0, 0, 0, 0, 0, None)


def _index_columns(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        partitioned = table.properties.get("partitioned")
        on = None if partitioned is None else column_id(table, partitioned.column)
        for index in table.indexes:
            number = 0
            for ordinal, (name, descending) in enumerate(index.columns, 1):
                number += 1
                column = column_id(table, name)
                yield (table.object_id, index.index_id, number, column, ordinal, int(column == on), int(descending), 0)
            for name in index.included:
                number += 1
                yield (table.object_id, index.index_id, number, column_id(table, name), 0, 0, 0, 1)
        for each in columnstores(table):
            for number, column in enumerate(each.columns, 1):
                yield (table.object_id, each.index_id, number, column, 0, 0, 0, 1)


def _key_constraints(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for index in table.indexes:
            if index.constraint:
                primary = index.constraint == "PRIMARY KEY"
                yield (
                    index.name,
                    index.object_id,
                    table.schema.schema_id,
                    table.object_id,
                    "PK" if primary else "UQ",
                    "PRIMARY_KEY_CONSTRAINT" if primary else "UNIQUE_CONSTRAINT",
                    table.create_date,
                    table.create_date,
                    int(table.is_ms_shipped),
                    index.index_id,
                    int(index.system_named),
                )


def _foreign_keys(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for key in table.foreign_keys:
            target = next((i for i in key.referenced.indexes if _names(i.columns) == set(key.referenced_columns)), None)
            yield (
                key.name,
                key.object_id,
                table.schema.schema_id,
                table.object_id,
                "F ",
                "FOREIGN_KEY_CONSTRAINT",
                table.create_date,
                table.create_date,
                int(table.is_ms_shipped),
                key.referenced.object_id,
                target.index_id if target is not None else None,
                int(not key.enabled),
                int(key.not_for_replication),
                int(key.not_for_replication or not key.trusted),
                *_ACTIONS[key.on_delete],
                *_ACTIONS[key.on_update],
                int(key.system_named),
            )


def _names(columns: tuple[tuple[str, bool], ...]) -> set[str]:
    return {name for name, _ in columns}


def _foreign_key_columns(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for key in table.foreign_keys:
            pairs = zip(key.columns, key.referenced_columns, strict=True)
            for number, (own, other) in enumerate(pairs, 1):
                yield (
                    key.object_id,
                    number,
                    table.object_id,
                    column_id(table, own),
                    key.referenced.object_id,
                    column_id(key.referenced, other),
                )


VIEWS = (
    view(
        "sys.indexes",
        "object_id int, name sysname?, index_id int, type tinyint, type_desc nvarchar(60)?, is_unique bit?, "
        "data_space_id int?, ignore_dup_key bit?, is_primary_key bit?, is_unique_constraint bit?, "
        "fill_factor tinyint = 0, is_padded bit? = 0, is_disabled bit?, is_hypothetical bit?, "
        "is_ignored_in_optimization bit? = 0, allow_row_locks bit? = 1, allow_page_locks bit? = 1, has_filter bit?, "
        "filter_definition nvarchar(max)?, compression_delay int? = NULL, "
        "suppress_dup_key_messages bit? = 0, auto_created bit? = 0, optimize_for_sequential_key bit? = 0",
        _indexes_and_views,
        about="object_id",
    ),
    view(
        "sys.index_columns",
        "object_id int, index_id int, index_column_id int, column_id int, key_ordinal tinyint, "
        "partition_ordinal tinyint, is_descending_key bit?, is_included_column bit?, "
        "column_store_order_ordinal tinyint = 0",
        _index_columns,
        about="object_id",
    ),
    view(
        "sys.key_constraints",
        CONSTRAINT + ", unique_index_id int?, is_system_named bit, is_enforced bit = 1",
        _key_constraints,
        about="parent_object_id",
    ),
    view(
        "sys.foreign_keys",
        CONSTRAINT + ", referenced_object_id int?, key_index_id int?, is_disabled bit, is_not_for_replication bit, "
        "is_not_trusted bit, delete_referential_action tinyint?, delete_referential_action_desc nvarchar(60)?, "
        "update_referential_action tinyint?, update_referential_action_desc nvarchar(60)?, is_system_named bit",
        _foreign_keys,
        about="parent_object_id",
    ),
    view(
        "sys.foreign_key_columns",
        "constraint_object_id int, constraint_column_id int, parent_object_id int, parent_column_id int, "
        "referenced_object_id int, referenced_column_id int",
        _foreign_key_columns,
        about="parent_object_id",
    ),
)
