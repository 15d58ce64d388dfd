"""A repair that breaks off behind a commit: its rows come into the current table, or are said to be missing there."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.check import repair
from mssql_cdc.check.fence import Fence
from mssql_cdc.errors import SourceUnavailableError
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.storm.lake import happening_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WRONG = 120


@pytest.fixture
def spoiled(orders: Place, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A quiet table with 120 wrong rows in the lake, which a repair commits in three groups."""
    monkeypatch.setattr(repair, "STAGED_CHUNKS", 1)
    orders.sql(f"INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, {WRONG})")
    orders.settle()
    assert orders.catch_up() == 0
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong' WHERE id > 10").collect()
    return orders


def wrong(place: Place) -> int:
    """How many rows of the current table are wrong."""
    return len(place.query("SELECT id FROM t WHERE name = 'wrong'", "orders"))


def repaired(place: Place) -> int:
    """How many rows a repair has committed."""
    return len(place.query("SELECT _key FROM t WHERE _snapshot LIKE 'repair:%'", "orders", "changes"))


def checked(place: Place, capsys: pytest.CaptureFixture[str], *options: str, code: int) -> dict[str, Any]:
    """What `check --json` prints of the orders, and that it ends with this code."""
    capsys.readouterr()
    found = place.command("check", "--json", *options)
    shown = capsys.readouterr()
    assert found == code, shown.out + shown.err
    (one,) = (one for one in json.loads(shown.out)["tables"] if one["table"].endswith(".orders"))
    return one


def fail(*_arguments: Any, **_more: Any) -> None:
    raise SourceUnavailableError("rows stayed locked")


BREAKS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "the second group is locked": lambda: happening_at("mssql_cdc.check.repair._stage", 2, fail),
    "no complete cut comes in time": lambda: patch.object(Fence, "follow", fail),
    "the current table cannot be merged": lambda: patch.object(repair, "merge_table", fail),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name != "the current table cannot be merged")) for name in BREAKS],
)
def test_a_check_after_a_broken_repair_lists_the_rows_that_are_wrong(
    spoiled: Place, capsys: pytest.CaptureFixture[str], name: str
):
    """It took the rows of the change log for those of the current table, and called it equal."""
    with BREAKS[name]():
        notes = checked(spoiled, capsys, "--repair", code=5)["notes"]
    assert any(note.startswith("not repaired: rows stayed locked") for note in notes)
    left = WRONG - repaired(spoiled)
    assert left < WRONG
    assert len(checked(spoiled, capsys, code=5 if left else 0)["differences"]) == left
    assert wrong(spoiled) == left
    assert checked(spoiled, capsys, "--repair", code=0)["repaired_rows"] == left
    assert wrong(spoiled) == 0


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name != "the second group is locked")) for name in BREAKS]
)
def test_a_run_merges_what_a_broken_repair_has_committed(spoiled: Place, capsys: pytest.CaptureFixture[str], name: str):
    """Nothing changes at the source, so that no range and no cut would bring the rows."""
    with BREAKS[name]():
        checked(spoiled, capsys, "--repair", code=5)
    assert spoiled.catch_up() == 0
    assert wrong(spoiled) == WRONG - repaired(spoiled) < WRONG
