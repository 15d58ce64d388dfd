"""Reads a range that was asked for by its partition key: by the sensor, an operator in the UI, a backfill."""

from __future__ import annotations

from collections.abc import Callable, Collection

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.lsn import LsnRange
from mssql_cdc.plan.decisions import Merge, Wait
from mssql_cdc.plan.requested import requested
from mssql_cdc.run.execute import Done, execute
from mssql_cdc.schema import TableId


def read_range(
    database: Database, key: str, choose: Callable[[Survey], Collection[TableId]], *, retry_failed: bool
) -> list[Done]:
    """Read what is left of the range `key`; at least one result, several when a table changes its capture instance.

    Args:
        database: where to read and to write.
        key: the range's partition key.
        choose: the tables that are meant, from what is captured now.
        retry_failed: take tables that were given up for streaming ones.

    Raises:
        ValueError: `key` is not the key of a range.
        StaleReaderError: the source does not show the end of the range (yet).
        SourceRestoredError: the key belongs to another history of the source.
    """
    results: list[Done] = []
    while True:
        seen = survey(database, retry_failed=retry_failed)
        decision = requested(seen.facts, key, choose(seen))
        if decision is None:
            break
        results.append(execute(database, seen, decision))
        read = results[-1].range
        if (read is not None and read.failed) or decision.range.to >= LsnRange.parse(key).to:
            break
    if not results:
        reason = f"nothing of {key} is left to read"
        merge = Merge(seen.facts.due, seen.facts.cut_number, reason) if seen.facts.due else Wait(reason)
        results.append(execute(database, seen, merge))
    return results
