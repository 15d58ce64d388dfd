"""One step of incremental snapshots: emit what the stream has passed, then read the next chunks (correctness C).

Each step saves a state that is based on the one before (`capture/incremental/store.py`). `incremental.py` decides when
a step is taken and what an error means, `incremental_control.py` applies signals.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

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
from mssql_cdc.capture.incremental.store import Store, has_failed
from mssql_cdc.capture.survey import Survey
from mssql_cdc.errors import ConfigurationError, SourceUnavailableError
from mssql_cdc.follow.incremental_budget import Budget
from mssql_cdc.follow.incremental_notes import Notes, without_hidden
from mssql_cdc.follow.incremental_thread import GroupThread
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import incremental_ended
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import Bound

MOST_STAGED = 8
"""How many groups may wait for the stream at a time."""

_STAY = {"new", "streaming", "snapshot", "failed"}
"""The statuses of a table that cannot be captured for now, because of rights or its change log, but continues later."""


@dataclass
class Step:
    """One step.

    Attributes:
        database: The database.
        seen: The survey.
        offsets: All offsets; newer ones afterwards.
        history: The structures of its tables; with new versions afterwards.
        budget: Says whether chunks may be read now.
        thread: Reads groups while the stream continues; None: a step reads its own.
        moved: Whether the state has changed.
        has_read: Whether a group was read to its end, or a table left; merely beginning one is no success.
    """

    database: Database
    seen: Survey
    offsets: Offsets
    history: SchemaHistory
    budget: Budget
    thread: GroupThread | None = None
    gives_way: bool = False
    moved: bool = False
    has_read: bool = False
    notes: Notes = field(init=False)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.store, self.notes = Store(self.database), Notes(self.database)

    def take(self) -> None:
        """Emit what the stream has passed, and read the next chunks."""
        state = self._making_room(self.store.state)
        if state.reading is None and (state.paused or not state.queue):
            return
        if state.reading is None:
            state = self._in_turn(state)
        name = state.reading.wanted.table if state.reading is not None else state.queue[0].table
        object_id = state.reading.object_id if state.reading is not None else None
        found = self._streaming(name, object_id)
        if isinstance(found, str):
            self.leave("UNKNOWN_SCHEMA" if found.startswith("it is not captured") else "SKIPPED", found)
            return
        if found is None:
            return  # It is being snapshotted, or about to be; or it was given up, and is tried again.
        with self.database.session() as session:
            if state.reading is None:
                if self._may_read(session):
                    self._open(session, found)
                return
            self._emit(session, found)
            self._read(session, found)

    def follow_names(self) -> None:
        """Refer to tables by the names that they have now (B15)."""
        names = {one.captured.object_id: one.table for one in self.seen.tables.values()}
        state = self.store.state.named(names, self.offsets.epoch)
        if state != self.store.state:
            self.save(state)

    def _in_turn(self, state: State) -> State:
        """The state with a capturable table first, if there is one: the others wait behind it."""
        away = [one for one in state.queue if self._is_away(one)]
        if away and away[0] is state.queue[0] and len(away) < len(state.queue):
            self.save(replace(state, queue=(*(one for one in state.queue if one not in away), *away)))
        return self.store.state

    def _making_room(self, state: State) -> State:
        """The state, with its current table put off if that cannot be read and another one waits for nothing."""
        reading = state.reading
        if reading is None or state.paused:
            return state
        hidden = self.gives_way and unseen(self.seen, reading.wanted.table) is not None
        if not hidden and not has_failed(self.offsets, reading.identified):
            return state
        if not all(self._is_away(one) for one in state.queue):
            self.save(state.put_off())
        return self.store.state

    def _is_away(self, one: Wanted) -> bool:
        """Whether a table has to wait until somebody has fixed something."""
        return unseen(self.seen, one.table) is not None or has_failed(self.offsets, one)

    def _streaming(self, name: TableId, object_id: int | None) -> Streaming | str | None:
        """The table as its stream sees it; a text says why it is never read, None means that it has to wait.

        Raises:
            SourceUnavailableError: It cannot be captured at the moment.
        """
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
            reason = unseen(self.seen, name)
            if reason is not None:
                raise SourceUnavailableError(f"{name} cannot be captured: {reason}")
            return "it is not captured"
        if not self.seen.facts.policy.stream:
            return f"snapshot.mode={self.seen.facts.policy.mode} does not stream, which incremental snapshots need"
        entry = member.entry_in(self.offsets)
        if known.status in {"lost", "excluded"}:
            return f"its status is {known.status}; take a blocking snapshot of it"
        to = entry.to_in(self.offsets.epoch) if entry is not None and entry.status == "streaming" else None
        if known.rekeyed or to is None:
            return None
        position = Lsn.parse(to)
        instance = known.instance_at(position)
        if instance is None:
            return None
        read = self.seen.instance(member.table, instance.object_id)
        schema, self.history = versioned_schema(self.database, member, read, position, self.history)
        return Streaming(member, position, self.offsets.epoch, read, schema, self.history, self.offsets.number)

    def _open(self, session: SourceSession, table: Streaming) -> None:
        state = self.store.state
        refused = state.queue[0].refused
        if refused is not None:
            self.leave("SQL_EXCEPTION", refused)
            return
        try:
            reading = open_table(self.database, session, table, state.queue[0])
        except ConfigurationError as error:
            self.leave("SQL_EXCEPTION" if state.queue[0].surrogate else "NO_PRIMARY_KEY", str(error))
            return
        if reading is None:
            self.leave("EMPTY", "")
            return
        self.save(replace(state, reading=reading, queue=state.queue[1:]))

    def _emit(self, session: SourceSession, table: Streaming) -> None:
        reading = self._reading
        log = prepare(self.database, table)  # Whatever is written from here on fences what is committed below.
        if self._has_moved(table):
            return
        found = emission.caught_up(reading, log)
        self.offsets = emission.record(self.database, session, self.seen, table, log, self.offsets)
        if found != reading:
            self._emitted(table, reading, found)
            reading = found
            if reading.is_done:
                return
        definition = table.schema.keyed_by(reading.keys).key_fingerprint if _has(table, reading) else None
        if reading.epoch != table.epoch or definition != reading.definition:
            # Bounds of another key, or positions of another history, mean nothing: the table is read from its start.
            self._give_up(log, replace(self.store.state, reading=None, queue=(reading.wanted, *self.store.state.queue)))
            return
        stale = any(emission.is_stale(reading, group, table, self.offsets) for group in reading.staged)
        if stale or emission.was_given_up(reading, log):
            self._read_again(log)
            return
        if stream_end(self.database, table) > table.position:
            return  # A run ended before it could record how far it had come; the next range records it.
        groups = emission.passed_groups(session, reading, table.position)
        if groups and emission.was_repaired(groups, log):
            self._read_again(log)
        elif groups:
            self._emit_groups(session, table, groups, log)

    def _emit_groups(self, session: SourceSession, table: Streaming, groups: list[Group], log: TableState) -> None:
        reading = self._reading
        try:
            log = emission.emit(self.database, table, reading, groups, log)
        except FileNotFoundError:
            self._read_again(log)  # VACUUM took it for garbage.
            return
        self.offsets = emission.record(self.database, session, self.seen, table, log, self.offsets)
        self._emitted(table, reading, emission.caught_up(reading, log))

    def _has_moved(self, table: Streaming) -> bool:
        """Whether a row of `_offsets` says something about the table that this step did not know when it began."""
        return table.member.entry_in(self.database.offsets()) != table.member.entry_in(self.offsets)

    def _read_again(self, log: TableState) -> None:
        if self._reading.is_empty:  # It may have rows by now.
            queue = (self._reading.wanted, *self.store.state.queue)
            self._give_up(log, replace(self.store.state, reading=None, queue=queue))
            return
        self._give_up(log, replace(self.store.state, reading=self._reading.given_up()))

    def _give_up(self, log: TableState, state: State) -> None:
        if self._reading.staged and not emission.was_given_up(self._reading, log):
            emission.give_up(self.database, self._reading, log)
        self.save(state)

    def _emitted(self, table: Streaming, before: Reading, after: Reading) -> None:
        is_whole = bool(table.schema.key_columns) and after.wanted.condition is None
        state = replace(self.store.state, reading=after)
        by, done = table.schema.keyed_by(after.keys), before.staged[: len(before.staged) - len(after.staged)]
        shown = partial(_shown, self.database, by)
        uppers = [shown(upper) for group in done for upper in group.uppers or (group.upper,) if upper]
        if not after.is_empty:
            self.notes.emitted(state, after, shown(after.maximum), uppers)
        if not after.is_done:
            self.save(state)
            return
        if is_whole:
            name, low = table.member.table.text, after.begun.text
            entry = table.member.entry_in(self.offsets)
            row = incremental_ended(
                self.database.stamp(after.epoch),
                table=name,
                object_id=table.member.captured.object_id,
                number=after.number,
                batch=(entry.batch if entry is not None else None) or 0,
                low=low,
            )
            self.offsets = append_offsets(
                self.database.layout, row, seen=self.offsets, storage=self.database.storage, known=self.database.tables
            )
        self._leave(state, "EMPTY" if after.is_empty else "SUCCEEDED", "")

    def _read(self, session: SourceSession, table: Streaming) -> None:
        reading = self.store.state.reading
        if reading is None:
            return
        read = self.thread.take(reading) if self.thread is not None else None
        if read is not None:
            reading = self._stage(reading, read)
        if self.store.state.paused or reading.is_read or len(reading.staged) >= MOST_STAGED:
            return
        if not self._may_read(session):
            return
        if self.thread is None:
            self._stage(reading, read_group(self.database, session, table, reading, most=self.budget.most_rows))
        elif self.thread.is_free:
            group = partial(_read_apart, table=table, reading=reading, most=self.budget.most_rows)
            self.thread.begin(self.database, reading, group)

    def _stage(self, reading: Reading, group: Group) -> Reading:
        found = reading.having(group)
        self.has_read = True
        self.save(replace(self.store.state, reading=found, rest=self.budget.rest_after(group.rows)))
        return found

    def _may_read(self, session: SourceSession) -> bool:
        return self.budget.allows(session, self.offsets, rest=self.store.state.rest)

    # -- Ends ----------------------------------------------------------------------------------------------------

    def leave(self, status: str, reason: str) -> None:
        """Continue with the next table.

        Args:
            status: What became of this one.
            reason: Why.
        """
        state = self.store.state
        self.notes.forget()
        if state.is_running:
            self._leave(state, status, reason)

    def _leave(self, before: State, status: str, reason: str) -> None:
        table, rows = before.tables[0], before.reading.rows if before.reading is not None else 0
        state = before.next_table(status, self.budget.clock.now())
        self.has_read = True
        self.notes.left(before, state, rows, status)
        self.save(state.settled())
        said = f": {reason}" if reason else f", {rows} rows" if rows else ""
        self.database.log(f"incremental snapshot of {table}: {status}{said}")

    @property
    def _reading(self) -> Reading:
        reading = self.store.state.reading
        assert reading is not None  # the caller has checked
        return reading

    def save(self, state: State) -> None:
        """Save the state after this step, with the notifications that are due.

        Args:
            state: The state.
        """
        self._replace(state)
        self.moved = True

    def end(self) -> None:
        """Send the notifications that the newest state keeps.

        Raises:
            FencedError: Another run has done so, and has saved a state since.
        """
        self.notes.forget()
        if self.store.state.notes:
            self._replace(self.store.state)

    def _replace(self, state: State) -> None:
        self.notes.tell(self.store.state)
        self.store.save(self.notes.kept_in(state))


def unseen(seen: Survey, table: TableId) -> str | None:
    """Why a table cannot be captured at the moment; None if it is captured, or never will be.

    Args:
        seen: The survey.
        table: The table.
    """
    waits = (one for one in seen.facts.absent if one.former is None and not one.lost and one.status in _STAY)
    return next((one.reason for one in waits if one.table == table), None)


def _read_apart(database: Database, *, table: Streaming, reading: Reading, most: int | None) -> Group:
    """Read a group in a separate session."""
    with database.session() as session:
        return read_group(database, session, table, reading, most=most)


def _has(table: Streaming, reading: Reading) -> bool:
    return {column.name for column in table.schema.columns} >= set(reading.keys)


def _shown(database: Database, by: TableSchema, bound: Bound) -> Bound:
    """The values of a bound as people may see them."""
    return without_hidden(database.connector, by, database.source.shown_key(by, bound))
