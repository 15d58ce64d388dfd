"""One tick of the sensor: a short look first, the long one only when something may be due.

A quiet tick reads `_offsets` and asks the source two short questions. It cannot see a table that was put under CDC
meanwhile: the caller asks for a thorough one from time to time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from mssql_cdc.capture.context import Database
from mssql_cdc.lake.offsets import Offsets, load_offsets
from mssql_cdc.stream.decisions import Decision, Wait
from mssql_cdc.stream.facts import Activity, Cursor
from mssql_cdc.stream.gather import DEFAULT_RETENTION, RETENTION_SHARE, begun_snapshots, closed_tables, survey
from mssql_cdc.stream.plan import next_cursor, plan
from mssql_cdc.stream.signals import asked_snapshots


def tick(
    database: Database, *, cursor: Cursor, running: Sequence[Activity] = (), thorough: bool = True
) -> tuple[Decision, Cursor]:
    """What to do now, and the cursor to keep.

    Raises:
        the errors of `survey`.
    """
    if not thorough:
        quiet = _quiet(database, load_offsets(database.layout, database.storage))
        if quiet is not None:
            return quiet, cursor
    facts = survey(database, cursor=cursor, running=running).facts
    decision = plan(facts)
    return decision, next_cursor(facts, decision)


def _quiet(database: Database, offsets: Offsets) -> Wait | None:
    """The reason to wait, when a short look shows that nothing happened since the last complete cut."""
    cut = offsets.last_cut()
    newest = offsets.rows[-1] if offsets.rows else None
    if cut is None or newest is None or newest.number != cut.number or closed_tables(offsets):
        return None
    if begun_snapshots(offsets) or any(e.status in {"failed", "lost"} for e in offsets.entries.values()):
        return None
    if datetime.now(UTC) - newest.at >= DEFAULT_RETENTION / RETENTION_SHARE:
        return None
    if asked_snapshots(database, offsets):
        return None
    with database.session() as session:
        captured = session.captured()
    if captured is None or captured.text > (cut.to or ""):
        return None
    return Wait(f"no changes since {cut.to}")
