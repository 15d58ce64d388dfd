"""The cheap check of a quiet tick: `_offsets` and two short queries to the source, instead of a whole survey.

It cannot detect that CDC was enabled on another table, so the caller must still run a survey from time to time.
"""

from __future__ import annotations

from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.requests import open_requests
from mssql_cdc.capture.survey import DEFAULT_RETENTION, RETENTION_SHARE
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.plan.decisions import Wait


def quiet_look(database: Database) -> tuple[Wait | None, Offsets]:
    """Return the reason to wait if certainly nothing has happened since the last cut, else None; and the offsets.

    Raises:
        SourceUnavailableError, SourceError: The source could not be queried.
    """
    offsets = database.offsets()
    cut = offsets.last_cut()
    if cut is None or not offsets.ends_with_cut or cut.epoch < offsets.epoch or offsets.closed_tables:
        return None, offsets
    if any(entry.status in {"snapshot", "failed", "lost"} for entry in offsets.present.values()):
        return None, offsets
    if abs(datetime.now(UTC) - cut.at) >= DEFAULT_RETENTION / RETENTION_SHARE:
        return None, offsets
    if open_requests(database, offsets) or load(database).is_due:
        return None, offsets
    with database.session() as session:
        captured = session.captured()
        if captured is None or captured.text > (cut.to or ""):
            return None, offsets
        problem = session.stalled()
    return Wait(f"no changes since {cut.to}").because_of(problem), offsets
