"""The start of a connector: checks for faults, counts its tables, requests the snapshot of `snapshot.mode=always`.

A start is an operator's action: calling `mssql-cdc run` or turning the sensor on. Neither a restart of the Dagster
daemon nor a new Dagster run is a start.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import ask_for_snapshot, open_requests
from mssql_cdc.capture.snapshot_extensions import policy
from mssql_cdc.config import Connector
from mssql_cdc.config.filters import spoken_name
from mssql_cdc.errors import ConfigurationError, SourceError
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.lake.steps import START_SIGNAL
from mssql_cdc.run.loss import leave_excluded
from mssql_cdc.run.preflight import Found, preflight
from mssql_cdc.run.recovery import recover_history, require_recoverable


def start(databases: Sequence[Database]) -> None:
    """Start the connector to which these databases belong.

    Raises:
        ConfigurationError: It has more tables than `guardrail.collections.max` allows, or nothing to recover.
        SourceUnavailableError: The tables could not be counted.
    """
    guard_tables(databases)
    for database in databases:
        start_database(database)


def guard_tables(databases: Sequence[Database]) -> None:
    """Run `guard` for the tables of these databases, all those of a connector; count them if there is a limit.

    Raises:
        ConfigurationError: The connector has more tables than `guardrail.collections.max` allows.
        SourceUnavailableError: The tables could not be counted.
    """
    if databases and databases[0].connector.guardrail.max_tables is not None:
        guard(databases[0].connector, sum(map(_tables, databases)), warn=databases[0].log)


def start_database(database: Database) -> None:
    """Do what a start does in one database: `require_recoverable` and `snapshot_at_start`."""
    require_recoverable(database)
    snapshot_at_start(database)


def look(database: Database, *, require_tables: bool = True) -> Found:
    """Run `preflight` on a database that may have a lake, `recover_history`, `leave_excluded`; raise what these raise.

    Args:
        database: The database.
        require_tables: If the lake has no table yet, it is an error, not a warning, that no table is captured.
    """
    followed = _follows_a_table(database)
    begun = not require_tables if followed is None else followed
    found = preflight(database.connector, database.source, database.catalog, warn=database.log, begun=begun)
    recover_history(database)
    leave_excluded(database)
    return found


def _follows_a_table(database: Database) -> bool | None:
    """Whether the filters let one of the lake's tables through (a survey notices its loss); None: the lake has none.

    The signal table, which they always let through, does not count. A table whose loss was acknowledged is not missed.
    """
    tables, entries = database.connector.filters.tables, database.offsets().present
    versions = database.history().versions
    names = {name: found[-1].table_id.parts for name, found in versions.items()}
    own = {name: one for name, one in entries.items() if name not in names or not tables.is_signal_table(*names[name])}
    missed = [name for name, entry in own.items() if entry.status != "excluded"]
    if not missed:
        return True if own else None
    # A table whose structure is lost counts, too: what is lost is reported after this.
    return any(name not in names or tables.matches(*names[name]) for name in missed)


def _tables(database: Database) -> int:
    """Return the number of captured tables; 0 for a database that cannot be followed, which is reported later."""
    with database.session() as session:
        try:
            session.require_ready()
            return len(session.tables())
        except (ConfigurationError, SourceError):
            return 0


def guard(connector: Connector, tables: int, *, warn: Callable[[str], None]) -> None:
    """Warn or fail if the connector has more captured tables than `guardrail.collections.max` allows.

    This counts CDC-enabled tables; Debezium 3.3.1 also counts tables that pass the filters but are not CDC-enabled.

    Args:
        connector: The configuration.
        tables: The number of captured tables.
        warn: Receives the warning.

    Raises:
        ConfigurationError: There are more, and `guardrail.collections.limit.action` is `fail`.
    """
    most = connector.guardrail.max_tables
    if most is None or tables <= most:
        return
    text = (
        f"{connector.topic_prefix}: Guardrail limit exceeded: {tables} tables configured for capture, but "
        f"guardrail.collections.max allows {most}"
    )
    if connector.guardrail.fail:
        raise ConfigurationError(f"{text}; narrow table.include.list, or raise the limit")
    warn(text)


def snapshot_at_start(database: Database) -> None:
    """Request a snapshot of the tables that the lake knows; all other tables get their initial snapshot anyway.

    `snapshot.include.collection.list` limits this snapshot as it limits the initial one (SNP-25).
    """
    offsets = database.offsets()
    if not policy(database, offsets).at_start:
        return
    if any(asked.signal_id.startswith(START_SIGNAL) for asked in open_requests(database, offsets)):
        return  # The snapshot requested by the last start has not begun yet.
    tables, listed = database.connector.filters.tables, database.connector.snapshot.collections
    names: list[str] = []
    known = database.history().versions
    entries = entries_by_name(offsets, known)
    for text, versions in known.items():
        name, entry = versions[-1].table_id.parts, entries.get(text)
        if entry is None or entry.status == "snapshot" or tables.is_signal_table(*name):
            continue
        if listed.matches(*name):
            names.append(spoken_name(name))
    if names:
        ask_for_snapshot(database, f"{START_SIGNAL}{uuid.uuid4()}", names, channel="start")
