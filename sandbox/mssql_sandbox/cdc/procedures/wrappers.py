"""`sys.sp_cdc_generate_wrapper_function`: scripts, one row per function, that the caller runs [doc]."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.cdc.functions import may_see
from mssql_sandbox.cdc.instances import CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.names import equal_names, split_column_list
from mssql_sandbox.cdc.procedures.common import require_capture
from mssql_sandbox.cdc.wrapper_scripts import Wrapper, WrapperColumn
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.types import declaration

_NAME = "sp_cdc_generate_wrapper_function"
_SCRIPTS = columns("function_name nvarchar(145)?, create_script nvarchar(max)?")


async def _generate(call: Call) -> AsyncIterator[Event]:
    capture = require_capture(call, procedure=_NAME)
    instances = _instances(call, capture)
    closed = call.number("closed_high_end_point") != 0
    rows = []
    for instance in instances:
        wrapper = Wrapper(instance.name, _columns(call, instance), _flags(call, instance), closed)
        kinds = (False, True) if instance.supports_net_changes else (False,)
        rows.extend(wrapper.script(net=net) for net in kinds)
    for event in result_set(_SCRIPTS, rows):
        yield event


def _instances(call: Call, capture: DatabaseCapture) -> list[CaptureInstance]:
    """The named instance, or all instances that the caller may see."""
    name = call.text("capture_instance")
    if not name:
        if call.text("column_list") or call.text("update_flag_list"):
            raise cdc_error(22921, procedure=_NAME)
        return [instance for instance in capture.instances.values() if may_see(call.scope, instance)]
    instance = capture.named(name)
    if instance is None or not may_see(call.scope, instance):
        raise cdc_error(22920, name, capture.database.name, procedure=_NAME)
    return [instance]


def _listed(call: Call, instance: CaptureInstance, parameter: str, number: int) -> list[str] | None:
    """The captured columns that a parameter names, None without one; error `number` for an unknown name."""
    text = call.text(parameter)
    if not text:
        return None
    found: list[str] = []
    for name in split_column_list(text, procedure=_NAME):
        captured = next((column.name for column in instance.columns if equal_names(column.name, name)), None)
        if captured is None:
            raise cdc_error(number, instance.change_table.name, procedure=_NAME)
        found.append(captured)
    return found


def _columns(call: Call, instance: CaptureInstance) -> list[WrapperColumn]:
    wanted = _listed(call, instance, "column_list", 22918) or [column.name for column in instance.columns]
    types = {column.name: column.type for column in instance.change_table.columns}
    return [WrapperColumn(name, declaration(types[name])) for name in wanted]


def _flags(call: Call, instance: CaptureInstance) -> list[str]:
    return _listed(call, instance, "update_flag_list", 22919) or []


PROCEDURES = (
    procedure(
        f"sys.{_NAME}",
        "@capture_instance sysname = NULL, @closed_high_end_point bit = 1, @column_list nvarchar(max) = NULL, "
        "@update_flag_list nvarchar(max) = NULL",
        _generate,
    ),
)
