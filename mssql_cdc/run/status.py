"""The status of a database's tables: from the lake, and from the source if it answers. Nothing is written.

`mssql-cdc status` shows it; the demo's table and Dagster take the lags from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.lag import Lag, lag_of
from mssql_cdc.capture.members import SNAPSHOT
from mssql_cdc.capture.sealing import Seal
from mssql_cdc.capture.snapshot.chunk_commits import groups_done
from mssql_cdc.capture.snapshot.chunk_plan import plan_of_text, resumed
from mssql_cdc.capture.snapshot_controls import heard_until, load_controls
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import (
    DataLostError,
    LoginRefusedError,
    MssqlCdcError,
    NotCaughtUpError,
    SourceError,
    StorageError,
)
from mssql_cdc.lake.commit_times import CommitTimes, commit_times
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import load_state
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.lake.named_gaps import gaps_by_name
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.progress import applied_batch
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import Entry
from mssql_cdc.lsn import Lsn
from mssql_cdc.run.snapshot_status import SnapshotStatus, snapshot_status
from mssql_cdc.run.standing import loss_text, restored, standings
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.values import CaptureHealth

RECENT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class TableStatus:
    """The status of one table.

    Attributes:
        table: The table.
        status: `new`, `snapshot`, `closed`, `streaming`, `lost`, `failed` or `excluded`. The current table of a
            `closed` table waits until capture has passed the end of the snapshot.
        detail: The reason for the status, or the progress of the snapshot.
        position: The position up to which the table's changes have been read.
        newest: The commit time of the change log's newest row.
        lag: Its lags; unknown if the source does not answer.
        recent_rows: The rows that were read in the last `RECENT`.
        open_gaps: The losses that are not acknowledged.
        absent: The table cannot be captured now: the source does not show it, or it does not fit as it is.
        unreadable: Why its change log, or its current table, cannot be read.
    """

    table: TableId
    status: str
    detail: str | None = None
    position: str | None = None
    newest: datetime | None = None
    lag: Lag = field(default_factory=Lag)
    recent_rows: int = 0
    open_gaps: int = 0
    absent: bool = False
    unreadable: str | None = None


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """The status of a database.

    `error` is why the source could not be queried, `restored` the error for a source that went back in time.
    """

    database: str
    tables: Sequence[TableStatus]
    health: CaptureHealth | None
    error: MssqlCdcError | None = None
    snapshots: SnapshotStatus = field(default_factory=SnapshotStatus)
    restored: MssqlCdcError | None = None

    @property
    def finding(self) -> MssqlCdcError | None:
        """The worst finding, as the error with which `run` would end; None if all is well."""
        lost = {one.table.text: one.detail or "" for one in self.tables if one.status == "lost"}
        if lost:
            return DataLostError(loss_text(lost, {one.table.text for one in self.tables if one.absent}))
        if self.error is not None or self.restored is not None:
            return self.error or self.restored
        if self.health is not None and self.health.problem is not None:
            return SourceError(f"{self.database}: {self.health.problem}")
        failed = {one.table: one.unreadable for one in self.tables if one.unreadable is not None}
        failed |= {one.table: one.detail for one in self.tables if one.status == "failed"}
        listed = "; ".join(f"{table}: {reason}" for table, reason in failed.items())
        return NotCaughtUpError(f"Tables failed: {listed}") if failed else None

    @property
    def refusal(self) -> LoginRefusedError | None:
        """The refusal of the login, if that is the error: each further attempt would bring a lockout closer."""
        return self.error if isinstance(self.error, LoginRefusedError) else None


def read_status(database: Database, *, refusal: LoginRefusedError | None = None) -> DatabaseStatus:
    """Return the status of a database, as far as source and lake can be queried.

    Args:
        database: The database.
        refusal: The server has just refused the login: it is not queried again.

    Raises:
        StorageError: The lake cannot be read.
    """
    offsets = database.offsets()
    snapshots = snapshot_status(database, offsets)
    try:
        if refusal is not None:
            raise refusal
        seen = survey(database, quick=True, currents=False)
        with database.session() as session:
            health = session.capture_health(positions(offsets))
    except StorageError:
        raise  # It is the lake's error, not the source's.
    except MssqlCdcError as error:
        return DatabaseStatus(database.catalog, _of_lake(database, offsets, None), None, error, snapshots)
    found = standings(seen)
    known = {one.table: one for one in _of_lake(database, offsets, health)}
    for member in seen.facts.members:
        one = known.get(member.table, TableStatus(member.table, "new"))
        known[member.table] = replace(one, status="new") if member.status == "new" else one
    for absent in seen.facts.absent:
        known.setdefault(absent.shown, TableStatus(absent.shown, "new"))
    for status, reasons in (("failed", found.failed), ("lost", found.missing)):
        for table, one in list(known.items()):
            if table.text in reasons:
                known[table] = replace(
                    one, status=status, detail=reasons[table.text], absent=table.text in found.absent
                )
    tables = sorted(known.values(), key=lambda one: one.table.text)
    return DatabaseStatus(database.catalog, tables, health, snapshots=snapshots, restored=restored(seen))


def read_lags(database: Database) -> Mapping[TableId, Lag]:
    """Return the lags of the tables that the lake has, without a survey.

    Raises:
        SourceUnavailableError, SourceError: The source cannot be queried.
    """
    offsets = database.offsets()
    with database.session() as session:
        health = session.capture_health(positions(offsets))
    return {one.table: one.lag for one in _of_lake(database, offsets, health)}


def positions(offsets: Offsets) -> set[Lsn]:
    """The distinct positions of all tables."""
    return {position for entry in offsets.present.values() if (position := position_of(entry, offsets)) is not None}


def position_of(entry: Entry, offsets: Offsets) -> Lsn | None:
    """A table's position in the current epoch; None before it streams."""
    to = entry.to_in(offsets.epoch) if entry.status in {"streaming", "failed", "lost"} else None
    return Lsn.parse(to) if to is not None else None


def unmerged_since(database: Database, home: TableHome, newest: TableSchema) -> CommitTimes:
    """Return the commit times of a change log's newest row, and of the oldest row that its current table lacks.

    Args:
        database: The database; it knows the current tables' logs.
        home: The table's folders.
        newest: The table's newest structure.

    Raises:
        StorageError: The current table cannot be read.
    """
    log = database.current_logs.newest(home.current, database.storage) if newest.key_columns else None
    after = applied_batch(log, newest) if log is not None else 0
    return commit_times(home.changes, after=after, storage=database.storage)


def _of_lake(database: Database, offsets: Offsets, health: CaptureHealth | None) -> list[TableStatus]:
    """The tables that the lake has, with their lags if the source answers."""
    recent = _recent_rows(offsets)
    found: list[TableStatus] = []
    known = database.history().versions
    entries = entries_by_name(offsets, known)
    gaps = gaps_by_name(database.layout, offsets, known, database.storage)
    for name, versions in known.items():
        entry, newest = entries.get(name), versions[-1]
        if entry is None or entry.status == "excluded":
            continue
        home = database.layout.home(newest.table_id, folder=entry.folder)
        position, lag = position_of(entry, offsets), Lag()
        status, detail = _status(database, offsets, entry, newest.table_id)
        readable, unreadable = bool(newest.key_columns), None
        try:
            times = unmerged_since(database, home, newest)
        except StorageError as error:
            times, readable = _readable_times(database, home), False
            what = "change log" if times is None else "current table"
            unreadable = f"the {what} cannot be read: {error}"
            detail = "; ".join(one for one in (detail, unreadable) if one)
            times = times or CommitTimes()
        if health is not None:
            lag = lag_of(position, times.oldest_after, health, has_current=readable)
        found.append(
            TableStatus(
                newest.table_id,
                status,
                detail,
                entry.to,
                times.newest,
                lag,
                recent[name],
                len(gaps.get(name, ())),
                unreadable=unreadable,
            )
        )
    return found


def _readable_times(database: Database, home: TableHome) -> CommitTimes | None:
    """The commit times of a change log, whatever its current table is like; None: the log cannot be read either."""
    try:
        return commit_times(home.changes, after=0, storage=database.storage)
    except StorageError:
        return None


def _status(database: Database, offsets: Offsets, entry: Entry, table: TableId) -> tuple[str, str | None]:
    """A table's status, and what to say about it."""
    if entry.status == "snapshot":
        return "snapshot", _snapshot_progress(database, offsets, entry, table)
    mark = offsets.closed_until(table.text, entry)
    if entry.status == "streaming" and mark is not None:
        return "closed", f"waiting for capture to pass {mark.lsn}"
    return entry.status, entry.reason


def _snapshot_progress(database: Database, offsets: Offsets, entry: Entry, table: TableId) -> str | None:
    """How many chunks of the table's snapshot are in the change log."""
    snapshot = offsets.begun_snapshots.get(table.text)
    plans = [row for row in small_table(database.layout, "snapshots", database.storage).rows() if row["id"] == snapshot]
    seal = Seal(database.connector.delta.key_secret)
    plan = plan_of_text(seal.opened(plans[-1]["plan"])) if plans else None
    known = next((one for one in plan.tables if one.table == table), None) if plan is not None else None
    if snapshot is None or known is None:
        return None
    home = database.layout.home(table, folder=entry.folder)
    state = load_state(home.changes, owner=home.app_id, writer=SNAPSHOT, storage=database.storage)
    groups = groups_done(state, snapshot, seal) if state is not None else []
    found = resumed(known, groups)
    done = {number for group in groups for number in group.chunks} & {*found.numbers}
    count = f"{len(done)} of {len(found.chunks)} chunks" if found.is_whole else f"chunks so far: {len(done)}"
    return f"{count} (paused)" if load_controls(database).paused(heard_until(offsets, snapshot)) else count


def _recent_rows(offsets: Offsets) -> Counter[str]:
    """The rows that were read in the last `RECENT`, by table."""
    found: Counter[str] = Counter()
    since = datetime.now(UTC) - RECENT
    for row in offsets.history.newest_first():
        if row.at < since:
            break
        found.update({name: entry.rows for name, entry in row.tables.items()})
    return found
