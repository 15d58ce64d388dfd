"""What a change log must contain: its structures, and where its last snapshots begin and end, as `_offsets` says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.sealing import Seal
from mssql_cdc.capture.snapshot.chunk_plan import plan_of_text
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import OffsetRow, SnapshotEnded
from mssql_cdc.lsn import Lsn, cut_text, snapshot_position_text
from mssql_cdc.schema import Column, TableSchema
from mssql_cdc.schema.lives import lives

WholeReads = frozenset[tuple[int, str]]
"""The number of a snapshot, and the name of a table that it read without a filter."""


@dataclass(frozen=True, slots=True)
class Story:
    """What a change log must contain.

    Attributes:
        versions: every structure of the table, oldest first.
        columns: the columns that are compared.
        low: positions below it belong to the time before the last whole snapshot.
        judged: after this position, every change must fit what precedes it. Up to it, a snapshot was being read, whose
            rows may be newer than their positions.
        whole: whether a whole snapshot was ever taken, so that every row has been seen.
        present: the name and the position of each column that the source has now; None: not known.
    """

    versions: Sequence[TableSchema]
    columns: Sequence[str]
    low: str = ""
    judged: str = ""
    whole: bool = True
    present: Collection[tuple[str, int]] | None = None

    def gone(self, name: str) -> list[int]:
        """The versions whose column of this name has since been dropped: their instance remains, and CDC supplies NULL.

        Another column may have taken the name since then, at another position.
        """
        if self.present is None:
            return []
        columns = [(one.version, c) for one in self.versions for c in one.value_columns if c.name == name]
        return [version for version, column in columns if (name, column.position) not in self.present]

    def undelivered(self, name: str) -> list[int]:
        """The versions in whose changes CDC may omit the column of this name: it is a LOB, or computed."""
        columns = [(one.version, c) for one in self.versions for c in one.columns if c.name == name]
        return [version for version, c in columns if c.computed or c.type.before_image != "always"]

    def lives(self, stored_name: str, *, of_values: bool = False) -> Mapping[int, int]:
        """The lives of a Delta column by version (`schema/lives.py`), without those in which it was computed."""
        computed = {
            one.version for one in self.versions for c in one.columns if c.computed and c.stored_name == stored_name
        }
        found = lives(self.versions, stored_name, of_values=of_values)
        return {version: life for version, life in found.items() if version not in computed}


def load_whole_reads(database: Database) -> WholeReads:
    """Load which tables each snapshot read whole; the others were read by a statement (SNP-23, BLK-04)."""
    rows = small_table(database.layout, "snapshots", database.storage).rows()
    seal = Seal(database.connector.delta.key_secret)
    plans = [plan_of_text(seal.opened(row["plan"])) for row in rows]
    return frozenset((plan.number, table.table.text) for plan in plans for table in plan.tables if table.select is None)


def story_of(
    versions: Sequence[TableSchema],
    *,
    folder: str,
    offsets: Offsets,
    whole_reads: WholeReads,
    hidden: Collection[str],
    source: Sequence[Column],
) -> Story:
    """What the change log of a table must contain.

    Args:
        versions: The table's structures, oldest first, under every name that it has had.
        folder: The table's folder.
        offsets: The offsets, which say when snapshots ended.
        whole_reads: The tables that a snapshot read without a filter.
        hidden: The masked columns.
        source: The columns that the source has now.
    """
    low, judged, whole = "", "", False
    for row, facts in ended_snapshots(versions, folder, offsets):
        judged = max(judged, cut_text(row.epoch, facts.mark.lsn))
        if facts.stopped is None and (facts.number, facts.table) in whole_reads:
            low, whole = snapshot_position_text(row.epoch, Lsn.parse(facts.low), number=facts.number), True
    present = frozenset((column.name, column.position) for column in source)
    return Story(versions, compared_columns(versions, hidden), low, judged, whole, present)


def compared_columns(versions: Sequence[TableSchema], hidden: Collection[str]) -> list[str]:
    """The columns that the newest structure stores and whose images are comparable: neither computed nor masked."""
    return [column.name for column in versions[-1].value_columns if not column.computed and column.name not in hidden]


def log_start(versions: Sequence[TableSchema], *, folder: str, offsets: Offsets) -> str:
    """The smallest `_pos` of the change-log rows that add up to a table without a key: those of its last snapshot.

    Such a table is read whole, at one position; earlier changes are part of what was read, and no sweep can identify
    the rows that are gone (C21). A snapshot that was stopped has read only a part. Empty: the table was never read.

    Args:
        versions: The table's structures, oldest first, under every name that it has had.
        folder: The table's folder.
        offsets: The offsets, which say when snapshots ended.
    """
    start = ""
    for row, facts in ended_snapshots(versions, folder, offsets):
        if facts.stopped is None:
            low = Lsn.parse(facts.low)
            start = snapshot_position_text(row.epoch, low, number=facts.number, chunk=facts.chunk)
    return start


def ended_snapshots(
    versions: Sequence[TableSchema], folder: str, offsets: Offsets
) -> Iterator[tuple[OffsetRow, SnapshotEnded]]:
    """The table's snapshots that have ended, in order.

    The table is recognized by its identity, since it may have been renamed in the meantime and another one may have its
    name (B15); and by its folder, since after a restore the source may give its identity to another table.

    Args:
        versions: The table's structures, oldest first, under every name that it has had.
        folder: The table's folder.
        offsets: The offsets, which say when snapshots ended.
    """
    names, identity = {one.table_id.text for one in versions}, versions[-1].object_id
    for row in offsets.noted:
        facts = row.facts
        if not isinstance(facts, SnapshotEnded):
            continue
        read = row.tables[facts.table]
        is_named = read.object_id is None or identity is None
        is_own = facts.table in names if is_named else read.object_id == identity
        if is_own and read.folder in {None, folder}:
            yield row, facts
