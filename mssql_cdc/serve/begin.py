"""Where a followed connector begins: at its lake, at offsets that the lake contains, or by taking over at offsets.

Everything that an operator would have to correct is found here, before the connector reports that it has started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot_extensions import policy
from mssql_cdc.capture.take_over import take_over
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records.resume import require_held
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.run.start import look, start


def begin(databases: Sequence[Database], offsets: Mapping[str, SourceOffset]) -> list[Database]:
    """Find what keeps the connector from reading changes, and start it; return the databases that the loop follows.

    A database without a captured table is not a fault: as in Debezium, its tables may appear while it is followed. The
    loop checks the databases again, as it does after every fault. What was logged about them is not logged again then.

    Args:
        databases: The databases.
        offsets: Where the databases are to resume.

    Raises:
        ConfigurationError: Configuration, guardrails, schema history or offsets are not valid.
        SourceUnavailableError: The source does not answer.
        DataLostError: The source no longer has the changes after an offset.
    """
    said: set[str] = set()
    first = [replace(one, log=_noted(one.log, said)) for one in databases]
    for database in first:
        look(database, require_tables=False)
    _take_over_if_lost(first, offsets)
    for database in first:
        offset = offsets.get(database.catalog)
        if offset is not None:
            require_held(database.offsets(), offset, database.catalog)
    start(first)
    return [replace(one, log=_once(one.log, said)) for one in databases]


def _noted(log: Callable[[str], None], said: set[str]) -> Callable[[str], None]:
    def noted(line: str) -> None:
        said.add(line)
        log(line)

    return noted


def _once(log: Callable[[str], None], said: set[str]) -> Callable[[str], None]:
    def once(line: str) -> None:
        if line in said:
            said.discard(line)
        else:
            log(line)

    return once


def _take_over_if_lost(databases: Sequence[Database], offsets: Mapping[str, SourceOffset]) -> None:
    """Set up the lake of databases that have an offset and no lake, if `snapshot.mode` allows it.

    To Debezium, this is a lost schema history.

    Args:
        databases: The databases.
        offsets: Where the databases are to resume.

    Raises:
        ConfigurationError: `snapshot.mode` does not allow it.
        DataLostError: The source no longer has the changes after an offset.
    """
    for database in databases:
        offset = offsets.get(database.catalog)
        known = database.offsets()
        if offset is None or known.entries:
            continue
        if offset.commit is None or offset.begins_again or database.connector.snapshot.mode == "always":
            continue
        if not policy(database, known).on_schema_error:
            raise ConfigurationError(
                "The db history topic is missing. You may attempt to recover it by reconfiguring the connector to "
                f"recovery. Here the schema history is in the lake: {database.catalog} has an offset, but "
                f"{database.layout.root} has no lake. Run mssql-cdc take-over, set snapshot.mode=recovery, or leave "
                "the offsets out to begin with a snapshot"
            )
        tables = take_over(database, offset)
        database.log(f"{database.catalog}: took over {len(tables)} tables at {offset.commit.text}")
