"""`sys.system_views` and `sys.all_views`: the catalogue's own views, and those of the database too."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from mssql_cdc.sandbox.catalog.definitions import Scope, SystemView, view
from mssql_cdc.sandbox.catalog.names import all_objects

_SCHEMAS = {"sys": 4, "information_schema": 3}
_RELEASED = 44_840 * 25_920_000  # 2022-10-08, as datetime: when the version was built
_COLUMNS = (
    "name sysname, object_id int, principal_id int? = NULL, schema_id int, parent_object_id int = 0, "
    "type char(2)? = 'V ', type_desc nvarchar(60)? = 'VIEW', create_date datetime, modify_date datetime, "
    "is_ms_shipped bit, is_published bit = 0, is_schema_published bit = 0, is_replicated bit? = 0, "
    "has_replication_filter bit? = 0, has_opaque_metadata bit = 0, has_unchecked_assembly_data bit = 0, "
    "with_check_option bit = 0, is_date_correlation_view bit = 0"
)


def listing(others: Sequence[SystemView]) -> tuple[SystemView, SystemView]:
    """The two views, over themselves and all others; ids are below zero and lasting."""

    def rows(_scope: Scope) -> Iterator[tuple]:
        yield from known

    def with_own(scope: Scope) -> Iterator[tuple]:
        yield from known
        for row in all_objects(scope.database):
            if row.type_code == "V":
                dates = (row.create_date, row.modify_date)
                yield (row.name, row.object_id, row.schema.schema_id, *dates, int(row.is_ms_shipped))

    both = (
        view("sys.system_views", _COLUMNS, rows),
        view("sys.all_views", _COLUMNS + ", is_tracked_by_cdc bit? = 0", with_own),
    )
    shown = sorted((*others, *both), key=lambda item: (item.schema, item.name))
    known = [
        (item.name, _number(item), _SCHEMAS[item.schema.casefold()], _RELEASED, _RELEASED, 1)
        for item in shown
        if item.schema.casefold() in _SCHEMAS
    ]
    return both


def _number(item: SystemView) -> int:
    return -(zlib.crc32(f"{item.schema}.{item.name}".encode()) & 0x3FFFFFFF) - 1
