"""Columns that are altered while they are read: no value is cut, whenever the ALTER comes (E26)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mssql_cdc.capture.snapshot import chunk_groups, take
from mssql_cdc.plan.decisions import Range
from mssql_cdc.run import follower
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LONG = "thirty characters, every one of"
WIDEN = (
    "ALTER TABLE dbo.orders ALTER COLUMN name nvarchar(40) NULL",
    "ALTER TABLE dbo.orders ALTER COLUMN at datetime2(7) NULL",
    f"UPDATE dbo.orders SET name = N'{LONG}', at = '2026-01-01T00:00:00.1234567' WHERE id = 3",
)


def once(then: Callable[[], object]) -> Callable[[], None]:
    left = [then]

    def run() -> None:
        if left:
            left.pop()()

    return run


def assert_nothing_is_cut(place: Place) -> None:
    assert place.catch_up() == 0
    assert place.check() == 0
    assert place.query("SELECT name FROM t WHERE id = 3", "orders") == [{"name": LONG}]
    for row in place.query("SELECT after['name'] AS name FROM t WHERE after['id'] = 3", "orders", "changes"):
        assert row["name"] in {LONG, "three"}


@pytest.fixture
def narrow(place: Place) -> Place:
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(10) NULL, at datetime2(3) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one', NULL), (2, N'two', NULL), (3, N'three', NULL)")
    place.settle()
    return place


def test_a_column_that_is_widened_between_two_groups_of_chunks(narrow: Place, monkeypatch: pytest.MonkeyPatch):
    """Review, bug 3: the rows of later groups were cut to the old length, for ever."""
    widen = once(lambda: narrow.sql(*WIDEN))
    monkeypatch.setattr(take, "CHUNK_ROWS", 1)
    monkeypatch.setattr(take, "GROUP_CHUNKS", 1)
    run_here = chunk_groups.run_here

    def alter_behind_the_first_group(*given: Any, **more: Any) -> Any:
        done = run_here(*given, **more)
        widen()
        return done

    monkeypatch.setattr(chunk_groups, "run_here", alter_behind_the_first_group)
    assert_nothing_is_cut(narrow)


def test_a_column_that_is_widened_between_the_look_and_the_range(narrow: Place, monkeypatch: pytest.MonkeyPatch):
    """Review, bug 4: the range was read with the lengths of the look before it."""
    assert narrow.catch_up() == 0
    widen = once(lambda: [narrow.sql(*WIDEN), narrow.settle()])
    execute = follower.execute

    def alter_before_a_range(database: Any, seen: Any, decision: Any, **more: Any) -> Any:
        if isinstance(decision, Range) and decision.slices:
            widen()
        return execute(database, seen, decision, **more)

    monkeypatch.setattr(follower, "execute", alter_before_a_range)
    narrow.sql("UPDATE dbo.orders SET name = N'drei' WHERE id = 2")
    narrow.settle()
    assert_nothing_is_cut(narrow)
