"""`sys.stats` and `sys.stats_columns` [doc]: one statistics object per index; queries create none."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view


def _stats(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for index in table.indexes:
            text = index.predicate_text or None
            yield (table.object_id, index.name, index.index_id, int(text is not None), text)


def _columns(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for index in table.indexes:
            for number, (name, _) in enumerate(index.columns, 1):
                column = table.column(name)
                if column is not None:
                    yield (table.object_id, index.index_id, number, column.column_id)


VIEWS = (
    view(
        "sys.stats",
        "object_id int, name nvarchar(128)?, stats_id int, auto_created bit? = 0, user_created bit? = 0, "
        "no_recompute bit? = 0, has_filter bit?, filter_definition nvarchar(max)?, is_temporary bit? = 0, "
        "is_incremental bit? = 0, has_persisted_sample bit? = 0, stats_generation_method int = 0, "
        "stats_generation_method_desc varchar(80) = 'Sort based statistics', auto_drop bit? = 0",
        _stats,
        about="object_id",
    ),
    view(
        "sys.stats_columns",
        "object_id int, stats_id int, stats_column_id int?, column_id int?",
        _columns,
        about="object_id",
    ),
)
