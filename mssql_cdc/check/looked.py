"""What is known of a database before its tables are compared: read once, from the lake and from the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable, load_tables
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.check.fence import Fence
from mssql_cdc.check.result import Status
from mssql_cdc.check.story import WholeReads, load_whole_reads
from mssql_cdc.errors import MssqlCdcError, NotCaughtUpError
from mssql_cdc.lake.gaps import Gap, open_gaps
from mssql_cdc.lake.history import SchemaHistory, load_history
from mssql_cdc.lake.offsets import Offsets, load_offsets
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.protocol import CheckSession
from mssql_cdc.source.values import SourceTable


@dataclass(frozen=True, slots=True)
class Looked:
    """What is known of a database before its tables are compared."""

    database: Database
    session: CheckSession
    offsets: Offsets
    history: SchemaHistory
    members: Mapping[TableId, LakeTable]
    structures: Mapping[int, SourceTable]
    statuses: Mapping[str, tuple[Status, str]]
    gaps: Mapping[str, Sequence[Gap]]
    whole_reads: WholeReads
    notes: tuple[str, ...] = ()
    fence: Fence = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fence", Fence(self.database))

    def recorded(self, member: LakeTable) -> TableSchema:
        """The newest structure that the lake has of the table."""
        return self.history.newest(member.table) or member.captured.newest.schema


def look_at(database: Database, session: CheckSession) -> Looked:
    """Look at a database.

    Raises:
        NotCaughtUpError: nothing of it is in the lake.
    """
    notes: list[str] = []
    seen: Survey | None = None
    try:
        seen = survey(database, currents=False)
    except MssqlCdcError as error:
        if error.retriable:
            raise
        notes.append(f"{database.catalog}: tables that no longer exist at the source are not listed because {error}")
    offsets = seen.offsets if seen else load_offsets(database.layout, database.storage)
    history = seen.history if seen else load_history(database.layout, database.storage)
    with database.session() as asked:
        members = seen.tables if seen else load_tables(database, asked.tables(), offsets, history, states=False)
    if not any(offsets.entry(table.text) for table in members) and not offsets.entries:
        raise NotCaughtUpError(
            f"Not caught up yet: nothing of {database.catalog!r} is in {database.layout.root}; "
            "run mssql-cdc run --until-caught-up"
        )
    return Looked(
        database,
        session,
        offsets,
        history,
        members,
        {one.object_id: one for one in session.tables()},
        _statuses(seen, offsets),
        open_gaps(database.layout, database.storage),
        load_whole_reads(database),
        tuple(notes),
    )


def _statuses(seen: Survey | None, offsets: Offsets) -> dict[str, tuple[Status, str]]:
    """The tables whose rows may be missing, with the reason; `gone` is what the source does not show any more."""
    found: dict[str, tuple[Status, str]] = {
        name: ("lost" if entry.status == "lost" else "failed", entry.reason or "changes were lost")
        for name, entry in offsets.entries.items()
        if entry.status in {"lost", "failed"}
    }
    if seen is not None:
        absent = {one.table.text for one in seen.facts.absent}
        missing = standings(seen).missing
        found |= {name: ("gone", reason) for name, reason in missing.items() if name in absent}
    return found
