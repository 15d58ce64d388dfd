"""System views and system table functions, by family."""

from mssql_cdc.sandbox.catalog.views import (
    columns,
    information_schema,
    keys,
    recovery,
    security,
    server,
    sessions,
    tables,
    transactions,
    system,
)

VIEWS = (
    *columns.VIEWS,
    *information_schema.VIEWS,
    *keys.VIEWS,
    *recovery.VIEWS,
    *security.VIEWS,
    *server.VIEWS,
    *sessions.VIEWS,
    *tables.VIEWS,
    *transactions.VIEWS,
)
TABLE_FUNCTIONS = {item.name.casefold(): item for item in server.TABLE_FUNCTIONS}
    *system.VIEWS,
