"""What a connector does when it starts: it counts its tables, and asks for the snapshot of `snapshot.mode=always`.

A start is an operator's act: the call of `mssql-cdc run`, or switching the sensor on. A daemon that comes up again
starts nothing, nor does a new run of Dagster.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import ask_for_snapshot, open_requests
from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError, SourceError
from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.offsets import load_offsets

_START = "start-"


def start(databases: Sequence[Database]) -> None:
    """Start the connector that these databases belong to.

    Raises:
        ConfigurationError: it has more tables than `guardrail.collections.max` allows.
        SourceUnavailableError: they could not be counted.
    """
    if databases and databases[0].connector.guardrail.max_tables is not None:
        guard(databases[0].connector, sum(map(_tables, databases)), warn=databases[0].log)
    for database in databases:
        snapshot_at_start(database)


def _tables(database: Database) -> int:
    """How many tables of the database are captured; none in one that cannot be followed, which is told later."""
    with database.session() as session:
        try:
            session.require_ready()
            return len(session.tables())
        except (ConfigurationError, SourceError):
            return 0


def guard(connector: Connector, tables: int, *, warn: Callable[[str], None]) -> None:
    """Say, or refuse, that the connector has more captured tables than it may.

    Tables that are under CDC are counted; Debezium 3.3.1 also counts those that pass the filters and are not.

    Raises:
        ConfigurationError: there are more, and `guardrail.collections.limit.action` is `fail`.
    """
    most = connector.guardrail.max_tables
    if most is None or tables <= most:
        return
    text = f"{connector.topic_prefix}: {tables} captured tables, guardrail.collections.max allows {most}"
    if connector.guardrail.fail:
        raise ConfigurationError(f"{text}; narrow table.include.list, or raise the limit")
    warn(text)


def snapshot_at_start(database: Database) -> None:
    """Ask for a snapshot of the tables that the lake knows; those that it does not know get their first one anyway."""
    if database.connector.snapshot.mode != "always":
        return
    offsets = load_offsets(database.layout, database.storage)
    if any(asked.signal_id.startswith(_START) for asked in open_requests(database, offsets)):
        return  # That of the last start has not begun yet.
    tables = database.connector.filters.tables
    names = []
    for text, versions in load_history(database.layout, database.storage).versions.items():
        name = versions[-1].table_id.parts
        entry = offsets.entry(text)
        if entry is not None and entry.status != "snapshot" and not tables.is_signal_table(*name):
            names.append(".".join(name))
    if names:
        ask_for_snapshot(database, f"{_START}{uuid.uuid4()}", names, channel="start")
