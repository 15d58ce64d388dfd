"""`sys.triggers` and `sys.trigger_events` [doc]: triggers of tables and views, and the DDL trigger of capture [pub]."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.engine.storage.objects import SchemaObject

_EVENTS = {"insert": (1, "INSERT"), "update": (2, "UPDATE"), "delete": (3, "DELETE")}


def _of_tables(scope: Scope) -> Iterator[SchemaObject]:
    for item in scope.database.objects():
        if item.type_code == "TR":
            yield item


def _triggers(scope: Scope) -> Iterator[tuple]:
    for item in _of_tables(scope):
        place = (1, "OBJECT_OR_COLUMN", item.parent_object_id, item.create_date, item.modify_date)
        node = item.definition.node
        flags = (item.is_ms_shipped, item.definition.disabled, "NOT FOR REPLICATION" in node.options,
                 node.timing == "instead of")  # fmt: skip
        yield (item.name, item.object_id, *place, *map(int, flags))
    capture = scope.server.catalog.cdc.capture(scope.database)
    if capture is not None:
        object_id, created = capture.ddl_trigger
        yield ("tr_MScdc_ddl_event", object_id, 0, "DATABASE", 0, created, created, 1, 0, 0, 0)


def _events(scope: Scope) -> Iterator[tuple]:
    for item in _of_tables(scope):
        for event in sorted(item.definition.events, key=lambda name: _EVENTS[name.lower()]):
            yield (item.object_id, *_EVENTS[event.lower()])


VIEWS = (
    view(
        "sys.triggers",
        "name sysname, object_id int, parent_class tinyint, parent_class_desc nvarchar(60)?, "
        "parent_id int, type char(2) = 'TR', type_desc nvarchar(60)? = 'SQL_TRIGGER', create_date datetime, "
        "modify_date datetime, is_ms_shipped bit, is_disabled bit, is_not_for_replication bit, "
        "is_instead_of_trigger bit",
        _triggers,
    ),
    view(
        "sys.trigger_events",
        "object_id int, type int, type_desc nvarchar(60)?, is_first bit? = 0, is_last bit? = 0, "
        "event_group_type int? = NULL, event_group_type_desc nvarchar(60)? = NULL, is_trigger_event bit? = 1",
        _events,
    ),
)
