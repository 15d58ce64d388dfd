"""A repair beside runs that commit to the same table: it is overtaken, and goes on from where they have come to."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.check import check_tables, repair
from mssql_cdc.errors import OvertakenError
from mssql_cdc.lake.pinned import PinnedTable
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.storm.lake import happening_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def gone(place: Place, first: int, last: int) -> None:
    """Rows are deleted, and capture loses that."""
    place.sql(f"DELETE FROM dbo.orders WHERE id BETWEEN {first} AND {last}")
    place.settle()
    place.sql("DELETE FROM cdc.dbo_orders_CT WHERE [__$operation] = 1")


@pytest.fixture
def extra(orders: Place) -> Place:
    """A table whose current table has 130 rows, 11 to 140, that the source does not have."""
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 130)")
    orders.settle()
    assert orders.catch_up() == 0
    gone(orders, 11, 140)
    return orders


def repaired(place: Place, capsys: pytest.CaptureFixture[str], *, code: int = 0) -> dict[str, Any]:
    """The result of a repair that ends with this code."""
    capsys.readouterr()
    found = place.command("check", "--repair", "--json")
    shown = capsys.readouterr()
    assert found == code, shown.out + shown.err
    (one,) = json.loads(shown.out)["tables"]
    return one


def test_a_repair_ends_although_another_run_commits_before_it(extra: Place, capsys: pytest.CaptureFixture[str]):
    """Any range of the table made it fail, each time: "not repaired: Another run has changed ..."."""

    def meanwhile() -> None:
        extra.sql("UPDATE dbo.orders SET name = N'newer' WHERE id = 1")
        extra.settle()
        assert extra.catch_up() == 0

    with happening_at("mssql_cdc.check.repair.commit", 1, meanwhile):
        found = repaired(extra, capsys)
    assert (found["result"], found["lake_rows"], found["repaired_rows"]) == ("equal", 2, 130)
    swept = extra.query("SELECT _pos AS position FROM t WHERE _snapshot LIKE 'sweep:%'", "orders", "changes")
    assert (len(swept), len({row["position"] for row in swept})) == (130, 130)


def test_a_repair_that_is_always_overtaken_says_so(extra: Place, capsys: pytest.CaptureFixture[str]):
    tried: list[bool] = []

    def overtaken(*_: Any, **__: Any) -> None:
        tried.append(True)
        raise OvertakenError("Another run has changed the change log")

    with patch.object(repair, "commit", overtaken):
        found = repaired(extra, capsys, code=5)
    assert len(tried) == repair.ATTEMPTS
    assert "not repaired: Another run has changed the change log" in found["notes"]


def test_the_current_table_is_read_once_for_all_rows_that_a_repair_deletes(
    extra: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """It was read for each fifty, between the state of the change log and the commit from it."""
    monkeypatch.setattr(repair, "STAGED_CHUNKS", 1)
    read, told, reads = PinnedTable.read, repair.repair_table, list[str]()

    def counted(table: PinnedTable) -> Any:
        reads.append(table.uri)
        return read(table)

    def counting(*arguments: Any) -> int:
        with patch.object(PinnedTable, "read", counted):
            return told(*arguments)

    monkeypatch.setattr(check_tables, "repair_table", counting)
    assert repaired(extra, capsys)["result"] == "equal"
    assert len(reads) == 1


def test_a_row_that_has_changed_since_the_current_table_was_read_is_deleted_by_the_next_repair(
    extra: Place, capsys: pytest.CaptureFixture[str]
):
    """Its image there is not the newest one of the change log, which a delete has to go on from."""
    lost = ["change log: inserted although the row existed (1 rows, _key 2:11)"]

    def meanwhile() -> None:
        extra.sql("INSERT INTO dbo.orders VALUES (11, N'newer')")
        extra.settle()
        assert extra.catch_up() == 0
        gone(extra, 11, 11)

    with happening_at("mssql_cdc.check.repair.stored_rows", 1, meanwhile, after=True):
        found = repaired(extra, capsys, code=5)
    assert (found["differences"], found["change_log"]) == (["key 11: not in the source"], lost)
    found = repaired(extra, capsys, code=5)
    assert (found["differences"], found["change_log"], found["repaired_rows"]) == ([], lost, 1)
