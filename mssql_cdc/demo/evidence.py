"""Counts the changes of the workload that have reached the lake, by kind.

It reads the Delta tables with `lake/read.py` and ignores the workload's own counts, so it sees what any reader sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mssql_cdc.capture.requests import DONE, identity
from mssql_cdc.demo.workload import LARGE_TEXT, MOVED, ROLLED_BACK
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.read import scan
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import SnapshotEnded
from mssql_cdc.schema import TableId

MINIMUM_TRANSACTIONS = 500
TABLES = tuple(
    TableId("shop", schema, name)
    for schema, name in (
        ("dbo", "customers"), ("dbo", "products"), ("sales", "orders"), ("sales", "order_lines"),
        ("sales", "payments"), ("dbo", "documents"), ("dbo", "measurements"), ("dbo", "audit_log"),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One expected fact: how often it was found, and the minimum `wanted` number (0: it must not occur)."""

    what: str
    found: int
    wanted: int

    @property
    def ok(self) -> bool:
        """Whether it was found often enough; with a `wanted` of 0, whether it was not found at all."""
        return self.found >= self.wanted if self.wanted else self.found == 0


def findings(layout: Layout) -> list[Finding]:
    """Return the findings for everything that the demo must capture into the lake."""
    products = list(_rows(layout, "dbo", "products", "op", "before", "after", "source"))
    orders = list(_rows(layout, "sales", "orders", "op", "before", "after", "source"))
    lines = list(_rows(layout, "sales", "order_lines", "op", "source"))
    customers = {row["_schema"] for row in _rows(layout, "dbo", "customers", "_schema")}
    documents = _rows(layout, "dbo", "documents", "op", "after")
    signals = small_table(layout, "signals").rows()
    transactions: set[str] = set()
    for table in TABLES:
        transactions |= _commits(_rows(layout, table.schema, table.name, "op", "source"))
    key_changes = _commits(r for r in products if _is(r, "c", lambda row: row["sku"].startswith(MOVED)))
    moved_away = _commits(r for r in products if r["op"] == "d")
    return [
        Finding("transactions", len(transactions), MINIMUM_TRANSACTIONS),
        Finding("transactions across several tables", len(_commits(orders) & _commits(lines)), 1),
        Finding("primary key changes", len(key_changes & moved_away), 1),
        Finding("deletes", sum(row["op"] == "d" for row in lines), 1),
        Finding(
            "large texts", sum(_is(r, "c", lambda row: len(row["body"] or "") >= LARGE_TEXT) for r in documents), 1
        ),
        Finding("values set to NULL", sum(_nulled(row) for row in orders), 1),
        Finding(
            "rolled-back rows", sum(_is(r, "c", lambda row: row["sku"].startswith(ROLLED_BACK)) for r in products), 0
        ),
        Finding("capture instances of customers", len(customers), 2),
        Finding("change events that are there twice", sum(_doubled(layout, table) for table in TABLES), 0),
        Finding("log signals", sum(row["type"] == "log" and row["status"] == DONE for row in signals), 1),
        Finding("snapshots that a signal asked for", len(_snapshots_asked_for(layout, signals)), 1),
    ]


def _doubled(layout: Layout, table: TableId) -> int:
    positions = Counter(
        row["_pos"] for row in _rows(layout, table.schema, table.name, "op", "_pos") if row["op"] != "r"
    )
    return sum(count - 1 for count in positions.values())


def _snapshots_asked_for(layout: Layout, signals: Sequence[Mapping[str, Any]]) -> set[str]:
    """The signals whose snapshots have ended."""
    steps = (row.facts for row in load_offsets(layout).noted)
    ended = {one.signal for one in steps if isinstance(one, SnapshotEnded) and one.signal}
    return ended & {identity(row) for row in signals if row["type"] == "execute-snapshot"}


def _rows(layout: Layout, schema: str, name: str, *columns: str) -> Iterator[dict[str, Any]]:
    uri = layout.home(TableId("shop", schema, name)).changes
    if Path(uri, "_delta_log").is_dir():
        for batch in scan(uri, columns=columns):
            yield from batch.to_pylist()


def _commits(rows: Iterator[dict[str, Any]] | list[dict[str, Any]] | Any) -> set[str]:
    return {row["source"]["commit_lsn"] for row in rows if row["op"] != "r"}


def _is(row: dict[str, Any], op: str, condition: Callable[[dict[str, Any]], bool]) -> bool:
    return row["op"] == op and condition(row["after"])


def _nulled(row: dict[str, Any]) -> bool:
    return row["op"] == "u" and row["before"]["note"] is not None and row["after"]["note"] is None
