"""Incremental snapshots, a step at a time beside the ranges: signals, emission of staged chunks, then the next chunks.

Each step saves a state that is based on the one before (`capture/incremental/store.py`), so a run that ends between two
steps repeats a chunk that was not emitted, and nothing else. A chunk that cannot be read never stops the ranges.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental import emission
from mssql_cdc.capture.incremental.chunks import (
    Streaming,
    open_table,
    prepare,
    read_group,
    stream_end,
    versioned_schema,
)
from mssql_cdc.capture.incremental.state import Group, Reading, State, Wanted
from mssql_cdc.capture.incremental.store import Command, Store, Stored, load, taken
from mssql_cdc.capture.notifications import INCREMENTAL, Notifier
from mssql_cdc.capture.survey import Survey
from mssql_cdc.config.signals import ExecuteSnapshot, PauseSnapshot, ResumeSnapshot, StopSnapshot, expand_collections
from mssql_cdc.errors import ConfigurationError, FencedError, MssqlCdcError, StaleStructureError
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets, append_offsets
from mssql_cdc.lake.steps import incremental_ended
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import SourceSession

MOST_STAGED = 8
"""How many groups may wait for the stream at a time."""
REST_SECONDS = 10.0
MOST_FAILURES = 5
"""How often a table may have other columns than its stream, before it is left."""


@dataclass(frozen=True, slots=True)
class Advanced:
    """What a step did: whether a snapshot is due (running and not paused), and whether it moved; the offsets then."""

    offsets: Offsets
    is_due: bool = False
    moved: bool = False


@dataclass
class IncrementalSnapshots:
    """The incremental snapshots of one database, as one run works on them; all that has to last is in the lake."""

    _resting: float = 0.0
    _failures: int = 0
    _said: str = ""

    def advance(self, database: Database, seen: Survey, offsets: Offsets, history: SchemaHistory) -> Advanced:
        """Take the next step, if one is due. What another run has done meanwhile is met in the next step.

        Args:
            database: The database.
            seen: The survey of this step.
            offsets: All offsets.
            history: The structures of its tables.
        """
        stored = load(database)
        if not stored.is_due or seen.facts.restored:
            return Advanced(offsets)
        work = _Work(database, seen, offsets, history)
        try:
            if stored.commands:
                work.obey(stored)
            if not self.rests:
                work.step()
                self._failures = 0
        except FencedError:
            work.moved = False
        except MssqlCdcError as error:
            self._failed(work, error)
        work.flush()
        return Advanced(work.offsets, work.store.state.is_due, work.moved)

    @property
    def rests(self) -> bool:
        """Whether a step failed a moment ago."""
        return time.monotonic() < self._resting

    def _failed(self, work: _Work, error: MssqlCdcError) -> None:
        """Leave the table, or rest where waiting may help."""
        self._failures += isinstance(error, StaleStructureError)
        if error.retriable and self._failures < MOST_FAILURES:
            self._resting = time.monotonic() + REST_SECONDS
            if str(error) != self._said:
                work.database.log(f"the incremental snapshot waits: {error}")
            self._said = str(error)
            return
        self._failures = 0
        work.leave("SQL_EXCEPTION", str(error))


@dataclass
class _Work:
    """One step."""

    database: Database
    seen: Survey
    offsets: Offsets
    history: SchemaHistory
    moved: bool = False
    notifiers: list[Notifier] = field(default_factory=list[Notifier])

    def __post_init__(self) -> None:
        self.store = Store(self.database)

    # -- Signals -----------------------------------------------------------------------------------------------

    def obey(self, stored: Stored) -> None:
        """Let signals take effect, in order and exactly once: the state says which did."""
        state = self.store.state
        if state.taken != stored.state.taken:
            return  # Another run has obeyed some of them.
        for command in stored.commands:
            state = self._obey(state, command)
        self._save(taken(state, stored))

    def _obey(self, state: State, command: Command) -> State:
        match command:
            case ExecuteSnapshot():
                after = state.asked(wanted(command, self._names()))
                self._note(after, command.signal_id, "STARTED")
            case StopSnapshot(collections=names):
                chosen = None if not names else self._chosen(names)
                after = state.stopped(chosen)
                more = {} if chosen is None else {"data_collections": _listed(chosen)}
                if after != state:
                    self._notifier(state, command.signal_id).add("ABORTED", **more)
            case PauseSnapshot():
                after = replace(state, paused=state.is_running)
                if after != state:
                    self._note(state, command.signal_id, "PAUSED")
            case ResumeSnapshot():
                after = replace(state, paused=False)
                if after != state:
                    self._note(state, command.signal_id, "RESUMED")
        if after == state:
            self.database.log(f"signal {command.signal_id}: no incremental snapshot is concerned")
        return after

    def _names(self) -> list[TableId]:
        filters = self.database.connector.filters.tables
        return [table for table in self.seen.tables if not filters.is_signal_table(*table.parts)]

    def _chosen(self, collections: Collection[str]) -> list[TableId]:
        by_name = {table.parts: table for table in (*self.seen.tables, *self.store.state.tables)}
        found, _ = expand_collections(collections, sorted(by_name))
        return [by_name[name] for name in found]

    # -- Steps ---------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Emit what the stream has passed, and read the next chunks."""
        state = self.store.state
        if state.reading is None and (state.paused or not state.queue):
            return
        name = state.reading.wanted.table if state.reading is not None else state.queue[0].table
        object_id = state.reading.object_id if state.reading is not None else None
        found = self._streaming(name, object_id)
        if isinstance(found, str):
            self.leave("UNKNOWN_SCHEMA" if found.startswith("it is not captured") else "SKIPPED", found)
            return
        if found is None:
            return  # It is being snapshotted, or about to be.
        with self.database.session() as session:
            if state.reading is None:
                self._open(session, found)
                return
            self._emit(session, found)
            self._read(session, found)

    def _streaming(self, name: TableId, object_id: int | None) -> Streaming | str | None:
        """The table as its stream sees it; a text says why it is never read, None that it has to wait."""
        member = next(
            (
                one
                for one in self.seen.tables.values()
                if (one.table == name if object_id is None else one.captured.object_id == object_id)
            ),
            None,
        )
        known = self.seen.member(member.table) if member is not None else None
        if member is None or known is None:
            return "it is not captured any more"
        if not self.seen.facts.policy.stream:
            return f"snapshot.mode={self.seen.facts.policy.mode} does not stream, which incremental snapshots need"
        entry = self.offsets.entry_of(member.table.text, member.captured.object_id)
        if known.status in {"lost", "failed", "excluded"}:
            return f"its status is {known.status}; take a blocking snapshot of it"
        streams = entry is not None and entry.status == "streaming" and entry.epoch == self.offsets.epoch
        if known.rekeyed or entry is None or entry.to is None or not streams:
            return None
        position = Lsn.parse(entry.to)
        instance = known.instance_at(position)
        if instance is None:
            return None
        read = self.seen.instance(member.table, instance.object_id)
        schema, self.history = versioned_schema(self.database, member, read, position, self.history)
        return Streaming(member, position, self.offsets.epoch, read, schema, self.history, self.offsets.number)

    def _open(self, session: SourceSession, table: Streaming) -> None:
        state = self.store.state
        first, *rest = state.queue
        state = replace(state, queue=tuple(rest))
        try:
            reading = open_table(self.database, session, table, first)
        except ConfigurationError as error:
            self._leave(first, state, "NO_PRIMARY_KEY", 0, str(error))
            return
        if reading is None:
            self._leave(first, state, "EMPTY", 0, "")
            return
        self._save(replace(state, reading=reading))

    def _emit(self, session: SourceSession, table: Streaming) -> None:
        reading = self._reading
        log = prepare(self.database, table)
        found = emission.caught_up(reading, log)
        self.offsets = emission.record(self.database, session, self.seen, table, log, self.offsets)
        if found != reading:
            self._emitted(table, reading, found)
            reading = found
        definition = table.schema.keyed_by(reading.keys).key_fingerprint if _has(table, reading) else None
        if reading.epoch != table.epoch or definition != reading.definition:
            # Bounds of another key, or positions of another history, mean nothing: the table is read from its start.
            self._save(replace(self.store.state, reading=None, queue=(reading.wanted, *self.store.state.queue)))
            return
        if any(emission.is_stale(reading, group, table, self.offsets) for group in reading.staged):
            self._save(self.store.state.without_staged())
            return
        if stream_end(self.database, table) > table.position:
            return  # A run ended before it could say how far it had come; the next range says so.
        groups = emission.passed_groups(session, reading, table.position)
        if groups:
            self._emit_groups(session, table, reading, groups)

    def _emit_groups(self, session: SourceSession, table: Streaming, reading: Reading, groups: list[Group]) -> None:
        log = prepare(self.database, table)
        try:
            log = emission.emit(self.database, table, reading, groups, log)
        except FileNotFoundError:
            self._save(self.store.state.without_staged())  # VACUUM took it for garbage.
            return
        self.offsets = emission.record(self.database, session, self.seen, table, log, self.offsets)
        self._emitted(table, reading, emission.caught_up(reading, log))

    def _emitted(self, table: Streaming, before: Reading, after: Reading) -> None:
        is_whole = bool(table.schema.key_columns) and after.wanted.condition is None
        state = replace(self.store.state, reading=after)
        notifier = self._notifier(state, after.wanted.signal)
        for group in before.staged[: len(before.staged) - len(after.staged)]:
            notifier.add(
                "IN_PROGRESS",
                data_collections=_listed(state.tables),
                current_collection_in_progress=after.wanted.table.text,
                maximum_key=_key(after.maximum),
                last_processed_key=_key(group.upper),
            )
        if not after.is_done:
            self._save(state)
            return
        if is_whole:
            name, low = table.member.table.text, after.begun.text
            entry = self.offsets.entry(name)
            row = incremental_ended(
                self.database.stamp(after.epoch),
                table=name,
                number=after.number,
                batch=(entry.batch if entry is not None else None) or 0,
                low=low,
            )
            self.offsets = append_offsets(
                self.database.layout, row, seen=self.offsets, storage=self.database.storage, known=self.database.tables
            )
        self._leave(after.wanted, state.next_table(), "SUCCEEDED", after.rows, "")

    def _read(self, session: SourceSession, table: Streaming) -> None:
        state = self.store.state
        reading = state.reading
        if reading is None or state.paused or reading.is_read or len(reading.staged) >= MOST_STAGED:
            return
        self._save(replace(state, reading=read_group(self.database, session, table, reading)))

    # -- Ends ----------------------------------------------------------------------------------------------------

    def leave(self, status: str, reason: str) -> None:
        """Go on with the next table.

        Args:
            status: What became of this one.
            reason: Why.
        """
        state = self.store.state
        if state.reading is not None:
            self._leave(state.reading.wanted, state.next_table(), status, state.reading.rows, reason)
        elif state.queue:
            self._leave(state.queue[0], replace(state, queue=state.queue[1:]), status, 0, reason)

    def _leave(self, wanted_: Wanted, state: State, status: str, rows: int, reason: str) -> None:
        notifier = self._notifier(state, wanted_.signal)
        notifier.add(
            "TABLE_SCAN_COMPLETED",
            data_collections=_listed([wanted_.table, *state.tables]),
            scanned_collection=wanted_.table.text,
            total_rows_scanned=str(rows),
            status=status,
        )
        if not state.is_running:
            notifier.add("COMPLETED")
            state = replace(state, paused=False)
        self._save(state)
        said = f": {reason}" if reason else f", {rows} rows" if rows else ""
        self.database.log(f"incremental snapshot of {wanted_.table}: {status}{said}")

    @property
    def _reading(self) -> Reading:
        reading = self.store.state.reading
        assert reading is not None  # the caller has looked
        return reading

    def _save(self, state: State) -> None:
        self.store.save(state)
        self.moved = True

    # -- Notifications -------------------------------------------------------------------------------------------

    def _note(self, state: State, signal: str, kind: str) -> None:
        self._notifier(state, signal).add(kind, data_collections=_listed(state.tables))

    def _notifier(self, state: State, signal: str) -> Notifier:
        found = Notifier(self.database, signal, [table.text for table in state.tables], aggregate=INCREMENTAL)
        self.notifiers.append(found)
        return found

    def flush(self) -> None:
        """Write the notifications of what was saved."""
        if self.moved:
            for notifier in self.notifiers:
                notifier.flush()


def wanted(action: ExecuteSnapshot, tables: Collection[TableId]) -> list[Wanted]:
    """The tables that a signal names, with their conditions, in the order of the signal.

    Args:
        action: The signal.
        tables: The captured tables.
    """
    by_name: Mapping[tuple[str, str, str], TableId] = {table.parts: table for table in tables}
    found, _ = expand_collections(action.collections, sorted(by_name))
    return [
        Wanted(
            table=by_name[name],
            signal=action.signal_id,
            condition=action.filter_for(name),
            surrogate=action.surrogate_key,
        )
        for name in found
    ]


def _has(table: Streaming, reading: Reading) -> bool:
    return {column.name for column in table.schema.columns} >= set(reading.keys)


def _listed(tables: Collection[TableId]) -> str:
    return ",".join(table.text for table in tables)


def _key(bound: tuple[str | None, ...]) -> str:
    return ",".join("<null>" if value is None else value for value in bound)
