"""The sweep after a repeated snapshot (rule C19): what the snapshot did not see any more is deleted, and recorded.

When the current table stands behind the snapshot's cut, its rows with `_pos` below `(epoch, L0, MAX, number)` were
neither read nor changed since: they are gone at the source. Each gets a synthetic `d` in the change log, flagged
`sweep:<number>`, which the next MERGE applies like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mssql_cdc.capture.context import Database
from mssql_cdc.capture.tables import SNAPSHOT, Member
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.log import commit, facts_of, load_state
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lsn import Lsn, snapshot_position_text
from mssql_cdc.schema import TableId, TableSchema, change_log_schema, current_names
from mssql_cdc.spark.session import private_session
from mssql_cdc.stream.gather import closed_tables

_LAST_CHUNK = 16**6 - 1


@dataclass(frozen=True, slots=True)
class Due:
    """A sweep that has not been done: rows below the bound of snapshot `number` go."""

    table: TableId
    number: int
    low: Lsn
    epoch: int

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
        if state is None or any(_is_sweep(entry, due.mark) for entry in state.table.history()):
            continue
        schema = load_history(database.layout, database.storage).newest(due.table)
        if schema is None or not schema.key_columns:
            continue
        rows = _gone(database, member, schema, due, state.batch + 1)
        files = write_files(rows, state.target)
        facts = {"kind": "sweep", "sweep": due.mark, "epoch": due.epoch, "run_id": database.run_id}
        after = commit(state, files, facts)
        count = sum(file.rows for file in files)
        if count:
            database.log(f"{due.table}: {count} rows of before the snapshot are gone at the source")
            _merge_now(database, member, schema, after.batch)
        swept = swept or bool(count)
    return swept


def _due(members: Mapping[TableId, Member], offsets: Offsets) -> Iterator[Due]:
    """The newest sweep that each open table's snapshots asked for."""
    newest: dict[str, Due] = {}
    by_name = {table.text: table for table in members}
    for row in offsets.rows:
        for name, wanted in (json.loads(row.facts).get("sweep", {}) if row.facts else {}).items():
            if name in by_name:
                newest[name] = Due(by_name[name], wanted["number"], Lsn.parse(wanted["low"]), row.epoch)
    closed = closed_tables(offsets)
    for name, due in newest.items():
        entry = offsets.entry(name)
        if name not in closed and entry is not None and entry.status == "streaming":
            yield due


def _is_sweep(entry: Mapping[str, Any], mark: str) -> bool:
    facts = facts_of(entry)
    return bool(facts and facts.get("sweep") == mark)


def _gone(database: Database, member: Member, schema: TableSchema, due: Due, batch: int) -> Iterator[pa.RecordBatch]:
    """The synthetic deletes, in change-log form, from the current table's rows below the bound."""
    bound = snapshot_position_text(due.epoch, due.low, number=due.number)
    shape = change_log_schema(schema)
    stored = current_names(schema)
    number = 0
    with private_session(database.spark()) as session:
        table = session.read.format("delta").load(member.home.current)
        found = table.where(table["_pos"] < bound).toArrow()
    for current in found.to_batches():
        rows = []
        for row in current.to_pylist():
            position = snapshot_position_text(due.epoch, due.low, number=due.number, chunk=_LAST_CHUNK, row=number)
            rows.append(_delete(row, schema, stored, due, batch, position))
            number += 1
        yield pa.RecordBatch.from_pylist(rows, schema=shape)


def _delete(
    row: Mapping[str, Any], schema: TableSchema, stored: Mapping[str, str], due: Due, batch: int, position: str
) -> dict[str, Any]:
    before = {name: row[stored[name]] for name in stored}
    return {
        "_pos": position,
        "_batch": batch,
        "_schema": schema.version,
        "_key": row["_key"],
        "op": "d",
        "source": {"commit_lsn": due.low.text},
        "key": {name: before.get(name) for name in schema.key_columns},
        "before": before,
        "_snapshot": due.mark,
        "_unavailable": row["_unavailable"],
        "_exact": {"before": row["_exact"], "after": None} if row["_exact"] else None,
    }


def _merge_now(database: Database, member: Member, schema: TableSchema, batch: int) -> None:
    """Apply the deletes at once: they belong to no range, so no cut would bring them."""
    from mssql_cdc.lake.current import apply

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
