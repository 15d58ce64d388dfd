"""`_offsets`: sparse rows, newest entry applies, complete cuts, failed appends (rules A1, A3, A4)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import FencedError, StorageError
from mssql_cdc.lake.cuts import cut_of
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, OffsetRow, Reached, SnapshotBegun, SnapshotEnded, Status, Swept
from mssql_cdc.lsn import Lsn
from mssql_cdc.records.cuts import Cuts
from mssql_cdc.source.values import LogMark, Witness
from mssql_cdc_tests.lake_kit import AT, lsn

MARK = LogMark(Lsn((7).to_bytes(10, "big")), 3, 1)
ENDED = SnapshotEnded(table="a", snapshot="p", number=1, signal=None, mark=MARK, low=lsn(3).text)
WITNESS = Witness(Lsn((5).to_bytes(10, "big")), "1", "2", "then")


def layout(folder: Path) -> Layout:
    return Layout(str(folder), "server1", "shop")


def offset_row(to: str, **tables: Entry) -> OffsetRow:
    return OffsetRow("range", AT, tables, to=to)


def at(to: str, **more: Any) -> Entry:
    return Entry("streaming", to=to, **more)


def test_offsets_of_a_new_database_are_empty(tmp_path: Path):
    found = load_offsets(layout(tmp_path))
    assert (found.history.rows, found.entry("a"), found.position("a"), found.last_cut()) == ((), None, None, None)
    assert not (tmp_path / "server1").exists()


@pytest.mark.parametrize("kept", [0, 2])
@pytest.mark.parametrize("compacted", [False, True])
def test_offsets_that_a_user_took_back_are_refused(tmp_path: Path, kept: int, *, compacted: bool):
    """RESTORE keeps txns: positions, epochs and the ends of snapshots would go back, and numbers go on."""
    home, seen = layout(tmp_path), Offsets()
    for number in range(1, 4):
        seen = append_offsets(home, offset_row(f"0{number}", a=at(f"0{number}")), seen=seen)
    table = DeltaTable(home.own("offsets"))
    if compacted:
        table.optimize.compact()
        table.create_checkpoint()
    table.restore(kept)
    with pytest.raises(StorageError, match=rf"_offsets has {kept} of the 3 rows that were written") as said:
        load_offsets(home)
    assert "DESCRIBE HISTORY" in str(said.value)
    table.restore(table.version() - 1)
    assert load_offsets(home) == seen


def test_offsets_that_were_taken_back_and_went_on_are_refused(tmp_path: Path):
    home, seen = layout(tmp_path), Offsets()
    for number in range(1, 4):
        seen = append_offsets(home, offset_row(f"0{number}", a=at(f"0{number}")), seen=seen)
    DeltaTable(home.own("offsets")).restore(2)
    append_offsets(home, offset_row("04", b=at("04")), seen=seen)
    with pytest.raises(StorageError, match=r"_offsets has 3 of the 4 rows that were written"):
        load_offsets(home)


def test_rows_survive_storage(tmp_path: Path):
    row = OffsetRow(
        "snapshot",
        AT,
        {"a": Entry("snapshot", "05", 1, "id", 3, 4, 5, 2, "dbo/a", "why")},
        to="05",
        epoch=1,
        scanned="06",
        partition="p",
        run_id="r",
        witness=WITNESS,
        facts=Swept(table="a", object_id=1, number=3),
    )
    written = append_offsets(layout(tmp_path), row, seen=Offsets())
    assert load_offsets(layout(tmp_path)) == written
    assert written.history.rows[0].tables == row.tables
    assert written.history.rows[0].number == 1


def test_run_over_a_subset_advances_its_own_tables_only_and_writes_no_cut(tmp_path: Path):
    place, members = layout(tmp_path), dict.fromkeys("ab")
    seen = append_offsets(place, offset_row("01", a=at("01"), b=at("01")), seen=load_offsets(place), members=members)
    seen = append_offsets(place, offset_row("02", a=at("02")), seen=seen, members=members)
    assert [row.complete for row in seen.history.rows] == [True, False]
    assert (seen.position("a"), seen.position("b")) == (Reached(0, "02"), Reached(0, "01"))
    assert seen.last_cut() == seen.history.rows[0]


def test_table_missing_from_the_offsets_has_no_position_regardless_of_the_database(tmp_path: Path):
    place = layout(tmp_path)
    seen = append_offsets(place, offset_row("09", a=at("09")), seen=load_offsets(place), members={"a": None})
    assert seen.position("b") is None
    assert seen.position("b", own=Reached(0, "04")) == Reached(0, "04")


def test_position_is_the_larger_of_the_tables_own_commit_and_its_entry(tmp_path: Path):
    place = layout(tmp_path)
    seen = append_offsets(place, offset_row("05", a=at("05")), seen=load_offsets(place))
    assert seen.position("a", Reached(0, "07")) == Reached(0, "07")
    assert seen.position("a", Reached(0, "03")) == Reached(0, "05")
    assert seen.position("a", Reached(1, "01")) == Reached(1, "01")


def test_cut_names_failed_members_and_does_not_wait_for_them():
    entries = {"a": at("1"), "b": Entry("failed"), "c": Entry("snapshot"), "d": Entry("excluded"), "e": Entry("lost")}
    assert cut_of(entries, "abcde", {"a"}) == (True, ("b",))
    assert cut_of(entries, "abcde", set()) == (False, ("b",))


@given(
    st.dictionaries(
        st.sampled_from("abcd"), st.sampled_from(["streaming", "snapshot", "failed", "excluded"]), max_size=4
    ),
    st.sets(st.sampled_from("abcd")),
)
def test_cut_is_complete_exactly_when_it_includes_every_streaming_member(statuses: Any, took_part: set[str]):
    entries = {name: Entry(status) for name, status in statuses.items()}
    complete, _ = cut_of(entries, "abcd", took_part)
    assert complete == all(name in took_part for name, entry in entries.items() if entry.status == "streaming")


def test_table_that_begins_anew_holds_back_no_cut_until_it_has_begun(tmp_path: Path):
    """What its entry says is of the table that was dropped, or of the epoch before a restore."""
    place, members = layout(tmp_path), dict.fromkeys("ab")
    seen = append_offsets(place, offset_row("01", a=at("01"), b=at("01")), seen=load_offsets(place), members=members)
    cut = append_offsets(place, offset_row("02", b=at("02")), seen=seen, members=members, new=["a"])
    assert cut.history.rows[-1].complete

    append_offsets(place, OffsetRow("snapshot", AT, {"a": at("03", object_id=7)}), seen=cut)
    late = append_offsets(place, offset_row("04", b=at("04")), seen=cut, members=members, new=["a"])
    assert not late.history.rows[-1].complete


def test_table_whose_name_another_one_had_and_left_holds_back_no_cut(tmp_path: Path):
    """Its newest entry is that of a lost table; under its name there is a newer one of the table that goes on."""
    place, members = layout(tmp_path), {"a": 1, "b": 2}
    seen = append_offsets(
        place, offset_row("01", a=at("01", object_id=1), b=at("01", object_id=2)), seen=Offsets(), members=members
    )
    lost = OffsetRow("status", AT, {"b": Entry("lost", "01", object_id=2)})
    seen = append_offsets(place, lost, seen=seen)
    seen = append_offsets(place, offset_row("02", b=at("02", object_id=1)), seen=seen, members={"b": 1})
    seen = append_offsets(place, offset_row("03", a=at("03", object_id=1)), seen=seen, members=members)
    assert [row.complete for row in seen.history.rows] == [True, False, True, True]


def test_folders_at_a_position_are_those_of_the_table_that_was_lost_there():
    """Another table has had the name at the same position since: its snapshots must not end the lost one's gap."""
    mine, other = at("01", object_id=2, folder="dbo/b"), at("01", object_id=1, folder="dbo/a")
    before = Offsets().with_row(offset_row("01", b=mine), 1)
    taken = before.with_row(offset_row("01", b=other), 2)
    lost = before.with_row(OffsetRow("status", AT, {"b": replace(mine, status="lost")}), 2)
    assert taken.history.folders_at("b", Reached(0, "01")) == {"dbo/a", "dbo/b"}
    assert lost.with_row(offset_row("01", b=other), 3).history.folders_at("b", Reached(0, "01")) == {"dbo/b"}
    assert taken.history.folders_at("b", Reached(0, "02")) == set()


def test_failed_append_of_other_tables_retries_with_the_next_number(tmp_path: Path):
    place = layout(tmp_path)
    seen = load_offsets(place)
    append_offsets(place, offset_row("01", a=at("01")), seen=seen, members=dict.fromkeys("ab"))
    after = append_offsets(place, offset_row("02", b=at("02")), seen=seen, members=dict.fromkeys("ab"))
    assert [row.number for row in after.history.rows] == [1, 2]
    assert load_offsets(place) == after


def test_failed_append_of_the_same_table_is_fenced(tmp_path: Path):
    place = layout(tmp_path)
    seen = load_offsets(place)
    append_offsets(place, offset_row("01", a=at("01")), seen=seen)
    with pytest.raises(FencedError, match=r"\['a'\]"):
        append_offsets(place, offset_row("02", a=at("02"), b=at("02")), seen=seen)


def test_range_and_snapshots_may_write_concurrently(tmp_path: Path):
    place = layout(tmp_path)
    seen = append_offsets(place, offset_row("00", z=at("00")), seen=load_offsets(place))

    def run(name: str) -> int:
        return append_offsets(place, offset_row("01", **{name: at("01")}), seen=seen).history.rows[-1].number

    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(run, "abcd"))
    assert sorted(numbers) == [2, 3, 4, 5]
    assert set(load_offsets(place).entries) == set("abcdz")


def test_batch_at_a_cut_ignores_later_rows(tmp_path: Path):
    place, members = layout(tmp_path), dict.fromkeys("ab")
    seen = load_offsets(place)
    seen = append_offsets(place, offset_row("01", a=at("01", batch=4), b=at("01")), seen=seen, members=members)
    seen = append_offsets(place, offset_row("02", a=at("02", batch=5)), seen=seen, members=members)
    cut = seen.last_cut()
    assert cut is not None
    assert seen.batch_at("a", cut.number) == 4
    assert seen.batch_at("b", cut.number) is None


def test_many_rows_are_compacted_and_none_is_lost(tmp_path: Path):
    place, seen = layout(tmp_path), load_offsets(layout(tmp_path))
    for number in range(1, 103):
        seen = append_offsets(place, offset_row(f"{number:03}", a=at(f"{number:03}")), seen=seen, members={"a": None})
    again = load_offsets(place)
    assert [row.number for row in again.history.rows] == list(range(1, 103))
    assert again == seen
    assert again.position("a") == Reached(0, "102")


ROWS = st.builds(
    OffsetRow,
    kind=st.sampled_from(["range", "snapshot", "idle", "status"]),
    at=st.just(AT),
    tables=st.dictionaries(
        st.sampled_from("abc"),
        st.builds(
            Entry,
            st.sampled_from(["streaming", "snapshot", "lost", "failed"]),
            to=st.none() | st.sampled_from(["01", "02"]),
            batch=st.none() | st.integers(1, 9),
        ),
        max_size=3,
    ),
    to=st.none() | st.sampled_from(["01", "02", "03"]),
    epoch=st.integers(0, 1),
    complete=st.booleans(),
    partition=st.none() | st.sampled_from(["p", "q"]),
    witness=st.none()
    | st.just(WITNESS)
    | st.just(replace(WITNESS, tran_id="2"))
    | st.just(replace(WITNESS, start_lsn=lsn(2))),
    facts=st.none() | st.just(ENDED) | st.just(SnapshotBegun(snapshot="p", signal="s")),
)


@settings(deadline=None)
@given(st.lists(ROWS, max_size=8))
def test_values_derived_from_columns_equal_those_derived_row_by_row(listed: list[OffsetRow]):
    found, entries = Offsets(), {}
    rows = [replace(row, number=number) for number, row in enumerate(listed, start=1)]
    closed: dict[str, Any] = {}
    begun: dict[str, str] = {}
    for row in rows:
        found = found.with_row(row, row.number)
        entries |= row.tables
        assert found.entries == entries
        in_cut = {name for name, entry in row.tables.items() if row.complete and entry.status == "streaming"}
        closed = {name: mark for name, mark in closed.items() if name not in in_cut}
        if isinstance(row.facts, SnapshotEnded) and row.epoch == max(one.epoch for one in rows):
            closed = closed | {row.facts.table: row.facts.mark}
        for name, entry in row.tables.items():
            if entry.status == "snapshot" and row.kind == "snapshot":
                begun[name] = row.partition or ""
    assert list(found.history.rows) == rows
    assert list(reversed(found.history.rows)) == rows[::-1]
    assert list(found.history.newest_first()) == rows[::-1]
    assert found.history.rows[1:] == tuple(rows[1:])
    assert found.entries == entries
    assert found.epoch == max((row.epoch for row in rows), default=0)
    assert found.closed_tables == closed
    assert found.begun_snapshots == {n: p for n, p in begun.items() if entries[n].status == "snapshot"}
    # The furthest: a table that is behind the others has an older one.
    known = [row.witness for row in rows[::-1] if row.witness and row.epoch == found.epoch]
    assert found.witness == max(known, key=lambda one: one.start_lsn, default=None)
    cuts = [(row.number, row.at, row.epoch, row.to) for row in rows if row.complete and row.to is not None]
    assert list(Cuts(found.recorded)) == cuts
    for name in "abc":
        said = [row.tables[name].reached for row in rows if name in row.tables]
        assert found.history.reached(name) == {one for one in said if one is not None}
    reached = [row for row in rows if row.complete and row.to is not None]
    assert found.last_cut() == max(reached, key=lambda row: (row.epoch, row.to, row.number), default=None)
    for cut in rows:
        for name in "abc":
            batches = [r.tables[name].batch for r in rows[: cut.number] if name in r.tables]
            assert found.batch_at(name, cut.number) == max((b for b in batches if b is not None), default=None)


def test_a_row_of_an_earlier_epoch_is_fenced_once_a_new_one_has_begun(tmp_path: Path):
    place = layout(tmp_path)
    seen = append_offsets(place, offset_row("01", a=at("01")), seen=load_offsets(place))
    append_offsets(place, OffsetRow("epoch", AT, {}, epoch=1), seen=seen)
    with pytest.raises(FencedError, match="Epoch 1 has begun"):
        append_offsets(place, offset_row("02", a=at("02")), seen=seen)


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([("a", 1, "dbo/a"), ("b", 1, "dbo/a")], "b"),  # Renamed.
        ([("a", 1, "dbo/a"), ("a", 2, "dbo/a!2"), ("b", 1, "dbo/a")], "b"),  # Its name is another one's.
        ([("a", 1, "dbo/a"), ("a", 2, "dbo/a!2")], "a"),  # The same, before it is read under its new name.
        ([("a", 1, "dbo/a"), ("a", 2, "dbo/a")], None),  # Dropped; another one was created in its place.
        ([("a", 2, "dbo/a"), ("a", 1, "dbo/a")], "a"),
        ([("a", 1, "dbo/a"), ("a", 2, "dbo/a"), ("a", 1, "dbo/a")], "a"),
        ([("a", 1, None), ("a", 2, "dbo/a")], "a"),
        ([("b", 2, "dbo/b")], None),
    ],
)
def test_table_is_found_by_its_identity_until_another_one_has_its_folder(
    tmp_path: Path, rows: list[tuple[str, int, str | None]], wanted: str | None
):
    """B15: after a restore, the source gives the identity of a table that the backup does not have to the next one."""
    found = Offsets()
    for number, (name, object_id, folder) in enumerate(rows):
        entry = at(f"{number:02}", object_id=object_id, folder=folder, reason=name)
        found = append_offsets(layout(tmp_path), offset_row(f"{number:02}", **{name: entry}), seen=found)
    entry = found.entry_of("now", object_id=1)
    assert (entry.reason if entry else None) == wanted


@pytest.mark.parametrize(
    ("epoch", "status", "met"), [(1, "streaming", {1}), (0, "streaming", set()), (1, "lost", set())]
)
def test_an_identity_tells_of_another_name_only_if_it_was_read_in_this_epoch(
    tmp_path: Path, epoch: int, status: Status, met: set[int]
):
    """B15: behind a restore, another table may have it, while its former owner is no longer captured."""
    entry = Entry(status, to="01", object_id=1, folder="dbo/a", epoch=epoch)
    found = append_offsets(layout(tmp_path), offset_row("01", a=entry), seen=Offsets())
    found = append_offsets(layout(tmp_path), replace(offset_row("02"), epoch=1), seen=found)
    assert found.identities == met
    assert (found.entry_of("b", object_id=1) is not None) == bool(met)


CLOSED = SnapshotEnded(table="a", snapshot="p", number=1, signal=None, mark=LogMark(lsn(50), 3, 1), low=lsn(10).text)
"""The snapshot of `a` has ended; the log's end is 50."""


def with_rows(*rows: OffsetRow) -> Offsets:
    """Offsets with these rows, in order."""
    found = Offsets()
    for number, row in enumerate(rows, start=1):
        found = found.with_row(row, number)
    return found


def cut(to: int, **tables: Entry) -> OffsetRow:
    return replace(offset_row(lsn(to).text, **tables), complete=True)


def ended(entry: Entry) -> OffsetRow:
    return OffsetRow("snapshot", AT, {"a": entry}, partition="p", facts=CLOSED)


A, B = at(lsn(10).text, object_id=1), at(lsn(10).text, object_id=2)


@pytest.mark.parametrize("identity", [1, None])
def test_table_stays_closed_after_a_complete_cut_without_it(identity: int | None):
    """It had failed, or one look did not see it: the cut says nothing of its stream."""
    read = replace(A, object_id=identity)
    without = with_rows(ended(read), cut(20, b=B))
    assert without.closed_tables == {"a": CLOSED.mark}
    assert without.closed_until("a", read) == CLOSED.mark

    given_up = without.with_row(cut(30, b=B, a=replace(read, status="failed")), 3)
    assert given_up.closed_tables == {"a": CLOSED.mark}

    opened = given_up.with_row(cut(60, a=read, b=B), 4)
    assert opened.closed_tables == {}
    assert opened.closed_until("a", read) is None


def test_row_that_is_no_cut_opens_no_table():
    assert with_rows(ended(A), offset_row(lsn(60).text, a=A)).closed_tables == {"a": CLOSED.mark}


def test_closed_table_is_told_by_its_identity():
    """It is renamed and another table takes its name, which is in the next cuts."""
    renamed = with_rows(ended(A), cut(20, b=B, a=replace(B, object_id=3)))
    assert renamed.closed_until("z", A) == CLOSED.mark
    assert renamed.closed_until("a", replace(B, object_id=3)) is None

    known = renamed.with_row(offset_row(lsn(30).text, z=A), 3)
    assert known.closed_tables == {"z": CLOSED.mark}
    assert known.with_row(cut(60, z=A), 4).closed_tables == {}


def test_closed_table_that_was_dropped_or_excluded_is_closed_no_more():
    """Nothing would ever open it, and the quiet look would wait for it."""
    dropped = with_rows(ended(A), cut(20, a=replace(B, object_id=3)))
    assert dropped.closed_tables == {}
    assert dropped.closed_until("a", A) == CLOSED.mark
    assert with_rows(ended(A), offset_row("20", a=replace(A, status="excluded"))).closed_tables == {}


def test_first_cut_is_the_first_that_has_the_position_and_the_batch(tmp_path: Path):
    found = Offsets()
    for to, batch, complete in (("03", 1, True), ("05", 2, False), ("05", 2, True), ("07", 2, True), ("07", 4, True)):
        row = replace(offset_row(to, a=at(to, batch=batch)), complete=complete)
        found = append_offsets(layout(tmp_path), row, seen=found)
    wanted = [("04", None), ("05", {"a": 1}), ("06", {"a": 2}), ("03", {"a": 2}), ("03", {"a": 3}), ("03", {"b": 1})]
    cuts = [found.first_cut(Reached(0, to), batches) for to, batches in wanted]
    assert [cut and cut.number for cut in cuts] == [3, 3, 4, 3, 5, None]
    assert found.first_cut(Reached(0, "08")) is None
    assert found.first_cut(Reached(1, "03")) is None


def test_batch_of_a_renamed_table_is_that_of_its_folder(tmp_path: Path):
    found = Offsets()
    for name, folder, batch in (("b", "dbo/b", 9), ("a", "dbo/a", 3), ("b", "dbo/a", 10)):
        found = append_offsets(
            layout(tmp_path), offset_row("05", **{name: at("05", batch=batch, folder=folder)}), seen=found
        )
    assert [found.batch_at("b", number) for number in (1, 2, 3)] == [None, 3, 10]
    assert found.batch_at("c", 3) is None


def test_a_name_that_a_table_has_left_counts_no_more():
    """Renamed and back: the newest entry is the table's, whatever its name was then (B15)."""

    def row(number: int, **named: Entry) -> OffsetRow:
        return OffsetRow("range", AT, named, f"{number:02}", complete=True)

    first, later = at("01", object_id=1, folder="a"), at("02", object_id=1, folder="a")
    found = Offsets().with_row(row(1, a=replace(first, status="lost"), c=at("01", object_id=2)), 1)
    found = found.with_row(row(2, b=later), 2)
    assert (set(found.entries), set(found.present)) == ({"a", "b", "c"}, {"b", "c"})
    assert found.entry_of("b", 1) == found.entry_of("a", 1) == later
    assert found.names_of("b", 1) == {"a", "b"}
    found = found.with_row(row(3, a=at("03", object_id=1, folder="a")), 3)
    assert set(found.present) == {"a", "c"}
    found = found.with_row(row(4, b=at("04", object_id=3, epoch=1)), 4)
    assert set(found.present) == {"a", "b", "c"}
    assert found.names_of("a", 1) == {"a"}
