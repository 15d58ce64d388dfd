"""`snapshot.mode=always`: a snapshot of every table at each start of the connector (SNP-01).

A start is somebody's act: the call of `mssql-cdc run`, or switching the sensor on. A daemon that comes up again starts
nothing, nor does a new run of Dagster.
"""

from __future__ import annotations

import uuid

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import ask_for_snapshot, asked_snapshots, name_of
from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.offsets import load_offsets

_START = "start-"


def snapshot_at_start(database: Database) -> None:
    """Ask for a snapshot of the tables that the lake knows; those that it does not know get their first one anyway."""
    if database.connector.snapshot.mode != "always":
        return
    offsets = load_offsets(database.layout, database.storage)
    if any(asked.signal_id.startswith(_START) for asked in asked_snapshots(database, offsets)):
        return  # The last start's has not begun yet.
    tables = database.connector.filters.tables
    names = []
    for text, versions in load_history(database.layout, database.storage).versions.items():
        name = name_of(versions[-1].table_id)
        entry = offsets.entry(text)
        if entry is not None and entry.status != "snapshot" and not tables.is_signal_table(*name):
            names.append(".".join(name))
    if names:
        ask_for_snapshot(database, f"{_START}{uuid.uuid4()}", names, channel="start")
