"""Counts the rows of a change log by commit time, without a JVM. Files are pruned by their statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lake.read import BatchSlice, Commits, exists, scan
from mssql_cdc.lake.storage import LOCAL, Storage

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def count_by_window(
    uri: str,
    length: timedelta,
    *,
    commits: Commits | None = None,
    batches: BatchSlice | None = None,
    storage: Storage = LOCAL,
) -> Mapping[datetime, Counter[str]]:
    """Return the rows of each window by operation; a window without rows is left out.

    Args:
        uri: The change log's folder; nothing is counted if there is no table.
        length: The length of the windows, which divides a day; they are aligned to midnight UTC.
        commits: Only rows that were committed in this interval.
        batches: Only rows of these Delta commits.
        storage: How to reach the folder.
    """
    found: dict[datetime, Counter[str]] = {}
    if not exists(uri, storage):
        return found
    step = length // timedelta(microseconds=1)
    for batch in scan(uri, batches=batches, commits=commits, columns=["_commit_ts", "op"], storage=storage):
        micros = batch.column("_commit_ts").cast(pa.int64())
        rows = pa.table({"window": pc.multiply(pc.divide(micros, step), step), "op": batch.column("op")})
        for row in rows.group_by(["window", "op"]).aggregate([([], "count_all")]).to_pylist():
            if row["window"] is not None:
                start = EPOCH + timedelta(microseconds=row["window"])
                found.setdefault(start, Counter())[row["op"]] += row["count_all"]
    return found
