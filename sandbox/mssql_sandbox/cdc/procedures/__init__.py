"""The stored procedures of change data capture, by family."""

from mssql_sandbox.cdc.procedures import (
    databases,
    jobs,
    log_reader,
    maintenance,
    reports,
    scanning,
    tables,
    wrappers,
)

PROCEDURES = (
    *databases.PROCEDURES,
    *tables.PROCEDURES,
    *jobs.PROCEDURES,
    *log_reader.PROCEDURES,
    *maintenance.PROCEDURES,
    *reports.PROCEDURES,
    *scanning.PROCEDURES,
    *wrappers.PROCEDURES,
)
