"""System views and system table functions, by family."""

from mssql_cdc.sandbox.catalog.views import (
    columns,
    compatibility,
    databases,
    information_schema,
    keys,
    recovery,
    security,
    server,
    sessions,
    spaces,
    system,
    tables,
    transactions,
)

_VIEWS = (
    *columns.VIEWS,
    *compatibility.VIEWS,
    *databases.VIEWS,
    *information_schema.VIEWS,
    *keys.VIEWS,
    *recovery.VIEWS,
    *security.VIEWS,
    *server.VIEWS,
    *sessions.VIEWS,
    *spaces.VIEWS,
    *tables.VIEWS,
    *transactions.VIEWS,
)
VIEWS = (*_VIEWS, system.listing(_VIEWS))
TABLE_FUNCTIONS = {item.name.casefold(): item for item in (*server.TABLE_FUNCTIONS, *tables.TABLE_FUNCTIONS)}
