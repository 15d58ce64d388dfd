"""Records lost changes: the ledger, the tables' status, and the next epoch (rules A7, A9).

The planner detects a loss; this module records it. A snapshot repairs it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import mark_status
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.config.signals import expand_collections
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.gaps import Gap, record_gaps
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Reached, epoch_begun, status_changed
from mssql_cdc.plan.decisions import Lost
from mssql_cdc.plan.facts import Absent
from mssql_cdc.schema import TableId, TableSchema


def write_loss(database: Database, seen: Survey, decision: Lost) -> Offsets:
    """Record the gaps in the ledger, then set the tables' status to `lost`.

    After a crash between the two, the next survey finds the same gaps again.

    Args:
        database: The database.
        seen: The survey that found the loss.
        decision: The losses.
    """
    epoch, redact = seen.facts.epoch, database.connector.redact
    gaps = [Gap(one.table.text, epoch, one.position.text, None, redact(one.reason)) for one in decision.losses]
    record_gaps(database.layout, gaps, run_id=database.run_id, storage=database.storage)
    stopped = {loss.table: loss.reason for loss in decision.losses if not loss.former}
    return mark_status(database, seen, stopped, "lost") if stopped else seen.offsets


def write_restore(database: Database, seen: Survey) -> list[TableId]:
    """Record the gaps of a source that went back in time: every table's changes after its position.

    Everything that the lake holds beyond the restore point never happened in the source's new history, and no change
    log contains what has happened since. Returns the tables whose gap was not recorded before.
    """
    reached, reason = _reached(seen), database.connector.redact(seen.facts.restored or "")
    gaps = [Gap(table.text, seen.facts.epoch, at.to, None, reason) for table, at in reached.items()]
    found = record_gaps(database.layout, gaps, run_id=database.run_id, storage=database.storage)
    texts = {gap.table for gap in found}
    return [table for table in reached if table.text in texts]


def _reached(seen: Survey) -> dict[TableId, Reached]:
    """The positions of all tables in this epoch, including those that the source no longer shows or has re-created."""
    epoch, known = seen.facts.epoch, entries_by_name(seen.offsets, seen.history.versions)
    names = {name: seen.history.versions[name][-1].table_id for name in known}
    found: dict[TableId, Reached] = {}
    for table in dict.fromkeys((*seen.tables, *names.values())):
        entry, lake = known.get(table.text), seen.tables.get(table)
        if entry is not None and entry.status == "excluded":
            continue
        ends = [lake.reached(epoch) if lake else None, entry.reached if entry else None]
        here = [end for end in ends if end is not None and end.epoch == epoch]
        if here:
            found[table] = max(here)
    return found


def begin_epoch(database: Database, seen: Survey, *, by: str | None) -> Offsets:
    """Resume with a source that went back in time: its tables start over, and their rows are re-snapshotted and swept.

    Args:
        database: The database.
        seen: The survey that found the restore.
        by: Who decided to resume, which acknowledges the gaps; None: `snapshot.mode` did, and the gaps stay open.

    Raises:
        ConfigurationError: The source did not go back in time.
        FencedError: Another run has started the epoch.
    """
    if not seen.facts.restored:
        raise ConfigurationError(
            f"{database.catalog}: the history of the source matches the lake; there is no epoch to begin"
        )
    write_restore(database, seen)
    epoch = seen.offsets.epoch + 1
    row = epoch_begun(database.stamp(epoch), restored=seen.facts.restored, by=by)
    after = append_offsets(database.layout, row, seen=seen.offsets, storage=database.storage)
    if by is not None:
        database.acknowledge_gaps(None, by=by)
    database.log(f"epoch {epoch} begins: {seen.facts.restored}")
    return after


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What an acknowledgment has changed.

    Attributes:
        gaps: The gaps that were open.
        given_up: The tables that are excluded from now on, until they are captured again.
    """

    gaps: Sequence[Gap] = ()
    given_up: Collection[TableId] = ()

    @property
    def lines(self) -> list[str]:
        """One line for each gap and table; none if nothing has changed."""
        given_up = sorted(table.text for table in self.given_up)
        return [gap.text for gap in self.gaps] + [f"{name}: given up" for name in given_up]


def acknowledge(database: Database, tables: Collection[TableId] | None, *, by: str) -> Acknowledged:
    """Acknowledge the open gaps of these tables.

    Tables that the source no longer captures are excluded permanently: if they are captured again later, they start
    with a snapshot. So are those whose first snapshot was partly read: nothing else would end that snapshot.

    Args:
        database: The database.
        tables: The tables; None: all.
        by: Who acknowledges the gaps.
    """
    names = None if tables is None else {table.text for table in tables}
    found = database.acknowledge_gaps(names, by=by)
    seen = survey(database, quick=True, currents=False)
    # A table that does not fit as it is, is still captured: `left` has only tables that the source no longer shows.
    lost = {absent.table: absent.reason for absent in seen.facts.absent if _is_gone(absent)}
    gone = {table: f"{reason}; acknowledged by {by}" for table, reason in lost.items() if table in seen.left}
    retired = {table: reason for table, reason in gone.items() if names is None or table.text in names}
    if retired:
        mark_status(database, seen, retired, "excluded")
        database.log(f"{', '.join(sorted(table.text for table in retired))}: given up; it starts over if it comes back")
    return Acknowledged(found, retired.keys())


def leave_excluded(database: Database) -> list[str]:
    """Give up the snapshots of tables that the filters no longer let through; return the names of the tables.

    Records wait for the end of a snapshot. Once such a table is let through again, its next snapshot is a new one;
    outputs have the rows of this one that were read until now.

    Args:
        database: The database.

    Raises:
        FencedError: Another run reads one of them.
    """
    offsets = database.offsets()
    if not offsets.begun_snapshots:
        return []
    versions, matches = database.history().versions, database.connector.filters.tables.matches
    entries = {
        name: replace(entry, status="excluded", reason="the filters exclude it", rows=0)
        for name, entry in entries_by_name(offsets, versions).items()
        if entry.status == "snapshot" and not matches(*versions[name][-1].table_id.parts)
    }
    if not entries:
        return []
    row = status_changed(database.stamp(offsets.epoch), entries)
    append_offsets(database.layout, row, seen=offsets, storage=database.storage)
    database.log(f"{', '.join(sorted(entries))}: the snapshot is given up, since the filters exclude the table")
    return sorted(entries)


def _is_gone(absent: Absent) -> bool:
    """Whether nothing of the table is missing once its loss is acknowledged.

    A table that streamed before its snapshot began is first recorded as lost (`write_loss`).
    """
    never_streamed = absent.status == "snapshot" and absent.position is None
    return absent.status == "lost" or (never_streamed and absent.lost)


def acknowledge_named(database: Database, names: Collection[str], *, by: str) -> Acknowledged:
    """Acknowledge the open gaps of tables given by name or by regular expression.

    Args:
        database: The database.
        names: Names or regular expressions; those that match no table of this database are ignored. Empty: all tables.
        by: Who acknowledges the gaps.
    """
    if not names:
        return acknowledge(database, None, by=by)
    known = {v[-1].table_id.parts: v[-1].table_id for v in _history(database).values()}
    found, _ = expand_collections(names, known)
    return acknowledge(database, [known[name] for name in found], by=by)


def unknown_names(database: Database, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names and regular expressions that match no table in the lake."""
    return expand_collections(names, [versions[-1].table_id.parts for versions in _history(database).values()])[1]


def is_restored(database: Database) -> bool:
    """Whether the source went back in time and capture has not been resumed yet."""
    return survey(database, quick=True).facts.restored is not None


def go_on_after_restore(database: Database, *, by: str) -> Offsets:
    """Resume with a source that went back in time, by an operator's decision (`begin_epoch`)."""
    return begin_epoch(database, survey(database), by=by)


def _history(database: Database) -> Mapping[str, Sequence[TableSchema]]:
    return database.history().versions
