"""`sp_spaceused` and `sp_helpindex`. Sizes are estimates, because rows are in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, information, procedure, result_set
from mssql_sandbox.catalog.functions.objects import resolve_object
from mssql_sandbox.catalog.views.tables import pages_of
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError

_PAGE_KB = 8
_OBJECT = columns(
    "name nvarchar(128), rows char(20), reserved varchar(18), data varchar(18), index_size varchar(18), "
    "unused varchar(18)"
)
_NAMED = columns("database_name nvarchar(128), database_size varchar(18), unallocated varchar(18)")
_DATABASE = (*_NAMED[:-1], replace(_NAMED[-1], name="unallocated space"))
_TOTALS = columns("reserved varchar(18), data varchar(18), index_size varchar(18), unused varchar(18)")
_INDEXES = columns("index_name sysname, index_description varchar(210), index_keys nvarchar(2078)")
_DATABASE_PAGES = 2048
"""The size of a new database with its log."""


def _table(call: Call, name: str, procedure_name: str) -> Table:
    """The named table; 15009 if it does not exist."""
    found = resolve_object(call.scope, name)
    item = None if found is None else found[0].object_by_id(found[1].object_id)
    if not isinstance(item, Table):
        raise SqlError(
            15009, f"The object '{name}' does not exist in database '{call.scope.database.name}' or is invalid for "
            "this operation.", procedure=procedure_name,
        )  # fmt: skip
    return item


def _room(table: Table) -> tuple[int, int]:
    """Kilobytes of the rows, and of the other indexes."""
    data = pages_of(table.row_count) * _PAGE_KB if table.row_count else 0
    others = sum(not index.clustered and not index.disabled for index in table.indexes)
    return data, (data // 4 // _PAGE_KB + 1) * _PAGE_KB * others if data else 0


def _shown(*kilobytes: int) -> tuple[str, ...]:
    return tuple(f"{number} KB" for number in kilobytes)


async def _space_used(call: Call) -> AsyncIterator[Event]:
    name = call.text("objname")
    if name is not None:
        table = _table(call, name, "sp_spaceused")
        data, indexes = _room(table)
        row = (table.name, str(table.row_count).ljust(20), *_shown(data + indexes, data, indexes, 0))
        for event in result_set(_OBJECT, [row]):
            yield event
        return
    rooms = [_room(table) for table in call.scope.database.tables()]
    data, indexes = sum(room[0] for room in rooms), sum(room[1] for room in rooms)
    size = (data + indexes + _DATABASE_PAGES * _PAGE_KB) / 1024
    for event in result_set(_DATABASE, [(call.scope.database.name, f"{size:.2f} MB", "0.00 MB")]):
        yield event
    for event in result_set(_TOTALS, [_shown(data + indexes, data, indexes, 0)]):
        yield event


async def _help_index(call: Call) -> AsyncIterator[Event]:
    name = call.text("objname") or ""
    table = _table(call, name, "sp_helpindex")
    rows = []
    for index in sorted(table.indexes, key=lambda one: one.name):
        words = ["clustered" if index.clustered else "nonclustered"]
        words += ["unique"] * index.unique
        words += {"PRIMARY KEY": ["primary key"], "UNIQUE": ["unique key"]}.get(index.constraint, [])
        keys = ", ".join(f"{column}(-)" if descending else column for column, descending in index.columns)
        rows.append((index.name, f"{', '.join(words)} located on PRIMARY", keys))
    if not rows:
        yield information(
            f"The object '{name}' does not have any indexes, or you do not have permissions.", number=15472,
            procedure_name="sp_helpindex",
        )  # fmt: skip
        return
    for event in result_set(_INDEXES, rows):
        yield event


PROCEDURES = (
    procedure(
        "sys.sp_spaceused",
        "@objname nvarchar(776) = NULL, @updateusage varchar(5) = 'false', @mode varchar(11) = 'ALL', "
        "@oneresultset bit = 0, @include_total_xtp_storage bit = 0",
        _space_used,
    ),
    procedure("sys.sp_helpindex", "@objname nvarchar(776)", _help_index),
)
