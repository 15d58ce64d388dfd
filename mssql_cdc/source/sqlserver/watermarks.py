"""Writes rows to the signal table before and after the read of a chunk, as Debezium does (INC-08).

They are for whoever watches that table. Log positions (`log_end`) decide what is exact, with or without the rows; a
closing row is committed after the mark of its chunk, so capturing it proves the mark where no scans are shown.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

from mssql_cdc.config.snapshot_settings import Watermarking
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote

_DOING = (
    "writing a watermark of an incremental snapshot (incremental.snapshot.watermarking.strategy) to the signal table"
)


@contextmanager
def window(control: Control, table: tuple[str, str], strategy: Watermarking) -> Generator[None]:
    """Open a window, and close it after the block. A block that fails leaves the window open; nobody waits for it.

    Args:
        control: A connection that commits each statement.
        table: Schema and name of the signal table.
        strategy: `insert_insert` closes it with a second row, `insert_delete` by deleting the first.

    Raises:
        ConfigurationError: The login may not write to the table.
        SourceError: The table does not have exactly three columns, or cannot be written.
    """
    chunk, name = str(uuid4()), ".".join(quote(part) for part in table)
    opened = {"openWindowTimestamp": _now()}
    insert = f"INSERT INTO {name} VALUES (?, ?, ?)"
    control.execute(insert, f"{chunk}-open", "snapshot-window-open", json.dumps(opened), doing=_DOING)
    yield
    if strategy == "insert_delete":
        control.execute(f"DELETE FROM {name} WHERE id = ?", f"{chunk}-open", doing=_DOING)
        return
    closed = opened | {"closeWindowTimestamp": _now()}
    control.execute(insert, f"{chunk}-close", "snapshot-window-close", json.dumps(closed), doing=_DOING)


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
