"""The ledger of lost changes: each gap is recorded once and stays open until acknowledged (rule A9)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.gaps import Gap, acknowledge_gaps, bound_gaps, load_gaps, open_gaps, record_gaps
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.small_tables import small_table

GAP = Gap("shop.dbo.orders", 0, "01", "05", "cleaned up")


def layout(folder: Path) -> Layout:
    return Layout(str(folder), "server1", "shop")


def test_a_lake_without_losses_has_no_ledger(tmp_path: Path):
    assert load_gaps(layout(tmp_path)) == []
    assert acknowledge_gaps(layout(tmp_path), None, by="x", run_id="r") == []
    assert not (tmp_path / "server1").exists()


def test_a_gap_that_is_found_again_is_not_recorded_twice(tmp_path: Path):
    for reason in ("cleaned up", "cleaned up, found by the next look"):
        record_gaps(layout(tmp_path), [replace(GAP, reason=reason)], run_id="r")
    (gap,) = load_gaps(layout(tmp_path))
    assert replace(gap, at=None) == GAP


def test_a_gap_of_another_table_or_epoch_is_a_separate_one(tmp_path: Path):
    others = [replace(GAP, from_="09"), replace(GAP, epoch=1), replace(GAP, table="shop.dbo.people")]
    record_gaps(layout(tmp_path), [GAP, *others], run_id="r")
    assert len(load_gaps(layout(tmp_path))) == 4
    assert {name: len(found) for name, found in open_gaps(layout(tmp_path)).items()} == {
        "shop.dbo.orders": 3,
        "shop.dbo.people": 1,
    }


def test_a_ledger_that_was_restored_says_so_and_is_whole_after_the_restore_that_it_advises(tmp_path: Path):
    record_gaps(layout(tmp_path), [GAP], run_id="r")
    record_gaps(layout(tmp_path), [replace(GAP, table="shop.dbo.people")], run_id="r")
    ledger = DeltaTable(layout(tmp_path).own("gaps"))
    newest = ledger.version()
    ledger.restore(newest - 1)
    for act in (
        lambda: load_gaps(layout(tmp_path)),
        lambda: record_gaps(layout(tmp_path), [replace(GAP, epoch=1)], run_id="r"),
        lambda: acknowledge_gaps(layout(tmp_path), None, by="Ann", run_id="r"),
    ):
        with pytest.raises(StorageError, match=r"lacks the rows of 1 of its 2 commits.*RESTORE"):
            act()

    ledger.restore(newest)
    assert set(open_gaps(layout(tmp_path))) == {"shop.dbo.orders", "shop.dbo.people"}


def test_a_ledger_with_a_commit_of_no_gaps_is_whole(tmp_path: Path):
    record_gaps(layout(tmp_path), [GAP], run_id="r")
    ledger = small_table(layout(tmp_path), "gaps")
    ledger.append(ledger.state(), [], {"kind": "gaps", "run_id": "r"})
    record_gaps(layout(tmp_path), [replace(GAP, epoch=1)], run_id="r")
    assert len(load_gaps(layout(tmp_path))) == 2


def test_acknowledging_records_who_did_it_and_leaves_other_tables_open(tmp_path: Path):
    record_gaps(layout(tmp_path), [GAP, replace(GAP, table="shop.dbo.people")], run_id="r")
    (done,) = acknowledge_gaps(layout(tmp_path), [GAP], by="Ann", run_id="r")
    assert (done.status, done.by) == ("acknowledged", "Ann")
    assert list(open_gaps(layout(tmp_path))) == ["shop.dbo.people"]
    record_gaps(layout(tmp_path), [GAP], run_id="r")
    assert list(open_gaps(layout(tmp_path))) == ["shop.dbo.people"]


def test_a_gap_ends_where_its_table_streams_again(tmp_path: Path):
    lost = replace(GAP, to=None)
    record_gaps(layout(tmp_path), [lost, replace(lost, epoch=1), replace(lost, table="shop.dbo.people")], run_id="r")
    assert len(bound_gaps(layout(tmp_path), [lost.table], epoch=1, streamed="06", to="07", run_id="r")) == 1
    assert bound_gaps(layout(tmp_path), [lost.table], epoch=1, streamed="07", to="09", run_id="r") == []
    assert [(gap.table, gap.epoch, gap.to) for gap in load_gaps(layout(tmp_path))] == [
        ("shop.dbo.orders", 0, None),
        ("shop.dbo.orders", 1, "07"),
        ("shop.dbo.people", 0, None),
    ]


def test_a_gap_ends_further_on_if_its_table_has_not_streamed_from_its_end(tmp_path: Path):
    record_gaps(layout(tmp_path), [replace(GAP, to=None)], run_id="r")
    bound_gaps(layout(tmp_path), [GAP.table], epoch=0, streamed="", to="07", run_id="r")
    acknowledge_gaps(layout(tmp_path), None, by="Ann", run_id="r")
    assert bound_gaps(layout(tmp_path), [GAP.table], epoch=0, streamed="", to="07", run_id="r") == []
    bound_gaps(layout(tmp_path), [GAP.table], epoch=0, streamed="06", to="09", run_id="r")
    assert [(gap.status, gap.by, gap.to) for gap in load_gaps(layout(tmp_path))] == [("open", None, "09")]
    assert bound_gaps(layout(tmp_path), [GAP.table], epoch=0, streamed="09", to="11", run_id="r") == []


def test_a_second_loss_after_the_same_position_is_open_again(tmp_path: Path):
    """The table had nothing to read between its snapshot and the loss."""
    lost = replace(GAP, to=None)
    record_gaps(layout(tmp_path), [lost], run_id="r")
    bound_gaps(layout(tmp_path), [lost.table], epoch=0, streamed="", to=lost.from_, run_id="r")
    acknowledge_gaps(layout(tmp_path), None, by="Ann", run_id="r")
    assert record_gaps(layout(tmp_path), [replace(lost, to=lost.from_)], run_id="r") == []
    assert len(record_gaps(layout(tmp_path), [lost], run_id="r")) == 1
    assert [(gap.status, gap.by, gap.to) for gap in load_gaps(layout(tmp_path))] == [("open", None, None)]
    assert record_gaps(layout(tmp_path), [lost], run_id="r") == []


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["1", "2"]), st.booleans()), max_size=8))
def test_the_ledger_behaves_like_a_set_of_open_gaps(tmp_path_factory, steps: list[tuple[str, str, bool]]):
    place = layout(tmp_path_factory.mktemp("lake"))
    known: set[tuple[str, str]] = set()
    open_: set[tuple[str, str]] = set()
    for table, from_, acknowledged in steps:
        if acknowledged:
            acknowledge_gaps(place, open_gaps(place).get(table, []), by="x", run_id="r")
            open_ = {one for one in open_ if one[0] != table}
        else:
            record_gaps(place, [Gap(table, 0, from_, None, "why")], run_id="r")
            open_ |= {(table, from_)} - known
            known.add((table, from_))
    found = {(gap.table, gap.from_) for gaps in open_gaps(place).values() for gap in gaps}
    assert found == open_
