"""Complete cuts as records look at them: in order, and only those that are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.recorded import Recorded
from mssql_cdc.records.cuts import Cuts, first_after, last_before, position_of
from mssql_cdc_tests.unit.records.kit import Lake, Looked, table


def test_cuts_are_those_of_offsets_in_order(tmp_path: Path):
    lake = Lake(tmp_path)
    lake.add(table("a"))
    for at in (1, 2, 5):
        lake.cut(at, minutes=at)
        lake.cut(at, complete=False)
    recorded = load_offsets(lake.layout).recorded
    found = Cuts(recorded)
    rows = load_offsets(lake.layout).history.rows
    assert [(cut.number, cut.at, cut.to) for cut in found] == [(r.number, r.at, r.to) for r in rows if r.complete]
    assert (len(found), found[-1], found[1:]) == (3, found[2], [found[1], found[2]])
    with pytest.raises(IndexError):
        found[3]
    assert list(Cuts(Recorded())) == []


@pytest.mark.parametrize("place", [0, 1, 2, 999_999])
def test_the_first_cut_that_an_output_lacks_is_found_without_looking_at_all(place: int):
    """The lag of an output went through all cuts that were ever made, at every cut that was written."""
    cuts = Looked(1_000_000)
    wanted = cuts[place]
    before = f"{position_of(cuts[place - 1])}+" if place else ""
    assert first_after(cuts, before) == wanted
    assert cuts.looks < 100
    assert first_after(cuts, f"{position_of(cuts[-1])}+") is None


@pytest.mark.parametrize("place", [0, 1, 2, 999_999])
def test_the_newest_cut_before_a_row_is_found_without_looking_at_all(place: int):
    """Of an open snapshot without rows, every look decoded all cuts that were ever made."""
    cuts = Looked(1_000_000)
    assert last_before(cuts, cuts[place].number) == (cuts[place - 1] if place else None)
    assert last_before(cuts, cuts[place].number + 1) == cuts[place]
    assert cuts.looks < 100
