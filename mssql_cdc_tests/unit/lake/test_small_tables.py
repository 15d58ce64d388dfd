"""Appends to small tables to which other runs write concurrently."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.errors import FencedError
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.small_tables import SmallTable, retry_overtaken, small_table


@pytest.fixture
def table(tmp_path: Path) -> SmallTable:
    return small_table(Layout(str(tmp_path), "server1", "shop"), "notifications")


def add(table: SmallTable, name: str, *, rivals: int = 0) -> None:
    """Append a row named `name` while this many rivals, one per attempt, commit between the read and the write."""
    left = iter(range(rivals))

    @retry_overtaken
    def append() -> None:
        state = table.state()
        if next(left, None) is not None:
            add(table, "rival")
        table.append(state, [{"id": name}], {"kind": "notifications"})

    append()


def test_an_overtaken_append_is_retried_from_the_new_state(table: SmallTable) -> None:
    add(table, "ours", rivals=2)
    assert [(row["_batch"], row["id"]) for row in table.rows()] == [(1, "rival"), (2, "rival"), (3, "ours")]


def test_an_append_that_is_always_overtaken_is_fenced_after_twenty_attempts(table: SmallTable) -> None:
    with pytest.raises(FencedError, match="Another run has changed"):
        add(table, "ours", rivals=100)
    assert [row["id"] for row in table.rows()] == ["rival"] * 20


def test_a_fence_of_another_kind_is_not_retried() -> None:
    calls: list[int] = []

    @retry_overtaken
    def append() -> None:
        calls.append(1)
        raise FencedError("another run holds the table")

    with pytest.raises(FencedError, match="holds"):
        append()
    assert len(calls) == 1
