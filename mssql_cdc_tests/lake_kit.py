"""Small tables, neutral changes and commits for the tests of `events`, `lake` and `spark`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import Schema

from mssql_cdc.events import to_change_log
from mssql_cdc.lake import current
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.layout import Layout, TableHome
from mssql_cdc.lake.log import TableState, commit, create_table, load_state
from mssql_cdc.lake.properties import CHANGE_LOG_PROPERTIES, CHANGE_LOG_STATS
from mssql_cdc.lake.table_log import load_log
from mssql_cdc.lsn import Lsn, Position, snapshot_position_text
from mssql_cdc.schema import Column, SqlServerType, TableId, TableSchema, change_log_schema, neutral_schema

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ORDERS = TableId("shop", "dbo", "orders")

NAMES = {
    "letters": "üñßéÅ",
    "scripts": "日本ไทยहिन्दीالعربيةЖ",
    "marks": "e\u0301",
    "emoji": "🙂",
    "shell": "a$b&c!d~e`f'g;h|i",
    "uri": "50%41 #1?x=y+z",
    "slashes": "a/b\\c",
    "patterns": "a*b[c]d{e}f<g>",
    "quotes": '"a"',
    "separators": "a:b,c@d^e(f)",
    "controls": "a\tb\nc\x00d",
    "invisible": "a\u200cb\u00a0c",
    "blanks": " a b ",
    "dots": ".a.b.",
    "parent": "..",
    "hidden": "_a",
    "device": "CON",
    "device with a suffix": "aux.txt",
    "looks escaped": "a_x0024_b",
    "long": "x" * 128,
    "long in bytes": "日" * 128,
    "long when escaped": "$" * 128,
}
"""One name for each class of characters."""


def column(name: str, kind: str, **more: Any) -> Column:
    """A column of the SQL Server type `kind`; `length`, `precision` and `scale` are those of the type."""
    of_type = {n: more.pop(n) for n in ("length", "precision", "scale", "collation") if n in more}
    return Column(name, SqlServerType(kind, **of_type), **more)


def excluding(schema: TableSchema, names: Collection[str]) -> TableSchema:
    """The same table with exactly these columns hidden by column filters."""
    return replace(schema, columns=tuple(replace(one, excluded=one.name in names) for one in schema.columns))


def orders(*columns: Column, keys: Sequence[str] = ("id",), **more: Any) -> TableSchema:
    """The table `shop.dbo.orders`, by default with columns id, name and note."""
    default = (column("id", "int"), column("name", "nvarchar", length=50), column("note", "nvarchar", length=-1))
    return TableSchema(ORDERS, columns or default, tuple(keys), **more)


def lsn(number: int) -> Lsn:
    """The LSN with this number as its 10 bytes."""
    return Lsn(number.to_bytes(10, "big"))


def position_text(epoch: int, commit: Lsn, command_id: int | None, change: Lsn, operation: int) -> str:
    """`_pos` of one streamed change, which the product writes by columns; a build without `command_id` has None."""
    return Position(epoch, commit, command_id or 0, change.raw.hex(), operation).text


@dataclass(frozen=True)
class Change:
    """One neutral change at commit `at`, with images as dicts of the relevant columns."""

    at: int
    op: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    unavailable: Sequence[str] | None = None
    changed: Sequence[str] | None = None
    exact: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sequence: int = 1
    snapshot: int = 1
    chunk: int = 0
    epoch: int = 0
    committed: datetime = AT

    def row(self, schema: TableSchema) -> dict[str, Any]:
        """The change as a row of `neutral_schema(schema)`."""
        operation = {"d": 1, "c": 2, "u": 4, "r": 0}[self.op]
        if self.op == "r":
            at, number = lsn(self.at), self.snapshot
            pos = snapshot_position_text(self.epoch, at, number=number, chunk=self.chunk, row=self.sequence)
        else:
            pos = position_text(self.epoch, lsn(self.at), 1, lsn(self.sequence), operation)
        blank = dict.fromkeys(c.name for c in schema.columns)
        return {
            "pos": pos,
            "commit_ts": self.committed,
            "op": self.op,
            "commit_lsn": lsn(self.at).text,
            "change_lsn": None if self.op == "r" else lsn(self.sequence).text,
            "command_id": 1,
            "operation": operation,
            "before": None if self.before is None else {**blank, **self.before},
            "after": None if self.after is None else {**blank, **self.after},
            "changed": self.changed,
            "unavailable": self.unavailable,
            "exact": {
                "before": _pairs(self.exact.get("before")),
                "after": _pairs(self.exact.get("after")),
            },
        }


def neutral(schema: TableSchema, *changes: Change) -> pa.RecordBatch:
    """A neutral batch of these changes."""
    return pa.RecordBatch.from_pylist([c.row(schema) for c in changes], schema=neutral_schema(schema))


def delta_schema_text(schema: pa.Schema) -> str:
    """The schema as a Delta log has it."""
    return Schema.from_arrow(schema).to_json()


def home_in(folder: Any) -> TableHome:
    """The home of `orders` in a warehouse."""
    return Layout(str(folder), "server1", "shop").home(ORDERS)


def change_log(home: TableHome, schema: TableSchema, *, writer: str = "", spark: Any = None) -> TableState:
    """The state of the change log, which is created if it does not exist."""
    create_table(
        home.changes,
        change_log_schema(schema),
        owner=home.app_id,
        properties=CHANGE_LOG_PROPERTIES,
        stats_columns=CHANGE_LOG_STATS,
        spark=spark,
    )
    state = load_state(home.changes, owner=home.app_id, writer=writer)
    assert state is not None
    return state


def append(state: TableState, schema: TableSchema, *changes: Change, spark: Any = None, **metadata: Any) -> TableState:
    """Commit the changes as one batch and return the new state."""
    rows = to_change_log(neutral(schema, *changes), table_schema=schema, batch_number=state.batch + 1, snapshot="1")
    facts = {"to": lsn(max(c.at for c in changes)).text, **metadata}
    return commit(state, write_files([rows], state.target), facts, spark=spark)


def _pairs(texts: Mapping[str, str] | None) -> list[tuple[str, str]] | None:
    return list(texts.items()) if texts else None


def applied_batch(home: TableHome, schema: TableSchema) -> int:
    """The `_batch` that a current table has reached."""
    log = load_log(home.current)
    assert log is not None
    return current.applied_batch(log, schema)
