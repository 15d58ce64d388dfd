"""A table without a key adds up to its last snapshot and what the stream brought behind it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mssql_cdc.check.compared import Compared
from mssql_cdc.check.keyless import log_rows
from mssql_cdc.events import to_change_log
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.log import commit
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, SnapshotEnded, Stamp, range_done, snapshot_ended
from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lsn import cut_text
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import Change, change_log, column, home_in, lsn, neutral, orders

TABLE = "shop.dbo.orders"
SCHEMA = orders(column("name", "nvarchar", length=50), keys=())


def rows(
    folder: Path, *commits: tuple[str | None, list[Change]], start: str = "", bound: str | None = None
) -> dict[str | None, int]:
    home = home_in(folder)
    state = change_log(home, SCHEMA)
    for snapshot, changes in commits:
        batch = to_change_log(
            neutral(SCHEMA, *changes), table_schema=SCHEMA, batch_number=state.batch + 1, snapshot=snapshot
        )
        state = commit(state, write_files([batch], state.target), {})
    counted: Counter[Any] = Counter()
    for _, texts, count in log_rows(
        home.changes, Compared(SCHEMA, SCHEMA, keyed=False), LOCAL, start=start, bound=bound
    ):
        counted[bytes.fromhex(texts[0] or "").decode("utf-16-le")] += count
    return {name: count for name, count in counted.items() if count}


def image(name: str) -> dict[str, str]:
    return {"name": name}


FIRST = ("1", [Change(1, "r", after=image("a"), sequence=1), Change(1, "r", after=image("a"), sequence=2)])
STREAM = (None, [Change(2, "c", after=image("b")), Change(3, "u", before=image("a"), after=image("c"))])


def test_after_minus_before_adds_up_to_the_rows(tmp_path: Path):
    assert rows(tmp_path, FIRST, STREAM) == {"a": 1, "b": 1, "c": 1}


def test_rows_up_to_a_position(tmp_path: Path):
    assert rows(tmp_path, FIRST, STREAM, bound=cut_text(0, lsn(2))) == {"a": 2, "b": 1}


def test_a_second_snapshot_takes_the_place_of_everything_before_it(tmp_path: Path):
    """Review, bug 15: both snapshots, and the stream between P and E, were added up."""
    second = ("2", [Change(5, "r", after=image(name), sequence=n, snapshot=2) for n, name in enumerate("abc")])
    late = (None, [Change(4, "c", after=image("c")), Change(6, "d", before=image("a"))])
    first = (None, STREAM[1][:1])
    assert rows(tmp_path, FIRST, first, second, late, start=started(number=2, low=5)) == {"b": 1, "c": 1}


def test_a_second_snapshot_without_rows_takes_the_place_of_everything_before_it(tmp_path: Path):
    """Review: the start was searched for among the snapshot's rows, so the rows of the first one counted."""
    later = (None, [Change(6, "c", after=image("d"))])
    assert rows(tmp_path, FIRST, STREAM, later, start=started(number=2, low=5)) == {"d": 1}


def test_the_log_of_a_renamed_table_starts_at_the_snapshot_under_its_former_name():
    assert started(number=2, low=5, read_as="shop.dbo.before") == started(number=2, low=5)


def test_the_log_of_another_table_under_the_same_name_does_not_start_at_its_snapshot():
    assert started(number=2, low=5, object_id=9) == ""


def started(*, number: int, low: int, read_as: str = TABLE, object_id: int = 7) -> str:
    """Where the log of a table starts whose only snapshot was read under this name, as this object."""
    mark = LogMark(lsn(low))
    ended = SnapshotEnded(
        table=read_as, snapshot=f"snapshot-{number}", number=number, signal=None, mark=mark, low=lsn(low).text
    )
    stamp = Stamp(at=datetime(2026, 11, 22, tzinfo=UTC), run_id="run", epoch=0)
    read = snapshot_ended(stamp, Entry("streaming", object_id=object_id), ended)
    streamed = range_done(
        stamp,
        {TABLE: Entry("streaming", object_id=7)},
        to=lsn(low).text,
        partition="range",
        read=False,
        complete=True,
    )
    return Offsets().with_row(read, 1).with_row(streamed, 2).log_start(TABLE)
