"""The short look of a quiet tick: `_offsets` and one question to the source, where a whole survey costs far more.

It cannot see a table that was put under CDC meanwhile: the caller makes a survey from time to time all the same.
"""

from __future__ import annotations

from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import open_requests
from mssql_cdc.capture.survey import DEFAULT_RETENTION, RETENTION_SHARE
from mssql_cdc.lake.offsets import Offsets, load_offsets
from mssql_cdc.plan.decisions import Wait


def quiet_look(database: Database) -> tuple[Wait | None, Offsets]:
    """The reason to wait when nothing has happened since the last complete cut, else None; and what was looked at.

    Raises:
        SourceUnavailableError, SourceError: the source could not be asked.
    """
    offsets = load_offsets(database.layout, database.storage)
    cut = offsets.last_cut()
    if cut is None or not offsets.ends_with_cut or cut.epoch < offsets.epoch or offsets.closed_tables:
        return None, offsets
    if any(entry.status in {"snapshot", "failed", "lost"} for entry in offsets.entries.values()):
        return None, offsets
    if datetime.now(UTC) - cut.at >= DEFAULT_RETENTION / RETENTION_SHARE or open_requests(database, offsets):
        return None, offsets
    with database.session() as session:
        captured = session.captured()
        problem = session.stalled()
    if captured is None or captured.text > (cut.to or ""):
        return None, offsets
    return Wait(f"no changes since {cut.to}").because_of(problem), offsets
