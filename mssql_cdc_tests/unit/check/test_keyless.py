"""A table without a key adds up to its last snapshot and what the stream brought behind it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.check.compared import Compared
from mssql_cdc.check.keyless import lacking_columns, log_rows
from mssql_cdc.events import to_change_log
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.log import commit
from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lsn import cut_text, snapshot_position_text
from mssql_cdc_tests.lake_kit import Change, change_log, column, home_in, lsn, neutral, orders

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


LOBS = orders(
    column("name", "nvarchar", length=50), column("body", "ntext"), column("page", "nvarchar", length=-1), keys=()
)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (Change(2, "d", before={"name": "a"}, unavailable=["body"]), {"body"}),
        (
            Change(2, "u", before={"name": "a"}, after={"name": "b", "body": "x"}, unavailable=["before.body"]),
            {"body"},
        ),
        (Change(2, "d", before={"body": "x"}, unavailable=["name"]), set()),
        (Change(2, "c", after={"name": "b", "body": "x"}), set()),
        (Change(3, "d", before={"name": "a"}, unavailable=["body"]), set()),
        (Change(0, "d", before={"name": "a"}, unavailable=["body"]), set()),
    ],
    ids=["deleted", "updated", "what CDC delivers", "created", "behind the bound", "before the start"],
)
def test_a_column_that_images_lack_is_named_and_not_added_up(tmp_path: Path, change: Change, names: set[str]):
    """A deleted row stayed for ever: its before image has no ntext, so it was another row."""
    home = home_in(tmp_path)
    state = change_log(home, LOBS)
    for snapshot, changes in (("1", [Change(1, "r", after={"name": "a", "body": "x"})]), (None, [change])):
        batch = to_change_log(
            neutral(LOBS, *changes), table_schema=LOBS, batch_number=state.batch + 1, snapshot=snapshot
        )
        state = commit(state, write_files([batch], state.target), {})
    compared = Compared(LOBS, LOBS, keyed=False)
    start, bound = snapshot_position_text(0, lsn(1), number=1), cut_text(0, lsn(2))
    assert lacking_columns(home.changes, compared, LOCAL, start=start, bound=bound) == names
    left = compared.without(names)
    assert set(left.names) == set(compared.names) - names
    assert left.left_out == tuple(f"{name} (CDC does not deliver it with every change)" for name in names)


def image(name: str) -> dict[str, str]:
    return {"name": name}


FIRST = ("1", [Change(1, "r", after=image("a"), sequence=1), Change(1, "r", after=image("a"), sequence=2)])
STREAM = (None, [Change(2, "c", after=image("b")), Change(3, "u", before=image("a"), after=image("c"))])


SECOND = snapshot_position_text(0, lsn(5), number=2)
"""Where the rows of the second snapshot begin."""


def test_after_minus_before_adds_up_to_the_rows(tmp_path: Path):
    assert rows(tmp_path, FIRST, STREAM) == {"a": 1, "b": 1, "c": 1}


def test_rows_up_to_a_position(tmp_path: Path):
    assert rows(tmp_path, FIRST, STREAM, bound=cut_text(0, lsn(2))) == {"a": 2, "b": 1}


def test_a_second_snapshot_takes_the_place_of_everything_before_it(tmp_path: Path):
    """Review, bug 15: both snapshots, and the stream between P and E, were added up."""
    second = ("2", [Change(5, "r", after=image(name), sequence=n, snapshot=2) for n, name in enumerate("abc")])
    late = (None, [Change(4, "c", after=image("c")), Change(6, "d", before=image("a"))])
    first = (None, STREAM[1][:1])
    assert rows(tmp_path, FIRST, first, second, late, start=SECOND) == {"b": 1, "c": 1}


def test_a_second_snapshot_without_rows_takes_the_place_of_everything_before_it(tmp_path: Path):
    """Review: the start was searched for among the snapshot's rows, so the rows of the first one counted."""
    later = (None, [Change(6, "c", after=image("d"))])
    assert rows(tmp_path, FIRST, STREAM, later, start=SECOND) == {"d": 1}
