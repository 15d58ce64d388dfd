"""The captured tables in the lake: homes, loaded states, schema versions.

Everything is loaded before the source is read (rule A3); commits are based on these states only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from mssql_cdc.capture.continued_columns import tell_continued_columns
from mssql_cdc.capture.database import Database
from mssql_cdc.errors import FencedError, StorageError, TamperedTableError
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.gaps import Gap
from mssql_cdc.lake.history import SchemaHistory, record_versions
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState, create_table, load_state, newest_facts
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.properties import CHANGE_LOG_PROPERTIES, CHANGE_LOG_STATS
from mssql_cdc.lake.steps import Entry, Reached, witness_of_text
from mssql_cdc.lake.tamper import last_streamed_position, verify_untouched
from mssql_cdc.lsn import Lsn, Position
from mssql_cdc.schema import TableId, TableSchema, UniqueKey, change_log_schema
from mssql_cdc.source.values import CapturedTable, CaptureInstance, Witness

STREAM = ""
SNAPSHOT = "snapshot"
GONE_ADVICE = "Restore the folder, or take a new snapshot of the table"
DAMAGED_ADVICE = "or move the folder away and take a new snapshot of the table"


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A captured table as the lake knows it.

    `entry` is its newest `_offsets` entry, perhaps under the name that it had before a rename; `state` that of its
    change log as the stream's writer sees it (None: no table yet, or not `loaded`); `incarnation` counts re-creations
    (rule B15). `least_batch` is the largest `_batch` that the table, or another one under its name, ever had.
    `tampered`: another program changed the change log (rule A5); `problem`: it cannot be written to at all.
    """

    captured: CapturedTable
    home: TableHome
    folder: str
    entry: Entry | None
    state: TableState | None
    incarnation: int = 1
    recreated: bool = False
    tampered: str | None = None
    problem: str | None = None
    least_batch: int = 0
    loaded: bool = True

    @property
    def table(self) -> TableId:
        """The table's current name."""
        return self.captured.table_id

    def own(self) -> Reached | None:
        """The end of the table's own streamed commits (rule A1), even if log cleanup removed their facts."""
        state = self.state
        if state is None or not state.own_batch:
            return None
        if state.own is not None and state.own.get("to"):
            return Reached(int(state.own.get("epoch", 0)), str(state.own["to"]))
        text = last_streamed_position(state)
        found = Position.parse(text) if text else None
        return Reached(found.epoch, found.commit_lsn.text) if found else None

    @property
    def is_as_recorded(self) -> bool:
        """Whether the change log, which was loaded, holds what the table's entry says: nobody has advanced it since."""
        known, own = self.entry.reached if self.entry is not None else None, self.own()
        is_reached = own is None or (known is not None and own <= known)
        return not self.tampered and not self.problem and is_reached and not self._has_unrecorded

    @property
    def _has_unrecorded(self) -> bool:
        """Whether the stream has a commit after which no row was written: another row may have copied its position."""
        known = self.entry.batch if self.entry is not None else None
        return self.state is not None and self.state.own_batch > (known or 0)

    @property
    def own_witness(self) -> Witness | None:
        """The proof that the source's history is that of the table's own commits that no row records (A7)."""
        if self.is_as_recorded or self.state is None or self.state.own is None:
            return None
        return witness_of_text(self.state.own.get("witness"))

    @property
    def snapshot_witness(self) -> Witness | None:
        """The proof that the source's history is that of the groups that its open snapshot has read (A7)."""
        if self.state is None or self.entry is None or self.entry.status != "snapshot":
            return None
        facts = newest_facts(self.state, SNAPSHOT)
        is_now = facts is not None and facts.get("kind") == "snapshot" and facts.get("epoch") == self.entry.epoch
        return witness_of_text(facts.get("witness")) if facts is not None and is_now else None

    def reached(self, epoch: int) -> Reached | None:
        """The table's position in this epoch, from its own commits and its entry (rule A1)."""
        known = [self.own(), self.entry.reached if self.entry else None]
        return max((one for one in known if one is not None and one.epoch == epoch), default=None)

    def entry_in(self, offsets: Offsets) -> Entry | None:
        """The table's newest entry in these offsets, which may be newer than those it was loaded with (B15)."""
        return offsets.entry_of(self.table.text, self.captured.object_id, folder=self.folder)

    def furthest(self, offsets: Offsets, epoch: int) -> str:
        """The furthest position in this epoch of the table, or of another one under its name; empty if none."""
        own, named = self.own(), offsets.furthest(self.table.text, epoch)
        return max(named, own.to) if own is not None and own.epoch == epoch else named

    def structure(self, instance: CaptureInstance, position: Lsn | None) -> TableSchema:
        """The structure of this instance's rows after a position: a new version of it takes effect there.

        Args:
            instance: whose rows are read.
            position: the position of the table's stream; None if it has not begun.
        """
        begins = max(instance.start_lsn, position.increment()) if position is not None else instance.start_lsn
        return replace(instance.schema, incarnation=self.incarnation, from_lsn=begins.text)

    def new_entry(self, **changed: Any) -> Entry:
        """The table's newest entry for a new row: with this incarnation, without the last entry's rows and reason.

        Args:
            changed: What else differs from the newest entry.
        """
        own = {"folder": self.folder, "incarnation": self.incarnation, "object_id": self.captured.object_id}
        return replace(self.entry or Entry("streaming"), **{"reason": None, "rows": 0, **own, **changed})

    def has_gap(self, gap: Gap, offsets: Offsets) -> bool:
        """Whether a gap under one of the table's names is its own, or of the one that it replaced (B15).

        Args:
            gap: The gap.
            offsets: All offsets.
        """
        return offsets.history.folders_at(gap.table, Reached(gap.epoch, gap.from_)) <= {self.folder}

    @property
    def shown(self) -> str:
        """The identities of the instances that the source shows now, for a position that is taken now (B14)."""
        return " ".join(instance.identity for instance in self.captured.instances)

    def instances_at(self, epoch: int) -> tuple[str | None, frozenset[str]]:
        """The instance that was read up to the table's position, and all that were shown there (B14).

        Args:
            epoch: The epoch of the position.
        """
        entry, own = self.entry, self.state.own if self.state is not None else None
        known = entry.reached if entry is not None and entry.epoch == epoch else None
        committed = self.own()
        # A run may have died between the commit and its `_offsets` row.
        newer = committed is not None and committed.epoch == epoch and (known is None or committed >= known)
        if own is not None and "shown" in own and newer:
            return own["instance"], frozenset(str(own["shown"]).split())
        return (entry.instance, frozenset((entry.shown or "").split())) if entry is not None else (None, frozenset())


def load_tables(
    database: Database,
    tables: Iterable[CapturedTable],
    offsets: Offsets,
    history: SchemaHistory,
    *,
    states: bool = True,
) -> dict[TableId, LakeTable]:
    """Load the captured tables with their homes and, if requested, the states of their change logs.

    Args:
        database: The database.
        tables: The captured tables.
        offsets: All offsets of the database.
        history: The schema history, `identified` by these tables.
        states: Whether to load the states of the change logs.

    Raises:
        StorageError: `_offsets` or `_schema_history` lacks what was in it.
    """
    tables = list(tables)
    folders: Mapping[TableId, str] | None = None
    members: dict[TableId, LakeTable] = {}
    for table in tables:
        name, known = table.table_id.text, history.newest(table.table_id)
        entry = _entry_of(table, offsets, history)
        if entry is not None and entry.schema is not None and not history.holds(table.table_id, entry.schema):
            raise StorageError(
                f"{database.layout.own('schema_history')} lacks version {entry.schema} of {name}, which rows of its "
                "change log need. Restore the folder; or, if no captured table was altered since the last run, set "
                "snapshot.mode=recovery and start again; or delete the connector's folder and start again"
            )
        incarnation = entry.incarnation if entry else 1
        recreated = entry is not None and entry.object_id not in {None, table.object_id}
        folder = entry.folder if entry else None
        if folder is None:
            # The folder of a table that was renamed stays with that table.
            if folders is None:
                folders = database.layout.folders({table.table_id: table.object_id for table in tables})
            folder = folders[table.table_id]
            folder = f"{folder}!{table.object_id}" if folder in offsets.folders else folder
        home = database.layout.home(table.table_id, folder=folder)
        state, tampered, problem = _state(database, home, entry) if states else (None, None, None)
        members[table.table_id] = LakeTable(
            captured=_under_former_key(table, known),
            home=home,
            folder=folder,
            entry=entry,
            state=state,
            incarnation=incarnation + 1 if recreated else incarnation,
            recreated=recreated,
            tampered=tampered,
            problem=problem,
            least_batch=max(offsets.largest_batches.get(name, 0), (entry.batch or 0) if entry else 0),
            loaded=states,
        )
    if not offsets.number:
        _require_offsets(database, members.values())
    return members


def with_state(database: Database, member: LakeTable) -> LakeTable:
    """The table with the state of its change log, which `load_tables` was not asked to load.

    Args:
        database: The database.
        member: The table.
    """
    state, tampered, problem = _state(database, member.home, member.entry)
    return replace(member, state=state, tampered=tampered, problem=problem, loaded=True)


def _require_offsets(database: Database, members: Iterable[LakeTable]) -> None:
    """Raise StorageError if change logs have rows and `_offsets` has none: tables would start over, without a gap (A5).

    A snapshot writes `_offsets` before its first rows, so another run that has begun since is found by reading
    `_offsets` again.
    """
    begun = [one.table.text for one in members if one.state is not None and one.state.batch]
    if not begun or database.offsets().number:
        return
    raise StorageError(
        f"{database.layout.own('offsets')} is gone, and the change logs of {', '.join(sorted(begun))} are there: "
        "without it, their positions are not known. Restore its folder as it was when the connector ran last; if there "
        f"is no such copy, move {database.layout.root} away and start again: every table is then read again"
    )


def require_newest(database: Database, offsets: Offsets, members: Iterable[LakeTable]) -> None:
    """Raise StorageError if a commit of a change log was planned from more rows of `_offsets` than there are (A5).

    In that case an older copy is in its place: snapshots that have ended and epochs that have begun since then would be
    unknown, and row numbers would be assigned again. Rows that another run has written since the offsets were loaded
    are found by reading `_offsets` again.

    Args:
        database: The database.
        offsets: The offsets with which the tables were loaded.
        members: The tables; those without a state are not checked.
    """
    planned = {
        one.table.text: int(one.state.own.get("offsets", 0))
        for one in members
        if one.state is not None and one.state.own is not None
    }
    later = sorted(name for name, number in planned.items() if number > offsets.number)
    if not later or database.offsets().number >= max(planned.values()):
        return
    raise StorageError(
        f"{database.layout.own('offsets')} is older than the change logs of {', '.join(later)}: they continue from row "
        f"{max(planned.values())}, and it ends with {offsets.number}. A copy of before was put in its place. Put back "
        "the folder as it was when the connector ran last; if there is no such copy, move "
        f"{database.layout.root} away and start again: every table is then read again"
    )


def _entry_of(table: CapturedTable, offsets: Offsets, history: SchemaHistory) -> Entry | None:
    """The table's newest entry, found by the source's object id: names are taken over and exchanged (rule B15).

    A table that was dropped and re-created continues the one that had its name. An identity that the source assigned
    again after a restore is that of another table: the history, which knows the present names of all tables,
    distinguishes the two.
    """
    known = history.newest(table.table_id)
    named = offsets.entry(table.table_id.text)
    if named is not None and named.object_id == table.object_id:
        return offsets.entry_of(table.table_id.text, table.object_id, folder=named.folder)
    if not history.versions or (known is not None and known.object_id == table.object_id):
        own = offsets.entry_of(table.table_id.text, table.object_id)
        if own is not None:
            return own
    return named if named is not None and (named.object_id is None or known is not None) else None


def _state(
    database: Database, home: TableHome, entry: Entry | None
) -> tuple[TableState | None, str | None, str | None]:
    """The state of a table's change log, whether it was tampered with, and its problem: neither concerns others."""
    try:
        state = _load(database, home, STREAM)
    except StorageError as error:
        return None, None, f"{error}, {DAMAGED_ADVICE}"
    if state is not None:
        state = replace(state, checked=None)  # It is checked here.
    if entry is None or entry.status == "lost":
        return state, None, None
    try:
        if state is not None:
            verify_untouched(state, table_id=entry.delta_table_id, delta_version=entry.delta_version, batch=entry.batch)
        elif entry.batch:
            raise TamperedTableError(f"The change log {home.changes} is gone. {GONE_ADVICE}")
    except TamperedTableError as error:
        return state, str(error), None
    return state, None, None


def _under_former_key(table: CapturedTable, known: TableSchema | None) -> CapturedTable:
    """The table with its former key, as long as that still identifies its rows: an additional index changes nothing."""
    if known is None or known.object_id != table.object_id or not known.key_columns:
        return table
    return replace(table, instances=tuple(_keyed_by(known.key, instance) for instance in table.instances))


def _keyed_by(former: UniqueKey, instance: CaptureInstance) -> CaptureInstance:
    """The instance with this key if it still has it, otherwise with its best one."""
    key = next((one for one in instance.keys if one.continues(former)), None)
    if key is None or key == instance.schema.key:
        return instance
    return replace(instance, schema=instance.schema.keyed_by(key.columns, constraint=key.constraint))


def versioned(
    database: Database, wanted: Mapping[TableId, TableSchema], history: SchemaHistory
) -> tuple[dict[TableId, TableSchema], SchemaHistory]:
    """Return these structures (`LakeTable.structure`) with their versions; record new ones.

    Args:
        database: The database.
        wanted: The structure of each table to read.
        history: The schema history, to which new structures are added.
    """
    found, recorded = record_versions(
        database.layout, list(wanted.values()), known=history, at=datetime.now(UTC), storage=database.storage
    )
    if recorded is not history:
        tell_continued_columns(database, found, before=history, after=recorded)
    return dict(zip(wanted, found, strict=True)), recorded


def prepared(database: Database, member: LakeTable, schema: TableSchema, writer: str = STREAM) -> TableState:
    """Return the change log's state for this writer; create or evolve the table for the schema's rows.

    Args:
        database: The database.
        member: The table.
        schema: The structure of the rows to come.
        writer: `STREAM` or `SNAPSHOT`.

    Raises:
        SchemaError: the table cannot take the schema.
        FencedError: the table did not exist when this run began, and has rows of the stream now; or it was not loaded,
            since it had nothing to read; or it is not the table that this run has checked.
    """
    home, wanted = member.home, change_log_schema(schema)
    if writer == STREAM and not member.loaded:
        raise FencedError(f"{home.changes} was not checked, since {member.table} had no changes; now it has")
    state = member.state if writer == STREAM else _load(database, home, writer)
    if state is None:
        create_table(
            home.changes,
            wanted,
            owner=home.app_id,
            properties=CHANGE_LOG_PROPERTIES,
            stats_columns=CHANGE_LOG_STATS,
            storage=database.storage,
            spark=database.spark,
        )
        state = _load(database, home, writer)
        if state is not None and writer == STREAM and state.own_batch:
            raise FencedError(f"Another run has created {home.changes} and read a range into it since this run began")
    assert state is not None  # it was created above
    state = evolve(_as_judged(state, member), wanted, database.spark)
    # `_batch` never repeats (rule A3), even in a log put in the place of another, or under its name.
    return replace(state, batch=max(state.batch, member.least_batch))


def _as_judged(state: TableState, member: LakeTable) -> TableState:
    """The state, from which the next survey resumes where this run's ended: what came after is not checked yet (A5).

    Raises:
        FencedError: another table is in the place of the one that the survey has seen.
    """
    seen, entry = member.state, member.entry
    if seen is not None and seen.table_id != state.table_id:
        raise FencedError(f"{state.uri} was replaced since this run checked it; the next survey judges it")
    judged = seen.known_version if seen is not None else entry.delta_version if entry is not None else None
    if judged is None or judged >= state.delta_version:
        return state
    return replace(state, checked=judged)


def _load(database: Database, home: TableHome, writer: str) -> TableState | None:
    if writer == STREAM:
        return database.states.load(home.changes, owner=home.app_id, storage=database.storage)
    return load_state(home.changes, owner=home.app_id, writer=writer, storage=database.storage)
