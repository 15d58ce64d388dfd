"""The live table: for each source table, the rows in the source, change log and current table, and the lags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyodbc
from rich.table import Table

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.lag import Lag
from mssql_cdc.cli.output import plain, table
from mssql_cdc.cli.status import lag_cell
from mssql_cdc.demo.evidence import TABLES
from mssql_cdc.errors import SourceUnavailableError
from mssql_cdc.lake.read import row_count
from mssql_cdc.run.status import read_lags
from mssql_cdc.schema import TableId

COUNT_ROWS = """
SELECT CONCAT(s.name, '.', t.name), SUM(p.rows)
FROM sys.tables t JOIN sys.schemas s ON s.schema_id = t.schema_id JOIN sys.partitions p ON p.object_id = t.object_id
WHERE p.index_id IN (0, 1) AND s.name IN ('dbo', 'sales') GROUP BY s.name, t.name
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One table's numbers; None while a Delta table does not exist (tables without a key have no current table)."""

    table: str
    source_rows: int
    events: int | None
    current_rows: int | None
    lag: Lag


def lines(
    connection: pyodbc.Connection, database: Database, *, lags: Mapping[TableId, Lag] | None = None
) -> list[Line]:
    """Return the current numbers, in the order of `TABLES`.

    Args:
        connection: A connection to the source.
        database: The database.
        lags: The lags, if they are known; None: they are read.
    """
    counts = {name: int(rows) for name, rows in connection.execute(COUNT_ROWS).fetchall()}
    if lags is None:
        lags = {}
        with suppress(SourceUnavailableError):  # A busy machine: the lags are unknown for a moment.
            lags = read_lags(database)
    return [
        Line(
            (name := f"{one.schema}.{one.name}"),
            counts.get(name, 0),
            row_count(database.layout.home(one).changes),
            row_count(database.layout.home(one).current),
            lags.get(one, Lag()),
        )
        for one in TABLES
    ]


def render(found: Sequence[Line], *, note: str = "") -> str:
    """Render the numbers as text, one line per table."""
    text = plain(as_table(found))
    return f"{text}\n{note}" if note else text


def as_table(found: Sequence[Line]) -> Table:
    """Return the numbers as a table."""
    columns = ("table", "source rows", "events", "current rows", "log lag", "current lag")
    rows = [
        (
            line.table,
            f"{line.source_rows:,}",
            _number(line.events),
            _number(line.current_rows),
            lag_cell(line.lag.log),
            lag_cell(line.lag.current),
        )
        for line in found
    ]
    return table(columns, rows, right=columns[1:])


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
