"""The live table: for each source table, the rows in the source, change log and current table, and the lag."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

import pyodbc
from rich.console import Group
from rich.live import Live
from rich.table import Table

from mssql_cdc.cli.output import console, is_terminal, plain, table
from mssql_cdc.demo.evidence import TABLES
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offsets import Offsets, load_offsets
from mssql_cdc.lake.read import row_count
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId

COUNT_ROWS = """
SELECT CONCAT(s.name, '.', t.name), SUM(p.rows)
FROM sys.tables t JOIN sys.schemas s ON s.schema_id = t.schema_id JOIN sys.partitions p ON p.object_id = t.object_id
WHERE p.index_id IN (0, 1) AND s.name IN ('dbo', 'sales') GROUP BY s.name, t.name
"""

NEWEST_INSTANCE = """
SELECT TOP (1) capture_instance FROM cdc.change_tables WHERE source_object_id = OBJECT_ID(?) ORDER BY create_date DESC
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One table's numbers; None while a Delta table does not exist (tables without a key have no current table).

    `lag`: the age in seconds of the oldest captured change that the change log does not contain yet; 0 if there is
    none, None before the table streams.
    """

    table: str
    source_rows: int
    events: int | None
    current_rows: int | None
    lag: float | None


def lines(connection: pyodbc.Connection, layout: Layout) -> list[Line]:
    """Return the current numbers, in the order of `TABLES`."""
    counts = {name: int(rows) for name, rows in connection.execute(COUNT_ROWS).fetchall()}
    offsets = load_offsets(layout)
    return [
        Line(
            (name := f"{one.schema}.{one.name}"),
            counts.get(name, 0),
            row_count(layout.home(one).changes),
            row_count(layout.home(one).current),
            lag(connection, one, offsets),
        )
        for one in TABLES
    ]


def lag(connection: pyodbc.Connection, table_id: TableId, offsets: Offsets) -> float | None:
    """Return how many seconds the change log lags behind the change table (`Line.lag`).

    Args:
        connection: To the source.
        table_id: The table.
        offsets: The lake's offsets.
    """
    entry = offsets.entry(table_id.text)
    if entry is None or entry.status != "streaming" or entry.to is None:
        return None
    instance = connection.execute(NEWEST_INSTANCE, f"{table_id.schema}.{table_id.name}").fetchval()
    first_missing = connection.execute(
        "SELECT DATEDIFF_BIG(millisecond, sys.fn_cdc_map_lsn_to_time(MIN(__$start_lsn)), GETDATE()) / 1000.0 "
        f"FROM cdc.[{instance}_CT] WHERE __$start_lsn > ?",
        Lsn.parse(entry.to).raw,
    ).fetchval()
    return max(0.0, float(first_missing)) if first_missing is not None else 0.0


def render(found: Sequence[Line], *, note: str = "") -> str:
    """Render the numbers as text, one line per table."""
    text = plain(_table(found))
    return f"{text}\n{note}" if note else text


@contextmanager
def screen(out: TextIO) -> Generator[Callable[[Sequence[Line], str], None]]:
    """Show numbers and a note: a terminal overwrites the previous ones, other outputs append."""
    if not is_terminal(out):
        yield lambda found, note: print(render(found, note=note), file=out, flush=True)
        return
    with Live(console=console(out), auto_refresh=False) as live:
        yield lambda found, note: live.update(Group(_table(found), note), refresh=True)


def _table(found: Sequence[Line]) -> Table:
    columns = ("table", "source rows", "events", "current rows", "lag")
    rows = [
        (line.table, _number(line.source_rows), _number(line.events), _number(line.current_rows), _seconds(line.lag))
        for line in found
    ]
    return table(columns, rows, right=columns[1:])


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} s"
