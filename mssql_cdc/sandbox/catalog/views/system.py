"""Views that list the catalogue's own views."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache

from mssql_cdc.sandbox.catalog.definitions import Scope, SystemView, view

_SYS, _INFORMATION_SCHEMA = 4, 3
_RELEASED = 44_840 * 25_920_000  # 2022-10-08, as datetime: when the version was built


@cache
def _system_views() -> tuple[tuple[str, int, int], ...]:
    """(name, object id, schema id) of the views of sys and INFORMATION_SCHEMA; ids are below zero and lasting."""
    from mssql_cdc.sandbox.catalog.registry_views import all_views

    schemas = {"sys": _SYS, "information_schema": _INFORMATION_SCHEMA}
    found: list[SystemView] = [item for item in all_views() if item.schema.casefold() in schemas]
    return tuple(
        (item.name, _number(item), schemas[item.schema.casefold()])
        for item in sorted(found, key=lambda item: (item.schema, item.name))
    )


def _number(item: SystemView) -> int:
    return -(zlib.crc32(f"{item.schema}.{item.name}".encode()) & 0x3FFFFFFF) - 1


def _rows(_scope: Scope) -> Iterator[tuple]:
    for name, number, schema in _system_views():
        yield (name, number, schema, _RELEASED, _RELEASED)


VIEWS = (
    view(
        "sys.system_views",
        "name sysname, object_id int, principal_id int? = NULL, schema_id int, parent_object_id int = 0, "
        "type char(2)? = 'V ', type_desc nvarchar(60)? = 'VIEW', create_date datetime, modify_date datetime, "
        "is_ms_shipped bit = 1, is_published bit = 0, is_schema_published bit = 0, is_replicated bit? = 0, "
        "has_replication_filter bit? = 0, has_opaque_metadata bit = 0, has_unchecked_assembly_data bit = 0, "
        "with_check_option bit = 0, is_date_correlation_view bit = 0",
        _rows,
    ),
)
