"""What a step asks of `_offsets` is carried from row to row: its cost and its memory are those of the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import StorageError
from mssql_cdc.lake import small_tables
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.log import commit
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets, offsets_table
from mssql_cdc.lake.offset_digest import KNOWN_KEYS, Digest
from mssql_cdc.lake.offset_entries import Entries
from mssql_cdc.lake.offset_rows import Rows, encode, numbered
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import ordered
from mssql_cdc.lake.steps import Entry, OffsetRow, SnapshotBegun, SnapshotEnded
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.records.cuts import Cuts
from mssql_cdc.source.values import LogMark, Witness
from mssql_cdc_tests.lake_kit import AT, lsn

NAMES = [f"shop.dbo.t{number}" for number in range(4)]
ENDED = SnapshotEnded(table="a", snapshot="p", number=1, signal=None, mark=LogMark(lsn(7), 3, 1), low=lsn(3).text)
ENTRIES = st.builds(
    Entry,
    st.sampled_from(["streaming", "snapshot", "lost", "excluded"]),
    to=st.none() | st.sampled_from(["01", "02"]),
    epoch=st.integers(0, 1),
    batch=st.none() | st.integers(0, 9),
    folder=st.none() | st.sampled_from(["x", "y"]),
    object_id=st.none() | st.integers(1, 3),
)
ROWS = st.builds(
    OffsetRow,
    kind=st.sampled_from(["range", "snapshot", "idle", "status"]),
    at=st.just(AT),
    tables=st.dictionaries(st.sampled_from("abc"), ENTRIES, max_size=3),
    to=st.none() | st.sampled_from(["01", "02", "03"]),
    epoch=st.integers(0, 1),
    complete=st.booleans(),
    partition=st.none() | st.sampled_from("pqr"),
    witness=st.none() | st.just(Witness(lsn(5), "1", "2", "then")),
    facts=st.none() | st.just(ENDED) | st.just(SnapshotBegun(snapshot="p", signal="s")),
)


def layout(folder: Path) -> Layout:
    return Layout(str(folder), "server1", "shop")


def table_of(rows: Sequence[OffsetRow]) -> pa.Table:
    return pa.concat_tables([numbered(encode(row), row.number) for row in rows])


@settings(deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=8), st.data())
def test_rows_folded_at_once_in_parts_or_one_by_one_amount_to_the_same(listed: list[OffsetRow], data: st.DataObject):
    rows = [replace(row, number=number) for number, row in enumerate(listed, start=1)]
    once = Digest().after(table_of(rows))
    split = data.draw(st.integers(0, len(rows)))
    table = table_of(rows)
    assert Digest().after(table.slice(0, split)).after(table.slice(split)) == once
    one_by_one = Digest()
    for row in rows:
        one_by_one = one_by_one.after(table_of([row]), decoded=(row,))
    assert one_by_one == once


@settings(deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_digest_says_what_all_entries_say(listed: list[OffsetRow]):
    rows = [replace(row, number=number) for number, row in enumerate(listed, start=1)]
    digest = Digest().after(table_of(rows))
    entries = [(row, name, row.tables[name]) for row in rows for name in sorted(row.tables)]
    assert digest.folders == {entry.folder for _, _, entry in entries if entry.folder is not None}
    assert digest.begins == min((entry.to for _, _, entry in entries if entry.to), default=None)
    for name in "abc":
        batches = [entry.batch for _, own, entry in entries if own == name and entry.batch is not None]
        assert digest.largest.get(name) == max(batches, default=None)
        for epoch in (0, 1):
            ends = [entry.to for _, own, entry in entries if own == name and entry.epoch == epoch and entry.to]
            assert digest.furthest.get((name, epoch)) == max(ends, default=None)
    for object_id in (1, 2, 3):
        own = [place for place, (_, _, entry) in enumerate(entries) if entry.object_id == object_id]
        read = {
            entry.epoch
            for _, _, entry in entries
            if entry.object_id == object_id and entry.status in {"streaming", "snapshot"}
        }
        assert {epoch for epoch, found in digest.met if found == object_id} == read
        if not own:
            assert digest.newest_of(object_id) is digest.newest_name(object_id) is None
            continue
        _, name, entry = entries[own[-1]]
        later = [one for _, _, one in entries[own[-1] + 1 :]]
        taken = any(one.folder == entry.folder and one.object_id not in {None, object_id} for one in later)
        assert digest.newest_of(object_id) == (None if taken and entry.folder is not None else entry)
        newer = any(other == name for _, other, _ in entries[own[-1] + 1 :])
        assert digest.newest_name(object_id) == (None if newer or entry.status == "excluded" else name)
    cut = digest.last_cut
    for folder in "xy":
        own = [(row.number, one.batch) for row, _, one in entries if one.folder == folder and one.batch is not None]
        assert digest.largest_in.get(folder) == max((batch for _, batch in own), default=None)
        by_then = [batch for number, batch in own if cut is not None and number <= cut.number]
        assert digest.in_cut.get(folder) == max(by_then, default=None)
    assert digest.ends_with_cut == (cut is not None and not any(row.tables for row in rows if row.number > cut.number))
    assert digest.keys == tuple(row.partition for row in rows if row.complete and row.partition is not None)


def range_row(number: int) -> OffsetRow:
    to = lsn(number)
    entries = {
        name: Entry("streaming", to=to.text, batch=number, folder=name, object_id=place)
        for place, name in enumerate(NAMES, start=1)
    }
    key = LsnRange(Lsn(bytes(10)), to).partition_key
    return OffsetRow("range", AT, entries, to=to.text, complete=True, partition=key, run_id="r")


def write(place: Layout, count: int) -> None:
    """`_offsets` with so many rows, in one commit."""
    small = offsets_table(place)
    rows = table_of([replace(range_row(number), number=number) for number in range(1, count + 1)])
    files = write_files(rows.combine_chunks().to_batches(), small.state().target)
    commit(replace(small.state(), batch=count - 1), files, {"kind": "range"})


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries were searched in each look into the rows."""
    found: list[int] = []
    begin: Callable[..., None] = Entries.__init__

    def counted(self: Entries, column: pa.ChunkedArray) -> None:
        begin(self, column)
        found.append(self.count)

    monkeypatch.setattr(Entries, "__init__", counted)
    return found


def asked(offsets: Offsets) -> list[Any]:
    """What surveys and steps ask."""
    cut, ahead = offsets.last_cut(), LsnRange(lsn(1), lsn(10**6)).partition_key
    assert cut is not None
    return [
        *(offsets.entry_of(name, place, folder=name) for place, name in enumerate(NAMES, start=1)),
        *(offsets.batch_at(name, cut.number) for name in NAMES),
        *(offsets.batch_at(name, cut.number, folder=name) for name in NAMES),
        *(offsets.furthest(name, 0) for name in NAMES),
        offsets.entries, offsets.folders, offsets.largest_batches, offsets.identities, offsets.advanced_at,
        offsets.snapshot_rows, offsets.noted, offsets.begun_snapshots, offsets.unwitnessed_marks, offsets.witness,
        offsets.closed_tables, offsets.answered_signals, offsets.ends_with_cut, offsets.newest, offsets.number,
        offsets.has_cut(ahead), offsets.has_cut(cut.partition or ""),
    ]  # fmt: skip


def test_a_step_searches_its_own_entries_only_however_many_rows_there_are(tmp_path: Path, touched: list[int]):
    costs: list[list[int]] = []
    for count in (10, 5000):
        place, known = layout(tmp_path / str(count)), KnownTables()
        write(place, count)
        offsets = load_offsets(place, known=known)
        del touched[:]
        for number in (count + 1, count + 2):
            row = replace(range_row(number), complete=False)
            offsets = append_offsets(place, row, seen=offsets, members=dict.fromkeys(NAMES), known=known)
            assert load_offsets(place, known=known) is offsets
            asked(offsets)
        costs.append(list(touched))
        assert offsets == load_offsets(place)
    assert costs == [[len(NAMES)] * 2] * 2


def test_memory_does_not_hold_the_rows(tmp_path: Path):
    held: list[int] = []
    for count in (10, 5000):
        place = layout(tmp_path / str(count))
        write(place, count)
        before = cast("Any", pa).total_allocated_bytes()
        offsets = load_offsets(place, known=KnownTables())
        asked(offsets)
        held.append(cast("Any", pa).total_allocated_bytes() - before)
    assert held[1] <= held[0] + 100_000


def test_rows_of_another_run_are_read_alone(tmp_path: Path, touched: list[int]):
    place, known = layout(tmp_path), KnownTables()
    write(place, 100)
    mine = load_offsets(place, known=known)
    append_offsets(place, range_row(101), seen=load_offsets(place))
    offsets_table(place).compact()
    del touched[:]
    newer = load_offsets(place, known=known)
    assert (touched, newer.number) == ([len(NAMES)], 101)
    after = append_offsets(place, replace(range_row(102), tables={}), seen=mine)
    assert after == load_offsets(place)


def test_rows_that_a_user_has_taken_away_are_missed_also_by_who_has_read_them(tmp_path: Path):
    place, known = layout(tmp_path), KnownTables()
    seen = append_offsets(place, range_row(1), seen=Offsets(), known=known)
    version = DeltaTable(place.own("offsets")).version()
    append_offsets(place, range_row(2), seen=seen, known=known)
    DeltaTable(place.own("offsets")).restore(version)
    with pytest.raises(StorageError, match="has 1 of the 2 rows"):
        load_offsets(place, known=known)


def test_all_rows_are_read_again_if_the_folder_was_put_back_and_written_since(tmp_path: Path):
    """The log is as long as the known one, and longer; its rows are others."""
    place, known, backup = layout(tmp_path), KnownTables(), layout(tmp_path / "backup")
    for one in (place, backup):
        append_offsets(one, range_row(1), seen=Offsets())
    seen = append_offsets(place, range_row(2), seen=load_offsets(place), known=known)
    log = Path(place.own("offsets"))
    log.rename(tmp_path / "gone")
    Path(backup.own("offsets")).rename(log)
    other = append_offsets(place, range_row(3), seen=load_offsets(place))
    other = append_offsets(place, range_row(4), seen=other)
    assert (seen.number, load_offsets(place, known=known)) == (2, other)


def test_a_table_that_was_made_and_never_written_has_no_rows(tmp_path: Path):
    offsets_table(layout(tmp_path)).state()
    found = load_offsets(layout(tmp_path), known=KnownTables())
    assert (found.number, found.history.rows, list(Cuts(found.recorded)), found) == (0, (), [], Offsets())


def test_rows_come_in_order_whichever_way_files_were_compacted(tmp_path: Path):
    small = offsets_table(layout(tmp_path))
    state = small.state()
    for numbers in ((2, 5, 9), (1, 7), (3, 4), (8, 6)):
        rows = table_of([replace(range_row(number), number=number) for number in numbers])
        target = replace(state.target, row_group_rows=1)
        state = commit(state, write_files(rows.combine_chunks().to_batches(), target), {"kind": "range"})
    for least in (1, 3, 100):
        found = list(ordered(small.uri, columns=["_batch", "to"], least=least))
        assert pa.concat_tables(found).column("_batch").to_pylist() == list(range(1, 10))


def test_a_range_is_known_as_a_cut_however_old_it_is(tmp_path: Path):
    place, count = layout(tmp_path), KNOWN_KEYS + 10
    write(place, count)
    offsets = load_offsets(place)
    keys = [range_row(number).partition or "" for number in range(1, count + 2)]
    assert [offsets.has_cut(key) for key in keys] == [True] * count + [False]
    assert not offsets.has_cut(LsnRange(lsn(2), lsn(3)).partition_key)


def test_appends_of_one_run_open_the_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened, load = list[str](), small_tables.load_state

    def counted(uri: str, **more: Any) -> Any:
        opened.append(uri)
        return load(uri, **more)

    place, known = layout(tmp_path), KnownTables()
    seen = append_offsets(place, range_row(1), seen=Offsets(), known=known)
    monkeypatch.setattr(small_tables, "load_state", counted)
    seen = append_offsets(place, range_row(2), seen=seen, known=known)
    assert not opened
    append_offsets(place, OffsetRow("status", AT, {}), seen=seen)
    seen = append_offsets(place, range_row(4), seen=seen, known=known)
    assert (len(opened), seen.number) == (2, 4)
    assert seen == load_offsets(place)


def test_a_kept_state_serves_until_the_table_has_a_newer_commit(tmp_path: Path):
    place, known = layout(tmp_path), KnownTables()
    seen = append_offsets(place, range_row(1), seen=Offsets(), known=known)
    uri = place.own("offsets")
    assert known.state(uri) == offsets_table(place).state()
    append_offsets(place, OffsetRow("status", AT, {}), seen=seen)
    assert known.state(uri) is None


@pytest.mark.parametrize("count", [0, 1, 8, 9, 24, 700])
def test_rows_are_read_backwards_in_blocks(count: int):
    row = OffsetRow(kind="idle", at=AT, tables={})
    rows = Rows(
        pa.concat_tables([numbered(encode(row), 0).slice(0, 0), *(numbered(encode(row), n) for n in range(count))])
    )
    assert [one.number for one in reversed(rows)] == list(range(count))[::-1]
