"""Reads a range that the sensor, an operator in the UI or a backfill requested by its partition key."""

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
    """Read the unread rest of the range `key`.

    Args:
        database: The database to read from and write to.
        key: The range's partition key.
        choose: Selects the tables from the survey.
        retry_failed: Treat tables with status `failed` as streaming.

    Returns:
        At least one result; several if a table switches its capture instance within the range.

    Raises:
        ValueError: `key` is not the key of a range.
        StaleReaderError: The source does not show the end of the range (yet).
        SourceRestoredError: The key belongs to another history of the source.
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
        reason = f"{key} has nothing left to read"
        merge = Merge(seen.facts.due, seen.facts.cut_number, reason) if seen.facts.due else Wait(reason)
        results.append(execute(database, seen, merge))
    return results
