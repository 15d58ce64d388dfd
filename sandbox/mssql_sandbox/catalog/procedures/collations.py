"""`sp_tablecollations` and its variants, which bulk copies (SqlBulkCopy, mssql-python, bcp) call before sending rows.

Not documented by Microsoft; columns and use follow the sources of the clients and traces of the server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.catalog.functions.objects import resolve_object
from mssql_sandbox.catalog.relations import columns_of
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.tds.collations import collation_bytes

_COLLATIONS = columns("colid int, name sysname?, tds_collation binary(5)?, collation sysname?")


async def _table_collations(call: Call) -> AsyncIterator[Event]:
    """One row for each column in their order; columns without a collation have NULL twice."""
    rows = []
    for number, column in enumerate(_columns(call), 1):
        collation = column.type.collation
        known = (None, None) if collation is None else (collation_bytes(collation), collation.name)
        rows.append((column.column_id if isinstance(column, Column) else number, column.name, *known))
    for event in result_set(_COLLATIONS, rows):
        yield event


def _columns(call: Call) -> Sequence[Column | ResultColumn]:
    found = resolve_object(call.scope, call.text("object"))
    if found is None:
        return ()
    database, row = found
    item = database.object_by_id(row.object_id)
    return () if item is None else columns_of(call.scope.session, database, item)


PROCEDURES = tuple(
    procedure(f"sys.sp_tablecollations{version}", "@object nvarchar(4000)", _table_collations)
    for version in ("", "_90", "_100")
)
