"""The newest signals as a table that the `signals` asset shows, with their channels, effects and outcomes.

`report.py` and `signals.py` write it; what signals do is decided in `follow/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import REQUESTED
from mssql_cdc.config.signals import ExecuteSnapshot, parse_signal
from mssql_cdc.lake.small_tables import small_table

MOST = 25
COLUMNS = ("id", "channel", "effect", "outcome", "condition", "at", "type", "position")


def newest_signals(database: Database) -> dg.TableMetadataValue:
    """Return the newest signals, the last one first."""
    signals = small_table(database.layout, "signals", database.storage).rows()
    notes = small_table(database.layout, "notifications", database.storage).rows() if signals else []
    rows = sorted(signals, key=lambda row: row["_batch"])[: -MOST - 1 : -1]
    schema = dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in COLUMNS])
    return dg.MetadataValue.table([dg.TableRecord(_shown(row, notes)) for row in rows], schema)


def _shown(row: Mapping[str, Any], notes: Iterable[Mapping[str, Any]]) -> dict[str, str | int | float | bool]:
    action = parse_signal(row["id"], row["type"], row["data"])
    conditions = action.conditions if isinstance(action, ExecuteSnapshot) else ()
    found: dict[str, str | None] = {
        **{name: row[name] for name in ("id", "channel", "type", "position")},
        "effect": row["result"],
        "condition": "; ".join(dict.fromkeys(one.text for one in conditions)),
        "outcome": _outcome(row, notes),
        "at": row["at"].astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"),
    }
    return {name: found[name] or "" for name in COLUMNS}


def _outcome(row: Mapping[str, Any], notes: Iterable[Mapping[str, Any]]) -> str:
    """What became of a signal: what was notified last of the snapshot that it requested, or else its status."""
    if row["status"] != REQUESTED:
        return row["status"]
    own = [note for note in notes if note["id"] == row["id"] and _time(note) >= row["at"]]
    return own[-1]["type"].lower().replace("_", " ") if own else REQUESTED


def _time(note: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(note["timestamp_ms"] / 1000, UTC)
