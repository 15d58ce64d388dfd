"""The lake's side of the storm: where a run may be killed, and the rows that a change log amounts to."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from deltalake.exceptions import CommitFailedError

from mssql_cdc.capture import members
from mssql_cdc.capture.current_tables import mergeable_batch
from mssql_cdc.capture.database import Database
from mssql_cdc.check.story import log_start
from mssql_cdc.config import Connector, connector_from_mapping
from mssql_cdc.errors import StorageError
from mssql_cdc.lake.gaps import Gap, load_gaps
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import facts_of, load_state
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import exists, scan
from mssql_cdc.lake.steps import Entry, IncrementalEnded, OffsetRow, Reached, SnapshotEnded
from mssql_cdc.lsn import Lsn, snapshot_position_text
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc_tests.storm.worlds import Interruption

WRITES: tuple[str, ...] = (
    "mssql_cdc.capture.range.commit",
    "mssql_cdc.capture.range.append_offsets",
    "mssql_cdc.capture.snapshot.chunk_groups.commit",
    "mssql_cdc.capture.snapshot.begin.append_offsets",
    "mssql_cdc.capture.snapshot.finish.append_offsets",
    "mssql_cdc.run.loss.append_offsets",
    "mssql_cdc.capture.incremental.chunks.write",
    "mssql_cdc.capture.incremental.emission.commit",
    "mssql_cdc.capture.incremental.emission.append_offsets",
    "mssql_cdc.lake.small_tables.commit",
)
"""The writes between which a run may end."""


_ENDLESS = "~"


class Killed(BaseException):
    """The process ends here."""


def connector_for(folder: Path, **properties: str) -> Connector:
    """A connector that writes below this folder; `properties` win over those of the model."""
    given = {
        "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
        "database.hostname": "127.0.0.1",
        "database.user": "sa",
        "database.password": "x",
        "database.names": "shop",
        "topic.prefix": "server1",
        "delta.warehouse": str(folder),
        "retriable.restart.connector.wait.ms": "1000",  # By the clock of the schedule, not by the machine.
        "dagster.max.attempts": "2",
        "incremental.snapshot.added.columns": "false",  # It would mend what a schedule wants to see; some draw it.
        "incremental.snapshot.chunk.size": "1",
    }
    return connector_from_mapping("storm", {**given, **properties})


@contextmanager
def unopened(database: Database, name: str) -> Iterator[None]:
    """The change log of a table cannot be opened meanwhile: its store does not answer, or its folder is unmounted."""
    uri, load = home_of(database, name).changes, members._load

    def refused(database: Database, home: TableHome, writer: str) -> Any:
        if home.changes == uri:
            raise StorageError(f"{uri} cannot be reached")
        return load(database, home, writer)

    with patch("mssql_cdc.capture.members._load", refused):
        yield


@contextmanager
def killed_at(target: str, call: int, *, after: bool) -> Iterator[None]:
    """The n-th call of the function ends the process, before or after it has done its work."""

    def die() -> None:
        raise Killed

    with happening_at(target, call, die, after=after):
        yield


@contextmanager
def happening_at(target: str, call: int, action: Callable[[], None], *, after: bool = False) -> Iterator[None]:
    """Something happens at the n-th call of the function, before or after it has done its work."""
    module, _, name = target.rpartition(".")
    real = getattr(__import__(module, fromlist=[name]), name)
    numbers = itertools.count(1)

    def told(*arguments: Any, **more: Any) -> Any:
        now = next(numbers) == call
        if now and not after:
            action()
        result = real(*arguments, **more)
        if now and after:
            action()
        return result

    with patch(target, told):
        yield


def rows_by_the_log(database: Database, name: str, *, keyed: bool, part: bool = False) -> Counter[tuple[int, str]]:
    """The rows that the change log of a table amounts to.

    With a key the newest change of a key counts, unless it is below the bound of a sweep. Without one every change from
    the last snapshot on does (C21), which is exact because such a table is read under a lock; a change that removes
    what is not there fails.

    Args:
        database: The database.
        name: The table.
        keyed: Whether it has a key.
        part: Of a table without a key, a part was read only: rows that were left out count as -1 once they change.
    """
    offsets, log, entry = database.offsets(), change_log(database, name), entry_of(database, name)
    folder = entry.folder if entry is not None else None
    if keyed:
        bound = _sweeps_below(database, folder)
        told = [change for change in log if change["_pos"] >= bound]
        rows: dict[int, str] = {}
        for change in told:
            if change["before"] is not None:
                rows.pop(change["before"]["id"], None)
            if change["after"] is not None:
                rows[change["after"]["id"]] = change["after"]["name"]
        return Counter(rows.items())
    start = log_start(_versions(database, entry), folder=folder or "", offsets=offsets)
    snapshot = _last_snapshot(offsets, folder)
    counts: Counter[tuple[int, str]] = Counter()
    for change in log:
        if change["_pos"] < start or (change["op"] == "r" and change["_snapshot"] != snapshot):
            continue  # An incremental snapshot only repeats rows.
        for image, count in ((change["before"], -1), (change["after"], 1)):
            if image is not None:
                counts[image["id"], image["name"]] += count
    if part:
        return counts
    assert not -counts, f"{name}: the log removes rows that it never had: {-counts}"
    return +counts


def _versions(database: Database, entry: Entry | None) -> list[TableSchema]:
    """The structures of a table, under whatever names."""
    history, identity = database.history(), entry.object_id if entry is not None else None
    found = (one for versions in (*history.versions.values(), *history.former.values()) for one in versions)
    return sorted((one for one in found if one.object_id == identity), key=lambda one: one.version)


def was_read_again(database: Database, name: str, *, keyed: bool) -> bool:
    """Whether a table that had streamed was read because its stream did not go on, or it has no key: in full (C19)."""
    streamed = False
    for entry in _entries(database, name):
        if streamed and entry.status == "snapshot" and (entry.to is None or not keyed):
            return True
        streamed = streamed or entry.to is not None
    return False


def has_streamed(database: Database, name: str) -> bool:
    """Whether the lake has a position of the table."""
    entry = entry_of(database, name)
    return entry is not None and entry.to is not None


def entry_of(database: Database, name: str) -> Entry | None:
    """The newest entry of a table, which may be under a name that it had before (B15)."""
    offsets, table = database.offsets(), TableId(database.catalog, "dbo", name).text
    object_id = cast("Interruption", database.source).object_id(name)
    known = object_id is not None and object_id in offsets.identities
    return newest_entry(database, object_id or 0) if known else offsets.entry(table)


def newest_entry(database: Database, object_id: int) -> Entry:
    """The newest entry of an identity, whatever name the table had then."""
    rows = ([*row.tables.values()] for row in reversed(told_rows(database)))
    return next(entry for entries in rows for entry in reversed(entries) if entry.object_id == object_id)


def told_rows(database: Database) -> Sequence[OffsetRow]:
    """The rows of `_offsets`. Those of the last look are not decoded again: that was a quarter of a schedule's time."""
    judged, offsets = cast("Interruption", database.source).judged, database.offsets()
    if judged.offsets is not offsets:
        known, rows = judged.rows, offsets.history.rows
        if len(known) > len(rows) or (known and known[-1] != rows[len(known) - 1]):
            known.clear()
        known.extend(rows[len(known) :])
        judged.offsets = offsets
    return judged.rows


def _entries(database: Database, name: str) -> list[Entry]:
    """All entries of a table, and of those in whose place it is, in order: they have its folder."""
    newest = entry_of(database, name)
    rows = told_rows(database)
    return [one for row in rows for one in row.tables.values() if newest is not None and one.folder == newest.folder]


def change_log(database: Database, name: str) -> list[dict[str, Any]]:
    """The rows of a table's change log in the order of their positions."""
    return _rows(database, home_of(database, name).changes)


def change_logs(database: Database) -> dict[str, list[dict[str, Any]]]:
    """The rows of every change log by its folder, also of tables that have no name of their own any more."""
    nobody = TableId(database.catalog, "dbo", "nobody")
    folders = database.offsets().folders
    return {one: _rows(database, database.layout.home(nobody, folder=one).changes) for one in sorted(folders)}


def _rows(database: Database, uri: str) -> list[dict[str, Any]]:
    if not exists(uri, database.storage):
        return []
    rows = [row for batch in scan(uri, storage=database.storage) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: row["_pos"])


def home_of(database: Database, name: str) -> TableHome:
    """The folders of a table."""
    entry = entry_of(database, name)
    return database.layout.home(TableId(database.catalog, "dbo", name), folder=entry.folder if entry else None)


def is_known(database: Database, name: str) -> bool:
    """Whether the lake has ever had the table."""
    return entry_of(database, name) is not None


def untold_breaks(database: Database, named: Collection[str]) -> set[tuple[str, str]]:
    """Table and position where a stream broke off although the ledger has no gap there.

    A stream breaks where an entry has no position any more, or the next one is a snapshot's that does not begin at it;
    where the epoch ends; and where the connector names the table. A snapshot that was read from a restored source,
    before that was noticed, ends at an earlier position: then the gap begins anywhere between the two. A run that died
    may have committed rows of the table behind its last entry: they count for its position (A1).

    Args:
        database: The database.
        named: The tables that the connector names.
    """
    offsets = database.offsets()
    ledger = load_gaps(database.layout, database.storage)
    untold: set[tuple[str, str]] = set()
    mine = {home_of(database, name).changes for name in named}
    names: dict[str, set[str]] = {}
    entries: dict[str, list[Entry]] = {}
    for name, entry in ((name, entry) for row in told_rows(database) for name, entry in row.tables.items()):
        # Tables keep their folders, whatever names they get.
        home = database.layout.home(_table_id(name), folder=entry.folder).changes
        names.setdefault(home, set()).add(name)
        entries.setdefault(home, []).append(entry)
    for home, own in entries.items():
        committed = _committed(database, own[-1].folder, next(iter(names[home])))
        last: Reached | None = None
        furthest: Reached | None = None  # Since the last break.
        for entry in [*own, None]:
            if entry is None:
                broken, open_ = home in mine, True
            else:
                broken, open_ = entry.to is None and entry.status == "snapshot", False
            if last is not None and (broken or (entry is not None and entry.epoch > last.epoch)):
                known = (last, furthest, committed.get(last.epoch))
                ends = last, max(one for one in known if one is not None)
                told = [one for one in ledger if one.table in names[home] and _begins_between(one, *ends)]
                if open_ and last.epoch == offsets.epoch:
                    told = [one for one in told if one.to is None]
                if not told:
                    untold.add((home, last.to))
                last = furthest = None
            last = (entry.reached if entry is not None else None) or last
            furthest = max((one for one in (last, furthest) if one is not None), default=None)
    return untold


def _committed(database: Database, folder: str | None, name: str) -> dict[int, Reached]:
    """How far the commits of a change log themselves say that its stream was read, by epoch."""
    home = database.layout.home(_table_id(name), folder=folder)
    state = load_state(home.changes, owner=home.app_id, storage=database.storage)
    facts = [facts_of(entry) or {} for entry in state.opened().history()] if state is not None else []
    ends = (Reached(int(one["epoch"]), str(one["to"])) for one in facts if one.get("kind") == "range")
    return {end.epoch: end for end in sorted(ends)}


def _begins_between(gap: Gap, last: Reached, furthest: Reached) -> bool:
    return gap.epoch == last.epoch and last.to <= gap.from_ <= max(furthest.to, last.to)


def missing_events(
    database: Database, name: str, log: list[dict[str, Any]], captured: Counter[str] | None, *, tampered: bool
) -> Counter[str]:
    """Captured changes of the current epoch that the change log lacks and that are in no gap of the ledger.

    Args:
        database: The database.
        name: The table.
        log: Its change log.
        captured: The commits of the captured changes; None: not known.
        tampered: A user took rows away that were read before the gap.
    """
    epoch, names = database.offsets().epoch, _names(database, name)
    streaming = (one.to for one in _entries(database, name) if one.status == "streaming" and one.epoch == epoch)
    first = next(streaming, None)
    if captured is None or first is None:
        return Counter()
    ledger = load_gaps(database.layout, database.storage)
    mine = (gap for gap in ledger if gap.table in names and gap.epoch == epoch)
    gaps = [("" if tampered else gap.from_, gap.to or _ENDLESS) for gap in mine]
    wanted = {
        commit: count
        for commit, count in captured.items()
        if commit > first and not any(from_ < commit <= to for from_, to in gaps)
    }
    told = (change for change in log if change["op"] != "r" and change["_pos"].startswith(f"{epoch:04x}-"))
    return Counter(wanted) - Counter(str(change["source"]["commit_lsn"]) for change in told)


def missing_columns(
    database: Database, log: list[dict[str, Any]], captured: Mapping[str, Collection[str]] | None
) -> dict[str, set[str]]:
    """By commit, the columns that rows of the current epoch lack although a capture instance had them (B14).

    Args:
        database: The database.
        log: The change log of a table.
        captured: The columns that the newest instance had captured at each commit; None: not known.
    """
    if captured is None:
        return {}
    epoch = database.offsets().epoch
    missing: dict[str, set[str]] = {}
    for change in log:
        commit, after = str(change["source"]["commit_lsn"]), change["after"]
        if change["op"] == "r" or after is None or not change["_pos"].startswith(f"{epoch:04x}-"):
            continue
        lacking = {name for name in captured.get(commit, ()) if after.get(name) is None}
        if lacking:
            missing[commit] = lacking
    return missing


def opened_snapshots(database: Database) -> Iterator[tuple[str, int, int, Lsn, Lsn]]:
    """The tables whose last snapshot may be merged.

    Returns:
        The name that it had then, object id, the snapshot's number, the log's end E that it recorded, and the position
        of the stream.
    """
    offsets = database.offsets()
    ended: dict[int, tuple[Entry, SnapshotEnded]] = {}
    for row in offsets.noted:
        if isinstance(row.facts, SnapshotEnded) and row.epoch == offsets.epoch:
            read = row.tables[row.facts.table]
            ended[read.object_id or 0] = read, row.facts
    for object_id, (read, facts) in ended.items():
        entry = newest_entry(database, object_id)
        up_to = mergeable_batch(_table_id(facts.table), offsets, entry)
        if entry.to is None or up_to is None or up_to < (read.batch or 0):
            continue
        yield _table_id(facts.table).name, object_id, facts.number, facts.mark.lsn, Lsn.parse(entry.to)


def restore_change_log(database: Database, name: str, back: int) -> bool:
    """A user restores a change log with deltalake: it is as it was so many versions before. Whether that could be."""
    home = home_of(database, name)
    state = load_state(home.changes, owner=home.app_id, storage=database.storage)
    if state is None or state.delta_version < back:
        return False
    try:
        state.opened().restore(state.delta_version - back)
    except CommitFailedError as error:
        if "TypeWidening" not in str(error):
            raise
        return False  # deltalake restores no table with a widened column.
    return True


def _table_id(text: str) -> TableId:
    return TableId(*text.split("."))


def _names(database: Database, name: str) -> set[str]:
    """The names under which a table ever had an entry, and its own (`TableId.text`)."""
    newest = entry_of(database, name)
    found = {
        one
        for row in told_rows(database)
        for one, entry in row.tables.items()
        if newest is not None and entry.folder == newest.folder
    }
    return found | {TableId(database.catalog, "dbo", name).text}


def _last_snapshot(offsets: Offsets, folder: str | None) -> str | None:
    """Number of the last snapshot of the table with this folder that was read to its end."""
    for row in reversed(offsets.noted):
        facts = row.facts
        if isinstance(facts, SnapshotEnded) and row.tables[facts.table].folder == folder and facts.stopped is None:
            return str(facts.number)
    return None


def _sweeps_below(database: Database, folder: str | None) -> str:
    """The position below which the sweeps behind the snapshots of the table with this folder leave nothing."""
    ids = {one.object_id for row in told_rows(database) for one in row.tables.values() if one.folder == folder}
    bounds: list[str] = []
    for row in database.offsets().noted:
        facts = row.facts
        if not isinstance(facts, SnapshotEnded | IncrementalEnded) or facts.sweep is None:
            continue
        read = row.tables[facts.table].folder == folder if isinstance(facts, SnapshotEnded) else facts.object_id in ids
        if read:
            bounds.append(snapshot_position_text(row.epoch, Lsn.parse(facts.sweep.low), number=facts.number))
    return max(bounds, default="")
