"""Stored procedures of the catalogue, by family."""

from mssql_sandbox.catalog.procedures import (
    collations,
    describe,
    keys,
    modules,
    privileges,
    server,
    spaces,
    tables,
    types,
)

PROCEDURES = (
    *collations.PROCEDURES,
    *describe.PROCEDURES,
    *keys.PROCEDURES,
    *modules.PROCEDURES,
    *privileges.PROCEDURES,
    *server.PROCEDURES,
    *spaces.PROCEDURES,
    *tables.PROCEDURES,
    *types.PROCEDURES,
)
