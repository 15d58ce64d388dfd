"""What `_offsets` and the plans of snapshots say of a change log: where its last whole snapshot begins and ends."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot.plan import plan_of_text
from mssql_cdc.check.change_log import Story, compared_columns
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import SnapshotEnded
from mssql_cdc.lsn import Lsn, cut_text, snapshot_position_text
from mssql_cdc.schema import TableSchema


@dataclass(frozen=True, slots=True)
class Begun:
    """Where a table's part of a snapshot began; `filtered`: a statement stood for the table."""

    low: Lsn
    filtered: bool


Plans = dict[tuple[int, str], Begun]


def load_plans(database: Database) -> Plans:
    """The tables of every snapshot, by its number and their name."""
    found: Plans = {}
    for row in small_table(database.layout, "snapshots", database.storage).rows():
        plan = plan_of_text(row["plan"])
        for table in plan.tables:
            found[plan.number, table.table.text] = Begun(table.begun, table.select is not None)
    return found


def story_of(
    recorded: TableSchema, *, offsets: Offsets, history: SchemaHistory, plans: Plans, hidden: Collection[str]
) -> Story:
    """What the change log of a table is to tell.

    Args:
        recorded: the table's newest structure.
        offsets: which snapshots have ended.
        history: the table's structures, under every name that it had.
        plans: where they began.
        hidden: columns with a mask.
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
        begun = plans.get((facts.number, facts.table))
        if begun is not None and not begun.filtered:
            low, whole = snapshot_position_text(row.epoch, begun.low, number=facts.number), True
    versions = history.versions.get(recorded.table_id.text, (recorded,))
    return Story(versions, compared_columns(versions, hidden), low, judged, whole)
