"""Stored procedures of the catalogue, by family."""

from mssql_cdc.sandbox.catalog.procedures import describe, keys, modules, privileges, server, tables, types

PROCEDURES = (
    *describe.PROCEDURES,
    *keys.PROCEDURES,
    *modules.PROCEDURES,
    *privileges.PROCEDURES,
    *server.PROCEDURES,
    *tables.PROCEDURES,
    *types.PROCEDURES,
)
