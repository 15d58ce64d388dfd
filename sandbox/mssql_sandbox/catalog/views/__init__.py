"""System views and system table functions, by family."""

from mssql_sandbox.catalog.views import (
    availability,
    columns,
    compatibility,
    databases,
    documents,
    information_schema,
    keys,
    messages,
    recovery,
    routines,
    security,
    server,
    sessions,
    small_objects,
    spaces,
    statistics,
    system,
    tables,
    transactions,
    triggers,
    usage,
)

_VIEWS = (
    *availability.VIEWS,
    *columns.VIEWS,
    *compatibility.VIEWS,
    *databases.VIEWS,
    *documents.VIEWS,
    *information_schema.VIEWS,
    *keys.VIEWS,
    *messages.VIEWS,
    *recovery.VIEWS,
    *routines.VIEWS,
    *security.VIEWS,
    *server.VIEWS,
    *sessions.VIEWS,
    *small_objects.VIEWS,
    *spaces.VIEWS,
    *statistics.VIEWS,
    *tables.VIEWS,
    *transactions.VIEWS,
    *triggers.VIEWS,
    *usage.VIEWS,
)
VIEWS = (*_VIEWS, *system.listing(_VIEWS))
_TABLE_FUNCTIONS = (*server.TABLE_FUNCTIONS, *tables.TABLE_FUNCTIONS)
TABLE_FUNCTIONS = {item.name.casefold(): item for item in _TABLE_FUNCTIONS}
