"""Transaction metadata: a row of `_transactions` for every transaction of complete cuts (TXN-04, TXN-07)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.errors import FencedError
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.small_tables import small_table


def count_transactions(database: Database, offsets: Offsets, tables: Iterable[LakeTable]) -> int:
    """Write a row for each transaction of complete cuts that has none yet, and return how many.

    Args:
        database: The database.
        offsets: The cuts.
        tables: The tables whose changes are counted.
    """
    cut = offsets.last_cut()
    if cut is None or not database.connector.records.transaction_metadata:
        return 0
    table = small_table(database.layout, "transactions", database.storage)
    state = table.state()
    taken: dict[str, int] = dict((state.own or {}).get("taken", {}))
    reached = dict(taken)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    times: dict[str, Any] = {}
    for member in tables:
        name = member.table.text
        up_to = offsets.cut_batch(name, cut)
        if up_to is None or up_to <= taken.get(name, 0):
            continue
        _tally(database, member, BatchSlice(taken.get(name, 0), up_to), counts, times)
        reached[name] = up_to
    if reached == taken:
        return 0
    rows = [
        {
            "transaction_id": commit,
            "status": "END",
            "commit_lsn": commit,
            "event_count": sum(counts[commit].values()),
            "data_collections": sorted(counts[commit].items()),
            "commit_ts": times[commit],
        }
        for commit in sorted(counts)
    ]
    try:
        table.append(state, rows, {"kind": "transactions", "taken": reached, "run_id": database.run_id})
    except FencedError:
        return 0
    return len(rows)


def _tally(
    database: Database,
    member: LakeTable,
    batches: BatchSlice,
    counts: dict[str, Counter[str]],
    times: dict[str, Any],
) -> None:
    """Events per commit of one table; snapshot rows and skipped operations do not count (TXN-07, rule E28)."""
    skipped = pa.array(sorted({"r", *database.connector.records.skipped}), pa.string())
    columns = ["op", "source", "_commit_ts", "_snapshot"]
    for batch in scan(member.home.changes, batches=batches, columns=columns, storage=database.storage):
        streamed = batch.filter(
            pc.and_(pc.is_null(batch.column("_snapshot")), pc.invert(pc.is_in(batch.column("op"), value_set=skipped)))
        )
        table = pa.table(
            {"commit": pc.struct_field(streamed.column("source"), "commit_lsn"), "at": streamed.column("_commit_ts")}
        )
        for row in table.group_by("commit").aggregate([("at", "max"), ("commit", "count")]).to_pylist():
            counts[row["commit"]][member.table.text] += row["commit_count"]
            times[row["commit"]] = row["at_max"]
