"""What is known about a database before its tables are compared: read once, from the lake and from the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable, load_tables
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.check.fence import Fence
from mssql_cdc.check.refresh import Refreshed
from mssql_cdc.check.result import NotLookedAt, Status, TableCheck
from mssql_cdc.check.story import WholeReads, load_whole_reads
from mssql_cdc.errors import MssqlCdcError, NotCaughtUpError, SourceError, SourceRestoredError, StorageError
from mssql_cdc.lake.gaps import Gap
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.named_gaps import gaps_by_name
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.plan.planner import lost
from mssql_cdc.run.standing import restored
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.protocol import CheckSession
from mssql_cdc.source.values import SourceTable

NOTHING_FAILED = Refreshed()


@dataclass(frozen=True, slots=True)
class Looked:
    """What is known about a database before its tables are compared.

    `statuses` are those of the members that may lack rows, `absent` those of the tables that are not members: the
    source no longer shows them, or they cannot be captured; each with the reason. `unmerged` are those whose current
    tables could not be updated. `restored` is the error of a source that went back in time, `error` why the database
    could not be surveyed as a run does.
    """

    database: Database
    session: CheckSession
    offsets: Offsets
    history: SchemaHistory
    members: Mapping[TableId, LakeTable]
    structures: Mapping[int, SourceTable]
    statuses: Mapping[str, tuple[Status, str]]
    absent: Mapping[TableId, tuple[Status, str]]
    gaps: Mapping[str, Sequence[Gap]]
    whole_reads: WholeReads
    notes: tuple[str, ...] = ()
    unmerged: Mapping[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    restored: MssqlCdcError | None = None
    error: MssqlCdcError | None = None
    fence: Fence = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fence", Fence(self.database, self.restored))

    def recorded(self, member: LakeTable) -> TableSchema:
        """The newest structure that the lake has for the table."""
        return self.versions(member)[-1]

    def versions(self, member: LakeTable) -> Sequence[TableSchema]:
        """Every structure that the lake has for the table, oldest first, under every name that it has had."""
        return self.history.versions.get(member.table.text) or (member.captured.newest.schema,)

    def structure(self, member: LakeTable) -> SourceTable:
        """The table as the source's own catalog has it.

        Raises:
            SourceError: The login does not see it there.
        """
        found = self.structures.get(member.captured.object_id)
        if found is None:
            raise SourceError(
                f"{member.table} is not among the tables that the login sees, although it is captured: it was dropped "
                "meanwhile, or SELECT on it was revoked; grant SELECT, or run mssql-cdc run, and check again"
            )
        return found


def look_at(database: Database, session: CheckSession, refreshed: Refreshed = NOTHING_FAILED) -> Looked:
    """Gather what is known about a database.

    Args:
        database: The database.
        session: Queries its source.
        refreshed: The outcome of merging its current tables.

    Raises:
        NotCaughtUpError: nothing of it is in the lake.
        StorageError: `_offsets` or `_schema_history` lacks what was in it.
    """
    notes: list[str] = []
    seen: Survey | None = None
    failure = refreshed.error
    if failure is not None:
        notes.append(f"{database.catalog}: the current tables could not be updated: {failure}")
    try:
        seen = survey(database, currents=False)
    except MssqlCdcError as error:
        if error.retriable or isinstance(error, StorageError):
            raise
        failure = error
        notes.append(
            f"{database.catalog}: tables that no longer exist at the source, and changes that were lost since the last "
            f"run, are not listed because {error}"
        )
    went_back = restored(seen) if seen is not None else None
    if went_back is not None:
        notes.append(f"{database.catalog}: {went_back}")
    offsets = seen.offsets if seen else database.offsets()
    history = seen.history if seen else database.history()
    members = seen.tables if seen else None
    if members is None:
        with database.session() as asked:
            tables = asked.tables()
        present = {table.table_id: table.object_id for table in tables}
        history = history.identified(present, offsets.met(present))
        members = load_tables(database, tables, offsets, history, states=False)
    if not any(offsets.entry(table.text) for table in members) and not offsets.entries:
        raise NotCaughtUpError(
            f"Not caught up yet: nothing of {database.catalog!r} is in {database.layout.root}; "
            "run mssql-cdc run --until-caught-up"
        )
    # Tables that are not captured were read once (SNP-03): nothing shows how they have changed since.
    members = {table: member for table, member in members.items() if member.captured.newest.streams}
    structures = {one.object_id: one for one in session.tables()}
    return Looked(
        database,
        session,
        offsets,
        history,
        members,
        structures,
        _statuses(seen, members.values()),
        _absent(seen, structures.values()),
        gaps_by_name(database.layout, offsets, history.versions, database.storage),
        load_whole_reads(database),
        tuple(notes),
        refreshed.errors,
        went_back,
        failure,
    )


def _statuses(seen: Survey | None, members: Iterable[LakeTable]) -> dict[str, tuple[Status, str]]:
    """The tables that may lack rows, with the reason and the remedy, even if no run has met the loss yet.

    The entry of a renamed table is under its former name until a row has the new one (B15); and a loss of the table
    that used to have a name is not a loss of the table that has it now.
    """
    found: dict[str, tuple[Status, str]] = {
        member.table.text: _status(entry.status, entry.reason or "")
        for member in members
        if (entry := member.entry) is not None and entry.status in {"lost", "failed"}
    }
    losses = lost(seen.facts) if seen is not None and not seen.facts.restored else None
    own = [loss for loss in (losses.losses if losses else ()) if not loss.former]
    return found | {loss.table.text: _status("lost", loss.reason) for loss in own}


def _status(status: str, reason: str) -> tuple[Status, str]:
    if status == "lost":
        return "lost", f"{reason or 'changes were lost'}. Take a new snapshot of it (mssql-cdc snapshot --table)"
    return "failed", f"{reason or 'it was given up'}. mssql-cdc run tries it again at its next start"


def _absent(seen: Survey | None, structures: Iterable[SourceTable]) -> dict[TableId, tuple[Status, str]]:
    """`gone` are tables that the source no longer shows, `failed` those it shows that cannot be captured as they are.

    A table whose name another table has now is distinguished from that table by its object id.
    """
    captured = {one.table_id for one in structures if one.captured}
    return {
        one.shown: ("failed" if one.shown in captured else "gone", one.reason)
        for one in (seen.facts.absent if seen is not None else ())
    }


def wanted(looked: Looked) -> list[LakeTable]:
    """Every captured table except the signal table, whose rows are never snapshotted (SNP-27).

    Args:
        looked: What is known about the database.
    """
    is_signal_table = looked.database.connector.filters.tables.is_signal_table
    return [member for table, member in looked.members.items() if not is_signal_table(*table.parts)]


def absent_tables(looked: Looked) -> Iterator[TableCheck]:
    """The tables that the lake has but the source does not show, and those that cannot be captured as they are.

    Args:
        looked: What is known about the database.
    """
    for table, (status, reason) in looked.absent.items():
        yield TableCheck(table=table, status=status, notes=(reason,))


def not_looked_at(looked: Looked) -> NotLookedAt:
    """The tables that no check covers.

    Args:
        looked: What is known about the database.
    """
    members = {member.captured.object_id for member in looked.members.values()}
    others = [
        one
        for one in looked.structures.values()
        if one.object_id not in members and looked.absent.get(one.table_id, ("gone", ""))[0] == "gone"
    ]
    compared = {member.table for member in wanted(looked)}
    signals = [table for table in looked.members if table not in compared]
    return NotLookedAt(
        looked.database.catalog,
        tuple(sorted(one.table_id for one in others if not one.captured)),
        tuple(sorted(one.table_id for one in others if one.captured)),
        (
            *looked.notes,
            *(f"not compared: {table}, the signal table, whose rows are never snapshotted" for table in signals),
        ),
        looked.restored if isinstance(looked.restored, SourceRestoredError) else None,
        looked.error,
    )
