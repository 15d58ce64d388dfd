"""The live table: per source table the rows in the source, in the change log, in the current table, and the lag."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyodbc
from deltalake import DeltaTable

from mssql_cdc.demo.evidence import TABLES
from mssql_cdc.lake.layout import Layout

COUNT_ROWS = """
SELECT CONCAT(s.name, '.', t.name), SUM(p.rows)
FROM sys.tables t JOIN sys.schemas s ON s.schema_id = t.schema_id JOIN sys.partitions p ON p.object_id = t.object_id
WHERE p.index_id IN (0, 1) AND s.name IN ('dbo', 'sales') GROUP BY s.name, t.name
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One table's numbers; None while a Delta table does not exist (keyless tables never get a current one)."""

    table: str
    source_rows: int
    events: int | None
    current_rows: int | None
    lag: float | None


def lines(connection: pyodbc.Connection, layout: Layout) -> list[Line]:
    """The numbers as they are now, in the order of `TABLES`."""
    counts = {name: int(rows) for name, rows in connection.execute(COUNT_ROWS).fetchall()}
    found = []
    for table in TABLES:
        home = layout.home(table)
        name = f"{table.schema}.{table.name}"
        events = row_count(home.changes)
        found.append(Line(name, counts.get(name, 0), events, row_count(home.current), _lag(home.changes)))
    return found


def row_count(uri: str) -> int | None:
    """Rows of a Delta table by its log alone: what the files hold less what deletion vectors hide."""
    if not DeltaTable.is_deltatable(uri):
        return None
    actions = pa.table(DeltaTable(uri).get_add_actions(flatten=True))
    rows = pc.sum(actions.column("num_records")).as_py() or 0
    hidden = [name for name in actions.column_names if name == "deletion_vector.cardinality"]
    return rows - sum(pc.sum(actions.column(name)).as_py() or 0 for name in hidden)


def _lag(uri: str) -> float | None:
    """Seconds since the log's last commit: how old the newest thing is that a reader can see."""
    if not DeltaTable.is_deltatable(uri):
        return None
    newest = DeltaTable(uri, without_files=True).history(1)[0]["timestamp"]
    return max(0.0, dt.datetime.now(dt.UTC).timestamp() - newest / 1000)


def render(found: Sequence[Line], *, note: str = "") -> str:
    """The numbers as text, one line a table."""
    rows = [("table", "source rows", "events", "current rows", "last commit")]
    rows += [
        (line.table, _number(line.source_rows), _number(line.events), _number(line.current_rows), _age(line.lag))
        for line in found
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    text = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([*text, note] if note else text)


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _age(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.0f} s ago"


@dataclass
class Screen:
    """Prints a text over the one before on a terminal, below it elsewhere."""

    out: TextIO = sys.stdout
    _height: int = 0

    def show(self, text: str) -> None:
        """Shows the text."""
        if self.out.isatty() and self._height:
            self.out.write(f"\x1b[{self._height}A\x1b[J")
        self.out.write(text + "\n")
        self.out.flush()
        self._height = text.count("\n") + 1
