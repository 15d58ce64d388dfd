"""The newest signals as a table that the `signals` asset shows, with their channels, effects and outcomes.

`report.py` and `signals.py` write it; `follow/` decides what signals do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import READ
from mssql_cdc.capture.notifications import INCREMENTAL
from mssql_cdc.capture.requests import REQUESTED
from mssql_cdc.config.signals import (
    ExecuteSnapshot,
    PauseSnapshot,
    ResumeSnapshot,
    Signal,
    StopSnapshot,
    parse_signal,
)
from mssql_cdc.lake.small_tables import small_table

MOST = 25
COLUMNS = ("id", "channel", "effect", "outcome", "condition", "at", "type", "position")
_NOTIFIED: Mapping[type[Signal], str] = {
    StopSnapshot: "ABORTED",
    PauseSnapshot: "PAUSED",
    ResumeSnapshot: "RESUMED",
}
"""The notification that says that such a signal took effect."""


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
        "outcome": outcome(row, notes),
        "at": row["at"].astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"),
    }
    return {name: found[name] or "" for name in COLUMNS}


def outcome(row: Mapping[str, Any], notes: Iterable[Mapping[str, Any]]) -> str:
    """The outcome of a signal: the last notification about the snapshot that it requested, or else its status.

    It includes the tables that the snapshot has left unread.

    Args:
        row: The signal, as `_signals` has it.
        notes: The notifications, oldest first.
    """
    if row["status"] != REQUESTED:
        return row["status"]
    action = parse_signal(row["id"], row["type"], row["data"])
    later = [note for note in notes if _time(note) >= row["at"]]
    if isinstance(action, ExecuteSnapshot) and action.kind == "incremental":
        own = _of_snapshot(row["id"], [note for note in later if note["aggregate_type"] == INCREMENTAL])
    elif type(action) in _NOTIFIED:
        own = [note for note in later if note["type"] == _NOTIFIED[type(action)]][:1]
    else:
        own = [note for note in later if note["id"] == row["id"]]
    if not own:
        return REQUESTED
    return "; ".join([own[-1]["type"].lower().replace("_", " "), *_unread(own)])


def _unread(notes: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """The tables that a snapshot did not read, each with its last status in the notifications."""
    ended = [dict(note["additional_data"]) for note in notes if note["type"] == "TABLE_SCAN_COMPLETED"]
    statuses = {one.get("scanned_collection", ""): one.get("status", "") for one in ended}
    return [f"{table}: {status}" for table, status in statuses.items() if status not in READ]


def _of_snapshot(signal: str, notes: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The notifications of the snapshot that a signal began or added to: they have the id of the last such signal."""
    starts = [place for place, note in enumerate(notes) if note["type"] == "STARTED"]
    begin = next((place for place in starts if notes[place]["id"] == signal), 0)
    return notes[begin : next((place for place in starts if place > begin), None)]


def _time(note: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(note["timestamp_ms"] / 1000, UTC)
