"""The sweep after a repeated snapshot (rule C19): what the snapshot did not see any more is deleted, and recorded.

When the current table stands behind the snapshot's cut, its rows with `_pos` below `(epoch, L0, MAX, number)` were
neither read nor changed since: they are gone at the source. Each gets a synthetic `d` in the change log, flagged
`sweep:<number>`, which the next MERGE applies like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import SNAPSHOT, Member
from mssql_cdc.follow.after import behind_current
from mssql_cdc.lake.current import apply
from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.log import commit, load_state
from mssql_cdc.lake.offsets import OffsetRow, Offsets, append_offsets
from mssql_cdc.lake.sweep import Sweep, sweep_files
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class Due:
    """A sweep that has not been done: rows below the bound of snapshot `number` go."""

    table: TableId
    number: int
    low: Lsn
    epoch: int
    at: datetime

    @property
    def mark(self) -> str:
        """What flags the sweep's rows and its commit."""
        return f"sweep:{self.number}"


def sweep_due(database: Database, members: Mapping[TableId, Member], offsets: Offsets) -> bool:
    """Do the sweeps that are due and merge what they wrote; whether there was one."""
    swept = False
    for due in _due(members, offsets):
        member = members[due.table]
        state = load_state(member.home.changes, owner=member.home.app_id, writer=SNAPSHOT, storage=database.storage)
        schema = load_history(database.layout, database.storage).newest(due.table)
        if state is None or schema is None or not schema.key_columns:
            continue
        if (state.own or {}).get("sweep") == due.mark:
            # Committed by a run that ended before it could go on.
            _merge_now(database, member, schema, state.own_batch)
            offsets = _note(database, offsets, due)
            continue
        if behind_current(database, {due.table: member}, offsets):
            continue  # Rows that the snapshot read again are not merged yet: they would be taken for deleted ones.
        sweep = Sweep(due.number, due.epoch, due.low, due.at)
        files = sweep_files(database.spark(), member.home, schema, state, sweep)
        facts = {"kind": "sweep", "sweep": due.mark, "epoch": due.epoch, "run_id": database.run_id}
        after = commit(state, files, facts, spark=database.spark)
        count = sum(file.rows for file in files)
        if count:
            database.log(f"{due.table}: {count} rows of before the snapshot are gone at the source")
            _merge_now(database, member, schema, after.batch)
        offsets = _note(database, offsets, due)
        swept = swept or bool(count)
    return swept


def _due(members: Mapping[TableId, Member], offsets: Offsets) -> Iterator[Due]:
    """The newest sweep that each open table's snapshots asked for."""
    newest: dict[str, Due] = {}
    by_name = {table.text: table for table in members}
    for row in offsets.noted:
        for name, wanted in row.noted.get("sweep", {}).items():
            if name in by_name:
                newest[name] = Due(by_name[name], wanted["number"], Lsn.parse(wanted["low"]), row.epoch, row.at)
        for name, mark in row.noted.get("swept", {}).items():
            if name in newest and newest[name].mark == mark:
                del newest[name]
    for name, due in newest.items():
        entry = offsets.entry(name)
        if name not in offsets.closed_tables and entry is not None and entry.status == "streaming":
            yield due


def _note(database: Database, offsets: Offsets, due: Due) -> Offsets:
    """Write down that the sweep is done, so that nobody looks into the table's log for it again."""
    row = OffsetRow(
        kind="status",
        at=datetime.now(UTC),
        tables={},
        epoch=offsets.epoch,
        run_id=database.run_id,
        facts=json.dumps({"swept": {due.table.text: due.mark}}),
    )
    return append_offsets(database.layout, row, seen=offsets, storage=database.storage)


def _merge_now(database: Database, member: Member, schema: TableSchema, batch: int) -> None:
    """Apply the deletes at once: they belong to no range, so no cut would bring them."""
    versions = load_history(database.layout, database.storage).versions[schema.table_id.text]
    apply(
        database.spark(),
        member.home,
        versions,
        up_to=batch,
        run_id=database.run_id,
        deletion_vectors="true" if database.connector.delta.deletion_vectors else "false",
        storage=database.storage,
    )
