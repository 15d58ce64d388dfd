"""Lets a new lake continue from a Debezium connector's position: its tables stream from there, without a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import versioned
from mssql_cdc.capture.remaining_snapshots import request_remaining
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import ConfigurationError, DataLostError, SourceRestoredError, StaleReaderError
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, positions_taken
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.facts import Instance, Member
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import Witness

_ID = "take-over"


@dataclass(frozen=True, slots=True)
class TakeOver:
    """What was found in a database that is taken over; nothing is written before `carry_out`.

    Attributes:
        database: The database.
        offset: Where its tables are to stream from.
        commit: The offset's commit.
        position: The position after which they stream.
        seen: The survey.
        taken: The capture instance of each table; None: an earlier call has taken the database over at this position.
        witness: What proves later that the source's history is still the same (A7).
    """

    database: Database
    offset: SourceOffset
    commit: Lsn
    position: Lsn
    seen: Survey
    taken: Mapping[TableId, Instance] | None = None
    witness: Witness | None = None

    @property
    def is_done(self) -> bool:
        """Whether an earlier call has taken the database over."""
        return self.taken is None

    def carry_out(self) -> tuple[TableId, ...]:
        """Let the tables stream, unless this is already done, and return them."""
        if self.taken is None:
            return ()
        # Before the state: a process that dies in between requests the same again.
        request_remaining(self.database, self.offset, tuple(self.seen.tables))
        _write(self.database, self.seen, self.taken, self.position, self.witness)
        return tuple(self.taken)


def take_over(database: Database, offset: SourceOffset) -> tuple[TableId, ...]:
    """Run `prepare` and `TakeOver.carry_out` for one database; return its tables, and raise what these raise.

    Args:
        database: The database.
        offset: The changes up to it are known elsewhere.
    """
    return prepare(database, offset).carry_out()


def prepare(database: Database, offset: SourceOffset) -> TakeOver:
    """Find every table that was captured at an offset, and what keeps it from streaming from there on.

    A table whose capture instance is younger was unknown to the other connector: it begins as any new table does. What
    that connector's incremental snapshot has not read is requested again.

    Args:
        database: A database without a lake, or one that was taken over at this offset.
        offset: The changes up to it are known elsewhere; of its own commit, perhaps only a part.

    Raises:
        ConfigurationError: The lake has begun, the offset has no position to stream from, or the source captures
            nothing that could be taken over.
        DataLostError: The source no longer has all changes after the position.
        SourceRestoredError: The source does not have the offset's commit: it has another history.
    """
    commit = offset.commit
    if commit is None or offset.begins_again:
        raise ConfigurationError(f"The offset of {database.catalog} is not one after a completed snapshot")
    position = commit.decrement() if offset.reads_again else commit
    seen = survey(database)
    if _has_taken(seen.offsets, position):
        return TakeOver(database, offset, commit, position, seen)
    if seen.offsets.entries:
        raise ConfigurationError(
            f"{database.layout.root} already has the state of {database.catalog}; expected none. Take over into a new "
            "folder, or leave the offsets out to continue from this state"
        )
    with database.session() as session:
        witness, newest = seen.witness(session, commit), session.standing().maximum
        if witness is not None or newest is None or commit > newest:
            _require_commit(session, commit)
    taken = {one.table: found for one in seen.facts.members if (found := _instance(one, position)) is not None}
    at = datetime.fromisoformat(witness.tran_end_time) if witness is not None and witness.start_lsn == commit else None
    lost = _lost(seen, [one for one in seen.facts.members if one.table not in taken], at)
    lost += [
        f"{table} (its oldest change is {instance.min_lsn.text})"
        for table, instance in taken.items()
        if instance.min_lsn and instance.min_lsn > position.increment()
    ]
    if lost:
        raise DataLostError(
            f"CDC cleanup removed changes after {commit.text} of {', '.join(lost)}. Take a snapshot: start without "
            "the offsets"
        )
    if not taken:
        raise ConfigurationError(
            f"No captured table of {database.catalog} has a capture instance that begins before {commit.text}; are "
            "these the offsets of this database?"
        )
    return TakeOver(database, offset, commit, position, seen, taken, witness)


def _has_taken(offsets: Offsets, position: Lsn) -> bool:
    """Whether the lake began by taking over at this position."""
    first = next(iter(offsets.snapshot_rows), None)
    return (
        first is not None
        and first.partition == _ID
        and {entry.to for entry in first.tables.values()} == {position.text}
    )


def _instance(member: Member, position: Lsn) -> Instance | None:
    """Return the newest capture instance that has everything after a position."""
    begun = [one for one in member.instances if one.start <= position.increment()]
    return begun[-1] if begun else None


def _require_commit(session: SourceSession, commit: Lsn) -> None:
    """Require that the source has the commit of the offset; not checked where cleanup may have removed it."""
    try:
        session.require_visible(commit)
    except StaleReaderError:
        raise SourceRestoredError(
            f"The source does not have commit {commit.text}, at which the offset is: it was restored, a failover "
            "lost the commit, or the offsets are those of another database. Changes on either side of it may be "
            "missing: take a snapshot, that is, start without the offsets. (A replica that has not come so far will "
            "have the commit later: try again then.)"
        ) from None


def _lost(seen: Survey, members: Sequence[Member], at: datetime | None) -> list[str]:
    """Return the tables that were captured at the time of the commit, and whose changes after it are gone.

    Cleanup raises the start of a capture instance, so only its creation date shows whether it is younger than the
    commit.
    """
    return [
        f"{one.table} (its capture instances begin at {one.instances[0].start.text})"
        for one in members
        if one.instances and (at is None or min(_created(seen, one.table)) <= at)
    ]


def _created(seen: Survey, table: TableId) -> list[datetime]:
    return [instance.created for instance in seen.tables[table].captured.instances]


def _write(
    database: Database, seen: Survey, taken: Mapping[TableId, Instance], position: Lsn, witness: Witness | None
) -> None:
    epoch = seen.facts.epoch
    known = {table: seen.tables[table] for table in taken}
    captured = {
        table: next(one for one in found.captured.instances if one.object_id == taken[table].object_id)
        for table, found in known.items()
    }
    structures = {table: found.structure(captured[table], position) for table, found in known.items()}
    schemas, _ = versioned(database, structures, seen.history)
    entries: dict[str, Entry] = {}
    for table, found in known.items():
        number = schemas[table].version
        entries[table.text] = found.new_entry(
            status="streaming",
            epoch=epoch,
            to=position.text,
            instance=captured[table].identity,
            shown=found.shown,
            schema=number,
            filled=number,
        )
    row = positions_taken(database.stamp(epoch), entries, snapshot=_ID, witness=witness)
    append_offsets(database.layout, row, seen=seen.offsets, storage=database.storage)
