"""What has to hold of incremental snapshots and of the rows that they have emitted, whatever happened beside them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import State
from mssql_cdc.schema import TableId
from mssql_cdc_tests.lake_kit import lsn
from mssql_cdc_tests.storm.lake import entry_of

_MARK = "incremental:"


def emitted_rows_are_true(
    name: str, log: Sequence[Mapping[str, Any]], rows_at: Callable[[str, int], Mapping[int, str]]
) -> None:
    """Each is one that the source had at its position, was emitted once, and would not undo a deletion in a merge.

    Args:
        name: The table.
        log: Its change log, or the part of it that belongs to the history which the source has now.
        rows_at: The rows of a table at a number of the model's log.
    """
    events: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for row in log:
        if row["op"] != "r":
            for image in (row["before"], row["after"]):
                if image is not None:
                    events[image["id"]].append((row["_pos"], row["_batch"]))
    read: Counter[tuple[str, int]] = Counter()
    for row in log:
        if not str(row["_snapshot"]).startswith(_MARK):
            continue
        key, at = row["after"]["id"], int(row["_pos"][5:25], 16)
        read[row["_snapshot"], key] += 1
        assert rows_at(name, at).get(key) == row["after"]["name"], (
            f"{name}: the row {key} never was {row['after']['name']} at {lsn(at)}"
        )
        early = [event for event in events[key] if event[0] > row["_pos"] and event[1] < row["_batch"]]
        assert not early, f"{name}: a merge would bring the row {key} back, which {early} has changed"
    assert max(read.values(), default=0) <= 1, f"{name}: a snapshot has emitted a row twice: {read}"


def emitted_rows_are_in_the_cut(database: Database, name: str, log: Sequence[Mapping[str, Any]]) -> None:
    """Otherwise neither the current table nor the records would see them before the next change.

    Args:
        database: The database.
        name: The table.
        log: Its change log.
    """
    newest = max((row["_batch"] for row in log if str(row["_snapshot"]).startswith(_MARK)), default=0)
    offsets, entry = database.offsets(), entry_of(database, name)
    cut, table = offsets.last_cut(), TableId(database.catalog, "dbo", name).text
    folder = entry.folder if entry is not None else None
    seen = offsets.batch_at(table, cut.number, folder=folder) if cut is not None else None
    assert not newest or (seen or 0) >= newest, f"{name}: emitted rows are in no complete cut"


def pause_lets_no_chunk_be_read(before: State, after: State) -> None:
    """What is staged may be emitted or given up, and its table may be left.

    Args:
        before: The state of the incremental snapshots before a look; they are paused, or the signal waits.
        after: The state behind the look.
    """
    if not after.paused or after.reading is None:
        return
    earlier, later = before.reading, after.reading
    assert earlier is not None, f"{later.wanted.table} was begun during a pause"
    assert (earlier.number, earlier.next_group) >= (later.number, later.next_group), (
        f"{later.wanted.table}: chunks were read during a pause"
    )
