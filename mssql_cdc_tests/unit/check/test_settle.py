"""The lake's row of a key at a position: the pinned row and the changes up to there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mssql_cdc.check.compared import Compared
from mssql_cdc.check.settle import Change, LakeRow, at, changes_of
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.schema import change_log_schema
from mssql_cdc_tests import lake_kit

NAMES = ("id", "name", "note")
NONE: frozenset[str] = frozenset()
NOTE = frozenset({"note"})
BASE = LakeRow("2", ("1", "a", "long"))


def change(pos: str, op: str, *texts: str | None, unknown: frozenset[str] = NONE) -> Change:
    return Change(pos, op, ("1",), texts or None, unknown)


@pytest.mark.parametrize(
    ("changes", "bound", "texts"),
    [
        ([], "9", ("1", "a", "long")),
        ([change("3", "u", "1", "b", "long")], "9", ("1", "b", "long")),
        ([change("3", "u", "1", "b", "long")], "2", ("1", "a", "long")),
        ([change("1", "r", "1", "old", "long")], "9", ("1", "a", "long")),
        ([change("3", "d"), change("4", "c", "1", "new", None)], "9", ("1", "new", None)),
        ([change("3", "d"), change("4", "c", "1", "new", None)], "3", None),
        ([change("3", "u", "1", "b", None, unknown=NOTE)], "9", ("1", "b", "long")),
        ([change("3", "d"), change("4", "c", "1", "b", None, unknown=NOTE)], "9", ("1", "b", None)),
    ],
)
def test_changes_up_to_the_position_count_and_no_others(changes, bound, texts):
    row = at(BASE, changes, bound, NAMES)
    assert row is not None
    assert row.texts == texts


def test_a_cell_stays_unknown_until_a_change_delivers_it():
    base = LakeRow("2", ("1", "a", None), NOTE)
    still = at(base, [change("3", "u", "1", "b", None, unknown=NOTE)], "9", NAMES)
    known = at(base, [change("3", "u", "1", "b", "x")], "9", NAMES)
    assert still is not None
    assert known is not None
    assert (still.unknown, known.unknown) == (NOTE, NONE)


def test_a_key_that_the_lake_never_had_has_no_row():
    assert at(None, [], "9", NAMES) is None


def test_a_value_in_a_former_delta_column_is_unknown_in_the_present_one(tmp_path: Path):
    """A change that was read before the type changed, behind the rows that are compared."""
    first = lake_kit.orders()
    columns = (*first.columns[:1], lake_kit.column("name", "int"), *first.columns[2:])
    second = replace(with_delta_columns(lake_kit.orders(*columns), [first]), version=2)
    home = lake_kit.home_in(tmp_path)
    state = lake_kit.change_log(home, first)
    state = lake_kit.append(state, first, lake_kit.Change(3, "c", after={"id": 1, "name": "a", "note": "n"}))
    state = evolve(state, change_log_schema(second))
    lake_kit.append(state, second, lake_kit.Change(4, "u", after={"id": 1, "name": 7, "note": "n"}))
    found = changes_of(home.changes, Compared(second, second), {("1",)}, after=0, storage=LOCAL)[("1",)]
    assert [one.unknown for one in found] == [{"name"}, NONE]
    assert [one.texts[1] for one in found if one.texts] == [None, "7"]
