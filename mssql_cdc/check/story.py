"""Reads from `_offsets` where the last whole snapshot of a change log begins and ends."""

from __future__ import annotations

from collections.abc import Collection

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.sealing import Seal
from mssql_cdc.capture.snapshot.chunk_plan import plan_of_text
from mssql_cdc.check.change_log import Story, compared_columns
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import SnapshotEnded
from mssql_cdc.lsn import Lsn, cut_text, snapshot_position_text
from mssql_cdc.schema import TableSchema

WholeReads = frozenset[tuple[int, str]]
"""The number of a snapshot, and the name of a table that it read without a filter."""


def load_whole_reads(database: Database) -> WholeReads:
    """Load which tables each snapshot read whole; the others were read by a statement (SNP-23, BLK-04)."""
    rows = small_table(database.layout, "snapshots", database.storage).rows()
    seal = Seal(database.connector.delta.key_secret)
    plans = [plan_of_text(seal.opened(row["plan"])) for row in rows]
    return frozenset((plan.number, table.table.text) for plan in plans for table in plan.tables if table.select is None)


def story_of(
    recorded: TableSchema, *, offsets: Offsets, history: SchemaHistory, whole_reads: WholeReads, hidden: Collection[str]
) -> Story:
    """What the change log of a table must contain.

    Args:
        recorded: The table's newest structure.
        offsets: The offsets, which say when snapshots ended.
        history: The table's structures under every name that it has had.
        whole_reads: The tables that a snapshot read without a filter.
        hidden: The masked columns.
    """
    names = {
        name
        for name, versions in history.versions.items()
        if name == recorded.table_id.text or any(one.object_id == recorded.object_id for one in versions)
    }
    low, judged, whole = "", "", False
    for row in offsets.noted:
        facts = row.facts
        if not isinstance(facts, SnapshotEnded) or facts.table not in names:
            continue
        judged = max(judged, cut_text(row.epoch, facts.mark.lsn))
        if facts.stopped is None and (facts.number, facts.table) in whole_reads:
            low, whole = snapshot_position_text(row.epoch, Lsn.parse(facts.low), number=facts.number), True
    versions = history.versions.get(recorded.table_id.text, (recorded,))
    return Story(versions, compared_columns(versions, hidden), low, judged, whole)
