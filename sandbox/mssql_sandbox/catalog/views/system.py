"""The catalogue's own views as objects: `sys.system_views`, `_objects`, `_columns`, and the `sys.all_…` views.

System procedures and functions are not among the objects.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from mssql_sandbox.catalog.definitions import Scope, SystemView, view
from mssql_sandbox.catalog.names import all_objects
from mssql_sandbox.catalog.views.columns import COLUMN, shown_column, user_columns
from mssql_sandbox.catalog.views.tables import OBJECT, user_objects
from mssql_sandbox.engine.product import exists

_SCHEMAS = {"sys": 4, "information_schema": 3}
_RELEASED = 44_840 * 25_920_000  # 2022-10-08, as datetime: when the version was built
_VIEW = (
    "name sysname, object_id int, principal_id int? = NULL, schema_id int, parent_object_id int = 0, "
    "type char(2)? = 'V ', type_desc nvarchar(60)? = 'VIEW', create_date datetime, modify_date datetime, "
    "is_ms_shipped bit, is_published bit = 0, is_schema_published bit = 0, is_replicated bit? = 0, "
    "has_replication_filter bit? = 0, has_opaque_metadata bit = 0, has_unchecked_assembly_data bit = 0, "
    "with_check_option bit = 0, is_date_correlation_view bit = 0"
)
_Rows = Callable[[Scope], Iterable[tuple]]


def listing(others: Sequence[SystemView]) -> tuple[SystemView, ...]:
    """The system views, including these; their ids are negative and stable."""
    shown: list[SystemView] = []

    def there(scope: Scope) -> Iterator[SystemView]:
        return (item for item in shown if exists(scope.server.version, _path(item)))

    def views(scope: Scope) -> Iterator[tuple]:
        for item in there(scope):
            yield (item.name, _number(item), _schema(item), _RELEASED, _RELEASED, 1)

    def objects(scope: Scope) -> Iterator[tuple]:
        for item in there(scope):
            yield (item.name, _number(item), _schema(item), 0, "V ", "VIEW", _RELEASED, _RELEASED, 1)

    def columns(scope: Scope) -> Iterator[tuple]:
        version = scope.server.version
        for item in there(scope):
            number = _number(item)
            if scope.object_id in (None, number):
                known = (column for column in item.columns if exists(version, f"{_path(item)}.{column.name.lower()}"))
                for place, column in enumerate(known, 1):
                    yield shown_column(scope.database, number, column, place)

    own = (
        view("sys.system_views", _VIEW, views),
        view("sys.all_views", _VIEW + ", is_tracked_by_cdc bit? = 0", _both(views, _user_views)),
        view("sys.system_objects", OBJECT, objects),
        view("sys.all_objects", OBJECT, _both(user_objects, objects)),
        view("sys.system_columns", COLUMN, columns, about="object_id"),
        view("sys.all_columns", COLUMN, _both(user_columns, columns), about="object_id"),
    )
    listed = [item for item in (*others, *own) if item.schema.casefold() in _SCHEMAS]
    shown.extend(sorted(listed, key=lambda item: (item.schema, item.name)))
    return own


def _both(first: _Rows, second: _Rows) -> _Rows:
    return lambda scope: chain(first(scope), second(scope))


def _user_views(scope: Scope) -> Iterator[tuple]:
    for row in all_objects(scope.database):
        if row.type_code == "V":
            dates = (row.create_date, row.modify_date)
            yield (row.name, row.object_id, row.schema.schema_id, *dates, int(row.is_ms_shipped))


def _schema(item: SystemView) -> int:
    return _SCHEMAS[item.schema.casefold()]


def _path(item: SystemView) -> str:
    return f"{item.schema}.{item.name}".lower()


def _number(item: SystemView) -> int:
    return -(zlib.crc32(f"{item.schema}.{item.name}".encode()) & 0x3FFFFFFF) - 1
