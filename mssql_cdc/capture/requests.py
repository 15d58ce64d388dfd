"""Requested blocking snapshots: written to `_signals`, and read until an `_offsets` row contains them.

`capture/incremental/store.py` does the same for incremental snapshots.

`follow/signals.py` copies signals from the signal table to `_signals`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.config.filter_statement import rows_with
from mssql_cdc.config.filters import plain_name, spoken_name
from mssql_cdc.config.signals import (
    ExecuteSnapshot,
    Filter,
    IgnoredSignal,
    Signal,
    SnapshotKind,
    expand_collections,
    parse_signal,
    unreadable,
)
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import START_SIGNAL, is_of_start
from mssql_cdc.lsn import snapshot_key
from mssql_cdc.schema import TableId

INITIAL_ADVICE = (
    "the initial snapshot is not finished, and without it the table cannot stream. Pause it, or exclude the table "
    "(table.exclude.list)"
)
REQUESTED, DONE, IGNORED = "requested", "done", "ignored"
TableName = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One row of the signal table; `data` is its JSON text or None."""

    id: str
    type: str
    data: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A requested blocking snapshot; `names` are those of all tables that the lake knows."""

    key: str
    signal_id: str
    action: ExecuteSnapshot
    names: tuple[TableName, ...] = ()

    @property
    def batch(self) -> int:
        """Its row in `_signals`."""
        return batch_of(self.signal_id)

    def of(self, tables: Collection[TableId]) -> tuple[TableId, ...]:
        """Return the requested captured tables, in the order of the signal."""
        by_name = {table.parts: table for table in tables}
        found, _ = expand_collections(self.action.collections, sorted(by_name), self.names)
        return tuple(by_name[name] for name in found)

    def filters(self, tables: Collection[TableId]) -> dict[TableId, Filter]:
        """Return the filters of some of these tables (BLK-04)."""
        found = self.action.filters_for([table.parts for table in tables], self.names)
        return {table: found[table.parts] for table in tables if table.parts in found}


def open_requests(database: Database, offsets: Offsets) -> list[Request]:
    """Return the requested blocking snapshots that have not begun, oldest first."""
    table = small_table(database.layout, "signals", database.storage)
    rows = database.tables.get(table.uri, table.rows, database.storage)
    requested = (row for row in rows if row["status"] == REQUESTED)
    waiting = [row for row in requested if identity(row) not in offsets.answered_signals]
    names = table_names(database.history()) if waiting else ()
    found = (_request(row, offsets.epoch, names) for row in waiting)
    return [one for one in found if one is not None]


def ask_for_snapshot(
    database: Database,
    signal_id: str,
    tables: Collection[str],
    *,
    channel: str,
    kind: SnapshotKind = "blocking",
    condition: str | None = None,
) -> str:
    """Request a snapshot of these tables, as a signal from a channel other than the signal table.

    Args:
        database: The database.
        signal_id: The id of the signal.
        tables: The names of the tables, or regular expressions on them.
        channel: The channel that requests it.
        kind: Whether the stream continues alongside it (incremental) or waits for it.
        condition: Read only the rows that satisfy it.

    Returns:
        What was requested.

    Raises:
        ConfigurationError: The condition does more than filter, or one of `tables` cannot denote a table.
    """
    data: dict[str, Any] = {"type": kind, "data-collections": list(tables)}
    if condition:
        try:
            filters = {name: condition if kind == "incremental" else rows_with(condition, name) for name in tables}
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        data["additional-conditions"] = [{"data-collection": name, "filter": text} for name, text in filters.items()]
    row = SignalRow(signal_id, "execute-snapshot", json.dumps(data))
    action = parse_signal(row.id, row.type, row.data)
    refused = action.reason if isinstance(action, IgnoredSignal) else _refused(action)
    refused = refused or unreadable(tables, table_names(database.history()))
    if refused is not None:
        raise ConfigurationError(refused)
    what = f"{'an' if kind == 'incremental' else 'a'} {kind} snapshot of {', '.join(tables)}"
    what += f" where {condition}" if condition else ""
    note_signal(database, row, channel, REQUESTED, what)
    return what


def ask_to_control(database: Database, signal_id: str, kind: str, tables: Sequence[str], *, channel: str) -> str:
    """Request that snapshots of both types stop, pause or resume; return what was requested.

    Args:
        database: The database.
        signal_id: The id of the signal.
        kind: `stop-snapshot`, `pause-snapshot` or `resume-snapshot`.
        tables: The full names of the tables to stop; none: all.
        channel: The channel that requests it.

    Raises:
        ConfigurationError: None of the tables can be stopped.
    """
    refused = refused_stop(database.offsets(), [plain_name(name) for name in tables])
    if refused is not None:
        raise ConfigurationError(refused)
    data = json.dumps({"type": "incremental", "data-collections": list(tables)}) if tables else None
    what = f"{kind} of {', '.join(tables) or 'all tables'}"
    note_signal(database, SignalRow(signal_id, kind, data), channel, REQUESTED, what)
    return what


def refused_stop(offsets: Offsets, tables: Collection[str]) -> str | None:
    """Why none of the snapshots of these tables can be stopped; None: one can be, or no table is named.

    Args:
        offsets: The offsets.
        tables: The full names of the tables.
    """
    entries = [offsets.entry(name) for name in tables]
    initial = [one is not None and one.status == "snapshot" and one.to is None for one in entries]
    return f"{', '.join(tables)} cannot be stopped: {INITIAL_ADVICE}" if initial and all(initial) else None


def known_tables(database: Database, collections: Sequence[str]) -> list[str]:
    """The full names (`spoken_name`) of the tables in the lake that these names or regular expressions match.

    Tables that the filters exclude, or whose loss was acknowledged, do not count: no snapshot reads them.

    Args:
        database: The database.
        collections: Names of tables, or regular expressions on them.
    """
    offsets = database.offsets()
    history = database.history()
    names = [versions[-1].table_id for versions in history.versions.values()]
    tables = database.connector.filters.tables
    followed = [one for one in names if (entry := offsets.entry(one.text)) and entry.status != "excluded"]
    known = [one.parts for one in followed if tables.matches(*one.parts) and not tables.is_signal_table(*one.parts)]
    found, _ = expand_collections(collections, sorted(known), table_names(history))
    return [spoken_name(name) for name in found]


def table_names(history: SchemaHistory) -> tuple[TableName, ...]:
    """The names of all tables that the lake knows: a text that is one of them denotes no other table.

    Args:
        history: The structures of the tables.
    """
    return tuple(versions[-1].table_id.parts for versions in history.versions.values())


def note_signal(database: Database, signal: SignalRow, channel: str, status: str, result: str) -> None:
    """Record a signal from a channel other than the signal table, with its result.

    Args:
        database: The database.
        signal: The signal.
        channel: The channel that delivered it.
        status: Its status: requested, done or ignored.
        result: One line about its result.
    """
    table = small_table(database.layout, "signals", database.storage)
    state = table.state()
    row = signal_row(signal, channel=channel, position=None, status=status, result=result, at=datetime.now(UTC))
    table.append(state, [row], {"kind": "signals", "taken": bookmarks_of(state), "run_id": database.run_id})


def bookmarks_of(state: TableState) -> dict[str, Any]:
    """Return the position up to which each channel was read, by its name."""
    return dict((state.own or {}).get("taken", {}))


def signal_row(
    signal: SignalRow, *, channel: str, position: str | None, status: str, result: str, at: datetime
) -> dict[str, Any]:
    """A row of `_signals`.

    Args:
        signal: The signal.
        channel: The channel that delivered it.
        position: Its position in the channel; None if the channel has none.
        status: Its status: requested, done or ignored.
        result: One line about its result.
        at: When it was applied.
    """
    texts: dict[str, str | None] = {
        "id": signal.id,
        "type": signal.type,
        "data": signal.data,
        "channel": channel,
        "position": position,
        "status": status,
        "result": result,
    }
    return {**{name: _storable(text) for name, text in texts.items()}, "at": at}


def _storable(text: str | None) -> str | None:
    """The text with a question mark for each unpaired surrogate, which UTF-8 cannot encode."""
    return None if text is None else text.encode("utf-8", "replace").decode()


def _refused(action: Signal) -> str | None:
    """Why a filter of the snapshot is refused."""
    filters = action.conditions if isinstance(action, ExecuteSnapshot) else ()
    return next((one.refused for one in filters if one.refused), None)


def _request(row: Mapping[str, Any], epoch: int, names: tuple[TableName, ...]) -> Request | None:
    action = parse_signal(row["id"], row["type"], row["data"])
    if not isinstance(action, ExecuteSnapshot) or action.kind != "blocking":
        return None
    return Request(snapshot_key(row["at"], epoch=epoch), identity(row), action, names)


def identity(row: Mapping[str, Any]) -> str:
    """A signal's id need not be unique: its row's number in `_signals` makes it so."""
    return f"{row['id']}@{row['_batch']}:{row['position'] or ''}"


def batch_of(identity: str) -> int:
    """The `_batch` of a signal's row in `_signals`."""
    return int(identity.rpartition("@")[2].partition(":")[0])


def id_of(identity: str) -> str:
    """The id that the sender gave the signal; a start gives its own a UUID, as Debezium does for initial snapshots."""
    found = identity.rpartition("@")[0]
    return found.removeprefix(START_SIGNAL) if is_of_start(identity) else found
