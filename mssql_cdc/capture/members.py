"""The captured tables in the lake: homes, loaded states, schema versions.

Everything is loaded before the source is read (rule A3); commits are based on these states only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import TamperedTableError
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.history import SchemaHistory, record_versions
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState, create_table, load_state
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.properties import CHANGE_LOG_PROPERTIES, CHANGE_LOG_STATS, KEY
from mssql_cdc.lake.steps import Entry, Reached
from mssql_cdc.lake.tamper import last_streamed_position, verify_untouched
from mssql_cdc.lsn import Position
from mssql_cdc.schema import TableId, TableSchema, change_log_schema
from mssql_cdc.source.values import CapturedTable, CaptureInstance

STREAM = ""
SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A captured table as the lake knows it.

    `entry` is its newest `_offsets` entry, even under its name before a rename; `state` is that of its change log as
    the streaming writer sees it (None: not loaded, or no table yet); `incarnation` counts re-creations (rule B15).
    """

    captured: CapturedTable
    home: TableHome
    folder: str
    entry: Entry | None
    state: TableState | None
    incarnation: int = 1
    recreated: bool = False

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

    def reached(self, epoch: int) -> Reached | None:
        """The table's position in this epoch, from its own commits and its entry (rule A1)."""
        known = [self.own(), self.entry.reached if self.entry else None]
        return max((one for one in known if one is not None and one.epoch == epoch), default=None)

    def new_entry(self, **changes: object) -> Entry:
        """Build an entry with the table's fixed values and these new ones."""
        base = self.entry or Entry("streaming")
        fixed = {"folder": self.folder, "incarnation": self.incarnation, "reason": None, "rows": 0}
        return replace(base, **{**fixed, **changes})  # type: ignore[arg-type]


def load_tables(
    database: Database,
    tables: Iterable[CapturedTable],
    offsets: Offsets,
    history: SchemaHistory,
    *,
    states: bool = True,
) -> dict[TableId, LakeTable]:
    """Load the captured tables with their homes and, if requested, the states of their change logs.

    Raises:
        StorageError: a table's folder belongs to another connector.
        TamperedTableError: another writer changed a change log (rule A5).
    """
    tables = list(tables)
    present = {table.table_id.text for table in tables}
    folders = database.layout.folders({table.table_id: table.object_id for table in tables})
    members = {}
    for table in tables:
        name = table.table_id.text
        entry = offsets.entry(name)
        if entry is None:
            entry = _renamed(table, present, offsets, history)
        known = history.newest(table.table_id)
        incarnation = entry.incarnation if entry else 1
        recreated = bool(entry and known and known.object_id != table.object_id and known.incarnation == incarnation)
        folder = (entry.folder if entry else None) or folders[table.table_id]
        home = database.layout.home(table.table_id, folder=folder)
        state = load_state(home.changes, owner=home.app_id, storage=database.storage) if states else None
        if state is not None and entry is not None and entry.status != "lost":
            verify_untouched(state, table_id=entry.delta_table_id, delta_version=entry.delta_version)
        if states and state is None and entry is not None and entry.batch:
            raise TamperedTableError(
                f"The change log {home.changes} of {name} is gone, but _offsets knows {entry.batch} commits of it; "
                "put the folder back, or remove the connector's whole folder and start afresh"
            )
        members[table.table_id] = LakeTable(
            table, home, folder, entry, state, incarnation + 1 if recreated else incarnation, recreated
        )
    return members


def _renamed(table: CapturedTable, present: set[str], offsets: Offsets, history: SchemaHistory) -> Entry | None:
    """Return the entry under a table's former name; its identity is the source's object id (rule B15, STR-21)."""
    for name, versions in history.versions.items():
        if name not in present and versions[-1].object_id == table.object_id:
            return offsets.entry(name)
    return None


def versioned(
    database: Database, wanted: Mapping[TableId, tuple[CaptureInstance, int]], history: SchemaHistory
) -> tuple[dict[TableId, TableSchema], SchemaHistory]:
    """Return the schemas of these instances (with their tables' incarnations) with versions; new ones are recorded."""
    schemas = [replace(instance.schema, incarnation=number) for instance, number in wanted.values()]
    found, history = record_versions(
        database.layout, schemas, known=history, at=datetime.now(UTC), storage=database.storage
    )
    return dict(zip(wanted, found, strict=True)), history


def prepared(database: Database, member: LakeTable, schema: TableSchema, writer: str = STREAM) -> TableState:
    """Return the change log's state for this writer; create or evolve the table for the schema's rows.

    Raises:
        SchemaError: the table cannot take the schema.
    """
    home, wanted = member.home, change_log_schema(schema)
    state = member.state if writer == STREAM else _load(database, home, writer)
    if state is None:
        create_table(
            home.changes,
            wanted,
            owner=home.app_id,
            properties={**CHANGE_LOG_PROPERTIES, KEY: schema.key_fingerprint or ""},
            stats_columns=CHANGE_LOG_STATS,
            storage=database.storage,
            spark=database.spark,
        )
        state = _load(database, home, writer)
    assert state is not None  # it was created above
    return evolve(state, wanted, database.spark)


def _load(database: Database, home: TableHome, writer: str) -> TableState | None:
    return load_state(home.changes, owner=home.app_id, writer=writer, storage=database.storage)
