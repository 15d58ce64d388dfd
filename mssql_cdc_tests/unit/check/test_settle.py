"""The lake's row of a key at a position: the pinned row and the changes up to there."""

from __future__ import annotations

import pytest

from mssql_cdc.check.settle import Change, LakeRow, at

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
