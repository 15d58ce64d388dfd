"""Signals: from a row of the signal table (id, type, data) to what it requests (SIG-03 … SIG-09, INC, BLK).

Pure parsing and name matching; `follow/` executes signals. A signal that cannot be understood is never fatal: it
becomes an `IgnoredSignal` with the reason. A text that is the full name of a table stands for that table alone; any
other text is a regular expression. So the existing tables determine what a text means, and whether it means anything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from mssql_cdc.config.filter_statement import bounded_statement, check_condition
from mssql_cdc.config.filters import split_name
from mssql_cdc.config.java_regex import java_pattern
from mssql_cdc.config.java_texts import line_with, map_text
from mssql_cdc.config.json_texts import json_value

SnapshotKind = Literal["incremental", "blocking"]
TableName = tuple[str, str, str]
WATERMARKS = ("snapshot-window-open", "snapshot-window-close")
"""The types of rows that an incremental snapshot writes to the signal table itself (INC-08)."""
SIGNAL_TYPES = frozenset(
    {
        "execute-snapshot",
        "stop-snapshot",
        "pause-snapshot",
        "resume-snapshot",
        "acknowledge-gaps",
        "log",
        *WATERMARKS,
    }
)
"""The types that have an effect of their own; any other may be a user's action."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows of a table are read: for an incremental snapshot a condition, for a blocking one a SELECT statement.

    Attributes:
        collection: The table's name, or a regular expression.
        text: The filter.
        refused: Why it is not run: it does more than filter.
    """

    collection: str
    text: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class ExecuteSnapshot:
    """Snapshot the tables that `collections` (names or expressions) name; `conditions` filter some (INC-04, BLK-04)."""

    signal_id: str
    kind: SnapshotKind
    collections: tuple[str, ...]
    conditions: tuple[Filter, ...] = ()
    surrogate_key: str | None = None

    def filter_for(self, table: TableName, others: Iterable[TableName] = ()) -> Filter | None:
        """The filter of a table, or None.

        Args:
            table: The table.
            others: Further existing tables.
        """
        return self.filters_for((table,), others).get(table)

    def filters_for(self, tables: Iterable[TableName], others: Iterable[TableName] = ()) -> dict[TableName, Filter]:
        """The filter of each table that has one: the first one whose collection matches it.

        Args:
            tables: The tables.
            others: Further existing tables.
        """
        known = tuple(tables)
        names = _Names((*known, *others))
        found: dict[TableName, Filter] = {}
        for one in self.conditions:
            if self.kind == "blocking":
                meant = set(names.of(one.collection))
            else:
                meant = set(names.meant(one.collection, known, ignore_case=True))
            for table in known:
                if table in meant:
                    found.setdefault(table, one)
        return found


@dataclass(frozen=True, slots=True)
class StopSnapshot:
    """Stop the snapshots of these collections or (empty) of all tables (INC-13).

    The kind `blocking`, which Debezium does not know here, leaves incremental snapshots alone.
    """

    signal_id: str
    collections: tuple[str, ...] = ()
    kind: SnapshotKind = "incremental"


@dataclass(frozen=True, slots=True)
class PauseSnapshot:
    """Pause the snapshots at the next chunk (INC-14)."""

    signal_id: str


@dataclass(frozen=True, slots=True)
class ResumeSnapshot:
    """Resume the paused snapshots (INC-14)."""

    signal_id: str


@dataclass(frozen=True, slots=True)
class LogMessage:
    """Write a line to the log; `{}` stands for the offset."""

    signal_id: str
    message: str

    def text(self, offset: Mapping[str, object] | None) -> str:
        """The line to be logged, as Debezium writes it.

        Args:
            offset: The source offset where the signal arrived; None: there is none yet.
        """
        return line_with(self.message, "<none>" if offset is None else map_text(offset))


@dataclass(frozen=True, slots=True)
class AcknowledgeGaps:
    """Acknowledge the lost changes of these collections (empty: of all). This project's own signal."""

    signal_id: str
    collections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IgnoredSignal:
    """A signal for another connector, or one that cannot be understood: `reason` says why (SIG-09)."""

    signal_id: str
    reason: str


Signal = ExecuteSnapshot | StopSnapshot | PauseSnapshot | ResumeSnapshot | LogMessage | AcknowledgeGaps | IgnoredSignal


class _UnreadableError(ValueError):
    """The data of a signal cannot be understood; the message is the reason."""


def concerns(signal: Signal, database: str, databases: Collection[str]) -> bool:
    """Whether a signal is for a database: not if it names only tables of the connector's other databases.

    Args:
        signal: The signal.
        database: The database.
        databases: All databases of the connector.
    """
    names = signal.collections if isinstance(signal, ExecuteSnapshot | StopSnapshot) else ()
    others = tuple(f"{one.casefold()}." for one in databases if one.casefold() != database.casefold())
    return not names or not all(name.casefold().startswith(others) for name in names)


def parse_signal(signal_id: str, signal_type: str, data: str | Mapping[str, object] | None) -> Signal:
    """The signal of one row.

    Args:
        signal_id: the id of the row.
        signal_type: what is requested, such as `execute-snapshot`.
        data: JSON text (signal table) or an object (other channels).
    """
    try:
        match signal_type:
            case "execute-snapshot":
                return _execute(signal_id, _object(data))
            case "stop-snapshot":
                return _stop(signal_id, _object(data))
            case "pause-snapshot":
                return PauseSnapshot(signal_id)
            case "resume-snapshot":
                return ResumeSnapshot(signal_id)
            case "acknowledge-gaps":
                return AcknowledgeGaps(signal_id, _texts(_object(data), "data-collections"))
            case "log":
                return _log(signal_id, _object(data))
            case "schema-changes":
                return IgnoredSignal(signal_id, "the structure of a table is read from the source, not from a signal")
            case _ if signal_type in WATERMARKS:
                return IgnoredSignal(signal_id, "a watermark, which requests nothing")
            case _:
                return IgnoredSignal(signal_id, f"the type {signal_type!r} is not known")
    except ValueError as error:
        return IgnoredSignal(signal_id, str(error))


def expand_collections(
    collections: Iterable[str], tables: Iterable[TableName], others: Iterable[TableName] = ()
) -> tuple[tuple[TableName, ...], tuple[str, ...]]:
    """The tables that the texts name, each once and in order, and the texts that name none (INC-03).

    A text that is the full name of a table, quoted or not, such as `db.dbo."My.Table"`, stands for that table alone;
    otherwise it is an expression, which is matched case-sensitively against `db.schema.table`. In both, the database
    may be left out (a deliberate extension, for samples that do so).

    Args:
        collections: The texts.
        tables: The tables that a text may stand for.
        others: Further existing tables: a text that is the name of one of them stands for no other table.
    """
    known = tuple(tables)
    names = _Names((*known, *others))
    found: dict[TableName, None] = {}
    missing: list[str] = []
    for collection in collections:
        matched = names.meant(collection, known, ignore_case=False)
        found.update(dict.fromkeys(matched))
        if not matched:
            missing.append(collection)
    return tuple(found), tuple(missing)


def unreadable(collections: Iterable[str], tables: Iterable[TableName]) -> str | None:
    """Why a text means nothing: it is neither the name of a table nor a valid expression. None: each may.

    Args:
        collections: The texts.
        tables: All existing tables.
    """
    names = _Names(tables)
    for collection in collections:
        try:
            if not names.of(collection):
                java_pattern(collection)
        except ValueError as error:
            return str(error)
    return None


def _execute(signal_id: str, data: Mapping[str, object]) -> ExecuteSnapshot | IgnoredSignal:
    collections = _texts(data, "data-collections")
    if not collections:
        return IgnoredSignal(signal_id, "data-collections is missing or empty; name at least one table")
    if "additional-condition" in data:
        return IgnoredSignal(signal_id, "additional-condition is no longer known; use additional-conditions")
    surrogate = data.get("surrogate-key") or None
    if surrogate is not None and not isinstance(surrogate, str):
        raise _UnreadableError("surrogate-key must be a string")
    kind = _kind(data)
    return ExecuteSnapshot(signal_id, kind, collections, _conditions(data, kind), surrogate)


def _stop(signal_id: str, data: Mapping[str, object]) -> StopSnapshot:
    return StopSnapshot(signal_id, _texts(data, "data-collections"), _kind(data))


def _log(signal_id: str, data: Mapping[str, object]) -> LogMessage:
    message = data.get("message")
    if not isinstance(message, str):
        raise _UnreadableError("message must be a string")
    return LogMessage(signal_id, message)


def _kind(data: Mapping[str, object]) -> SnapshotKind:
    value = data.get("type") or "incremental"
    kind = value.strip().lower() if isinstance(value, str) else ""
    if kind == "incremental":
        return "incremental"
    if kind == "blocking":
        return "blocking"
    raise _UnreadableError(f"type is {value!r}, expected incremental or blocking")


def _conditions(data: Mapping[str, object], kind: SnapshotKind) -> tuple[Filter, ...]:
    conditions: list[Filter] = []
    for one in _array(data, "additional-conditions", "an array"):
        condition = cast("dict[str, object]", one) if isinstance(one, dict) else {}
        collection, text = condition.get("data-collection"), condition.get("filter")
        if not isinstance(collection, str) or not isinstance(text, str) or not text.strip():
            raise _UnreadableError("each of additional-conditions needs the strings data-collection and filter")
        conditions.append(_filter(collection.strip(), text, kind))
    return tuple(conditions)


def _filter(collection: str, text: str, kind: SnapshotKind) -> Filter:
    try:
        if kind == "blocking":
            return Filter(collection, bounded_statement(text, collection))
        check_condition(text, collection)
    except ValueError as error:
        return Filter(collection, text, refused=str(error))
    return Filter(collection, text)


def _texts(data: Mapping[str, object], name: str) -> tuple[str, ...]:
    listed = _array(data, name, "an array of strings")
    texts = [one.strip() for one in listed if isinstance(one, str)]
    if len(texts) < len(listed):
        raise _UnreadableError(f"{name} must be an array of strings")
    return tuple(one for one in texts if one)


def _array(data: Mapping[str, object], name: str, expected: str) -> list[object]:
    listed = data.get(name) or list[object]()
    if not isinstance(listed, list):
        raise _UnreadableError(f"{name} must be {expected}")
    return cast("list[object]", listed)


def _object(data: str | Mapping[str, object] | None) -> Mapping[str, object]:
    if data is None:
        return {}
    if not isinstance(data, str):
        return data
    if not data.strip():
        return {}
    try:
        value = json_value(data)
    except ValueError as error:
        raise _UnreadableError(f"data is {error}") from None
    if not isinstance(value, dict):
        raise _UnreadableError(f"data is a JSON {type(value).__name__}, expected an object")
    return cast("dict[str, object]", value)


class _Names:
    """Finds tables by their names."""

    def __init__(self, tables: Iterable[TableName]) -> None:
        self._texts: dict[str, dict[TableName, None]] = {}
        self._parts: dict[tuple[str, ...], dict[TableName, None]] = {}
        self._folded: _Names | None = None
        self._tables = tuple(tables)
        for table in self._tables:
            for start in (0, 1):
                self._texts.setdefault(".".join(table[start:]), {})[table] = None
                self._parts.setdefault(table[start:], {})[table] = None

    def of(self, collection: str) -> Iterable[TableName]:
        """The tables with this name, quoted or not, with or without the database."""
        parts = split_name(collection)
        texts = self._texts
        return texts.get(collection) or self._parts.get(parts) or texts.get(".".join(parts)) or ()

    def meant(self, collection: str, tables: Iterable[TableName], *, ignore_case: bool) -> list[TableName]:
        """The given tables that the text names, or else that match it as an expression; it need not be a valid one."""
        named = self.of(collection) or (self._ignoring_case(collection) if ignore_case else ())
        if named:
            return [table for table in tables if table in named]
        expression = _expression(collection, ignore_case=ignore_case)
        if expression is None:
            return []
        return [table for table in tables if any(expression.fullmatch(".".join(table[start:])) for start in (0, 1))]

    def _ignoring_case(self, collection: str) -> set[TableName]:
        folded = {table: _folded(table) for table in self._tables}
        self._folded = self._folded or _Names(folded.values())
        named = set(self._folded.of(collection.casefold()))
        return {table for table in self._tables if folded[table] in named}


def _folded(table: TableName) -> TableName:
    catalog, schema, name = (part.casefold() for part in table)
    return catalog, schema, name


def _expression(text: str, *, ignore_case: bool) -> re.Pattern[str] | None:
    try:
        return java_pattern(text, ignore_case=ignore_case)
    except ValueError:
        return None
