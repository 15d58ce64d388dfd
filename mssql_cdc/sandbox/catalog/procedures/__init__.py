"""Stored procedures of the catalogue, by family."""

from mssql_cdc.sandbox.catalog.procedures import describe, keys, modules, server, tables, types

PROCEDURES = (
    *describe.PROCEDURES,
    *keys.PROCEDURES,
    *modules.PROCEDURES,
    *server.PROCEDURES,
    *tables.PROCEDURES,
    *types.PROCEDURES,
)
