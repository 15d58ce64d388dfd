"""Signals: what a row of the signal table asks for.

A signal arrives as a change event of the signal table (SIG-03: inserts only, three columns by position) and is applied
from the committed change log, exactly once, by `stream/signals.py`. Only parsing and matching belong here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mssql_cdc.schema import TableId

Kind = Literal["incremental", "blocking"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One row of the signal table; `data` is its JSON text or None."""

    id: str
    type: str
    data: str | None


@dataclass(frozen=True, slots=True)
class Condition:
    """`filter` for the tables that `collection` matches: a condition (incremental) or a SELECT (blocking)."""

    collection: str
    filter: str


@dataclass(frozen=True, slots=True)
class ExecuteSnapshot:
    """Snapshot these collections (regular expressions on `catalog.schema.name`, INC-03, BLK-03)."""

    signal_id: str
    kind: Kind
    collections: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    surrogate_key: str | None = None

    def tables(self, known: Collection[TableId]) -> tuple[TableId, ...]:
        """The captured tables meant, in the order of the patterns, each once."""
        chosen: list[TableId] = []
        for pattern in self.collections:
            chosen += [t for t in sorted(known) if t not in chosen and _matches(pattern, t)]
        return tuple(chosen)

    def filter_of(self, table: TableId) -> str | None:
        """The first matching additional condition of a table (INC-04, BLK-04)."""
        return next((c.filter for c in self.conditions if _matches(c.collection, table)), None)


@dataclass(frozen=True, slots=True)
class StopSnapshot:
    """Stop these collections' incremental snapshots; none named means all (INC-13)."""

    signal_id: str
    collections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PauseSnapshot:
    """Hold incremental snapshots at the next chunk (`paused`) or let them go on (INC-14)."""

    signal_id: str
    paused: bool


@dataclass(frozen=True, slots=True)
class Log:
    """Write `message`, with `{}` standing for the current position, to the log."""

    signal_id: str
    message: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """A signal that asks for nothing we can do; never fatal (SIG-09)."""

    signal_id: str
    reason: str


Action = ExecuteSnapshot | StopSnapshot | PauseSnapshot | Log | Ignored


def parse(signal: Signal) -> Action:
    """What a signal asks for."""
    try:
        data = json.loads(signal.data) if signal.data else {}
    except ValueError as error:
        return Ignored(signal.id, f"its data are not JSON: {error}")
    if not isinstance(data, dict):
        return Ignored(signal.id, f"its data are a JSON {type(data).__name__}, not an object")
    match signal.type:
        case "execute-snapshot":
            return _execute(signal.id, data)
        case "stop-snapshot":
            return StopSnapshot(signal.id, _texts(data.get("data-collections")))
        case "pause-snapshot" | "resume-snapshot":
            return PauseSnapshot(signal.id, signal.type == "pause-snapshot")
        case "log":
            return Log(signal.id, str(data.get("message", "")))
        case "snapshot-window-open" | "snapshot-window-close":
            return Ignored(signal.id, "it is a watermark of another connector")
        case other:
            return Ignored(signal.id, f"the type {other!r} is not known")


def _execute(signal_id: str, data: dict[str, Any]) -> Action:
    kind = str(data.get("type", "incremental")).lower()
    if kind not in {"incremental", "blocking"}:
        return Ignored(signal_id, f"a snapshot of type {kind!r} is not known")
    collections = _texts(data.get("data-collections"))
    if not collections:
        return Ignored(signal_id, "data-collections names no table")
    conditions = tuple(
        Condition(str(entry["data-collection"]), str(entry["filter"]))
        for entry in data.get("additional-conditions") or ()
        if isinstance(entry, dict) and {"data-collection", "filter"} <= entry.keys()
    )
    surrogate = data.get("surrogate-key")
    return ExecuteSnapshot(
        signal_id,
        "blocking" if kind == "blocking" else "incremental",
        collections,
        conditions,
        str(surrogate) if surrogate else None,
    )


def _texts(value: object) -> tuple[str, ...]:
    found: Sequence[object] = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return tuple(str(item).strip() for item in found if str(item).strip())


def _matches(pattern: str, table: TableId) -> bool:
    """Whether a pattern means the table: as a plain name, or as a regular expression on the whole name.

    Names without the database are accepted as well as those with it (features §3.8), quoted parts too (INC-02).
    """
    names = (table.text, f"{table.schema}.{table.name}")
    plain = pattern.replace('"', "").replace("[", "").replace("]", "")
    if plain.casefold() in {name.casefold() for name in names}:
        return True
    try:
        return any(re.fullmatch(pattern, name, re.IGNORECASE) for name in names)
    except re.error:
        return False
