"""`sys.dm_exec_describe_first_result_set` and its variant for an object [doc].

They return the result of the procedure as a table. Text that cannot be described gives one row with the error.
"""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.columns import column_type, columns
from mssql_sandbox.catalog.definitions import Scope, SystemTableFunction
from mssql_sandbox.catalog.first_result import result_columns
from mssql_sandbox.catalog.procedures.describe import FIRST, result_row
from mssql_sandbox.errors import SqlError

_SHARED = next(place for place, column in enumerate(FIRST) if column.name == "ordinal_in_order_by_list")
_COLUMNS = FIRST[:_SHARED] + columns(
    "ordinal_in_order_by_list smallint?, order_by_list_length smallint?, order_by_is_descending smallint?, "
    "error_number int?, error_severity int?, error_state int?, error_message nvarchar(4000)?, error_type int?, "
    "error_type_desc nvarchar(60)?"
)
_SYNTAX = 15
_TYPES = {11514: (4, "DYNAMIC_SQL"), 11526: (10, "TEMPORARY_TABLE")}
_NOTHING = (None,) * 3
_NO_ERROR = (None,) * 6


def _failed(failure: SqlError) -> tuple:
    kind = (2, "SYNTAX") if failure.severity == _SYNTAX else _TYPES.get(failure.number, (1, "MISC"))
    told = (failure.number, failure.severity, failure.state, failure.message)
    return (None, 0, *(None,) * (_SHARED - 2), *_NOTHING, *told, *kind)


def _rows(scope: Scope, text: str, declared: str, *, browse: bool) -> Iterator[list[tuple]]:
    try:
        found = result_columns(scope.session, text, declared)
    except SqlError as failure:
        yield [_failed(failure)]
        return
    shown = (result_row(ordinal, column, browse=browse) for ordinal, column in enumerate(found, 1))
    yield [(*row[:_SHARED], *_NOTHING, *_NO_ERROR) for row in shown]


def _of_text(scope: Scope, text: str | None, declared: str | None, mode: int | None) -> Iterator[list[tuple]]:
    yield from _rows(scope, text or "", declared or "", browse=bool(mode))


def _of_object(scope: Scope, object_id: int | None, mode: int | None) -> Iterator[list[tuple]]:
    item = scope.database.object_by_id(object_id) if object_id is not None else None
    if item is not None and item.type_code == "P":
        quoted = ".".join(f"[{name.replace(']', ']]')}]" for name in (item.schema.name, item.name))
        yield from _rows(scope, f"EXEC {quoted}", "", browse=bool(mode))


def _function(name: str, arguments: str, rows: object) -> SystemTableFunction:
    types = tuple(column_type(text) for text in arguments.split(";"))
    return SystemTableFunction(name, _COLUMNS, types, rows)  # type: ignore[arg-type]


TABLE_FUNCTIONS = {
    "dm_exec_describe_first_result_set": _function(
        "dm_exec_describe_first_result_set", "nvarchar(max);nvarchar(max);tinyint", _of_text
    ),
    "dm_exec_describe_first_result_set_for_object": _function(
        "dm_exec_describe_first_result_set_for_object", "int;tinyint", _of_object
    ),
}
