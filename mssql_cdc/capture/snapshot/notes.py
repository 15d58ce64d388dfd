"""The notifications of an initial or a blocking snapshot in Debezium's words, once each, whichever runs take it.

They are written when things happen, before the commit that they report: if a run dies in between, the step is repeated
and finds what was sent. `capture/notifications.py` writes them.
"""

from __future__ import annotations

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notifications import INITIAL, Notifier
from mssql_cdc.capture.requests import id_of
from mssql_cdc.capture.snapshot.chunk_plan import SnapshotPlan
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.schema import TableId

_STARTED, _IN_PROGRESS, _SCANNED = "STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED"
_COMPLETED, _ABORTED = "COMPLETED", "ABORTED"
_PAUSED, _RESUMED = "PAUSED", "RESUMED"
_COLUMNS = ("id", "aggregate_type", "type", "additional_data", "_batch")


class SnapshotNotes:
    """What one run reports about a snapshot: what earlier runs have already reported is not repeated."""

    def __init__(self, database: Database, plan: SnapshotPlan, *, is_new: bool) -> None:
        """Begin.

        Args:
            database: The database.
            plan: The plan of the whole snapshot.
            is_new: Whether this run made the plan, so that nothing was reported before.
        """
        id_ = id_of(plan.signal) if plan.signal else plan.notice
        self._tables = ",".join(one.table.text for one in plan.tables)
        self._notifier = Notifier(database, id_)
        self._told = set[tuple[str, str]]() if is_new or id_ is None else _told(database, id_, plan.noticed)

    def started(self) -> None:
        """The snapshot begins."""
        self._once(_STARTED)

    def in_progress(self, table: TableId) -> None:
        """The table is about to be read."""
        if (_IN_PROGRESS, table.text) not in self._told:
            self._told.add((_IN_PROGRESS, table.text))
            self._notifier.add(_IN_PROGRESS, data_collections=self._tables, current_collection_in_progress=table.text)

    def scanned(self, table: TableId, rows: int) -> None:
        """The table was read."""
        if (_SCANNED, table.text) in self._told:
            return
        self._told.add((_SCANNED, table.text))
        self._notifier.add(
            _SCANNED,
            data_collections=self._tables,
            scanned_collection=table.text,
            total_rows_scanned=str(rows),
            status="SUCCEEDED",
        )

    def failed(self, table: TableId) -> None:
        """The table cannot be read."""
        self._notifier.add(_SCANNED, scanned_collection=table.text, status="SQL_EXCEPTION")

    def completed(self) -> None:
        """Every table was read."""
        self._once(_COMPLETED)

    def aborted(self) -> None:
        """This attempt ends, and tables are left that could not be read. Another one starts over, as in Debezium."""
        self._notifier.add(_ABORTED)

    def paused(self) -> None:
        """The snapshot is paused. Debezium pauses incremental ones only, which report it in the same words."""
        self._once(_PAUSED, data_collections=self._tables)

    def resumed(self) -> None:
        """The snapshot continues, if it was paused."""
        if (_PAUSED, "") in self._told:
            self._told.discard((_PAUSED, ""))
            self._notifier.add(_RESUMED, data_collections=self._tables)

    def stopped(self, table: TableId) -> None:
        """The table is given up; the notification is that of an incremental snapshot that is stopped."""
        if (_ABORTED, table.text) not in self._told:
            self._told.add((_ABORTED, table.text))
            self._notifier.add(_ABORTED, data_collections=table.text)

    def flush(self) -> None:
        """Write what has been collected."""
        self._notifier.flush()

    def _once(self, kind: str, **more: str) -> None:
        if (kind, "") not in self._told:
            self._told.add((kind, ""))
            self._notifier.add(kind, **more)


def _told(database: Database, id_: str, after: int) -> set[tuple[str, str]]:
    """What was reported about a snapshot: types, with the tables they concern; for an aborted attempt, what it read.

    Args:
        database: The database.
        id_: The id of its notifications.
        after: The newest `_batch` of the notifications when it was planned: a signal's id may be reused.
    """
    table = small_table(database.layout, "notifications", database.storage)
    batches = BatchSlice(after, table.state().batch)
    parts = scan(table.uri, batches=batches, columns=list(_COLUMNS), storage=database.storage)
    rows = [row for part in parts for row in part.to_pylist()]
    found = set[tuple[str, str]]()
    for row in sorted(rows, key=lambda row: row["_batch"]):
        data: dict[str, str] = dict(row["additional_data"] or ())
        if (row["id"], row["aggregate_type"]) != (id_, INITIAL) or data.get("status", "SUCCEEDED") != "SUCCEEDED":
            continue
        if row["type"] == _ABORTED and "data_collections" in data:
            found.add((_ABORTED, data["data_collections"]))
        elif row["type"] == _ABORTED:
            found = {one for one in found if one[0] in {_SCANNED, _PAUSED} or (one[1] and one[0] == _ABORTED)}
        elif row["type"] == _RESUMED:
            found.discard((_PAUSED, ""))
        else:
            found.add((row["type"], data.get("current_collection_in_progress") or data.get("scanned_collection") or ""))
    return found
