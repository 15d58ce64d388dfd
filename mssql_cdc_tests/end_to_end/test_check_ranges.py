"""What a check reads again of a large table: rows of the key ranges that differ, in bounded statements."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mssql_cdc.check import keyed_table
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.load import writing
from mssql_cdc_tests.end_to_end.test_check import result
from mssql_cdc_tests.end_to_end.test_reading_settings import statements

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.sandbox]

SEARCH = "AS varbinary(max)), CAST(SUBSTRING(HASHBYTES('SHA2_256'"
READS = re.compile(r"FROM \[dbo\]\.\[orders\] (WHERE (?P<where>.*))?")
KEYS = {
    "int": ("id int NOT NULL PRIMARY KEY", "n", "id"),
    "composite": ("a int NOT NULL, b varchar(8) NOT NULL, PRIMARY KEY (a, b)", "n / 7, CONCAT('b', n % 7)", "a"),
    "character": ("word nvarchar(20) NOT NULL PRIMARY KEY", "CONCAT(NCHAR(65 + n % 26 + 32 * (n % 2)), n)", "word"),
    "uniqueidentifier": (
        "id uniqueidentifier NOT NULL PRIMARY KEY",
        "CONCAT(RIGHT(CONCAT('0000000', n), 8), '-0000-0000-0000-', RIGHT(CONCAT('00000000000', n * 7919 % 997), 12))",
        "id",
    ),
    "hierarchyid": ("node hierarchyid NOT NULL PRIMARY KEY", "CONCAT('/', n / 20, '/', n % 20, '/')", "node"),
}
"""Columns, values of a row by its number, the first column of the key."""


def fill(place: Place, columns: str, values: str) -> None:
    place.create("orders", f"{columns}, note nvarchar(50) NULL")
    place.sql(f"INSERT INTO dbo.orders SELECT {values}, CONCAT('note ', n) FROM (SELECT value AS n "
              "FROM GENERATE_SERIES(1, 200)) AS numbers")  # fmt: skip
    place.settle()
    assert place.catch_up() == 0


@pytest.mark.parametrize(
    ("columns", "values", "first"),
    [pytest.param(*KEYS[kind], id=kind, marks=[pytest.mark.long] * (kind != "composite")) for kind in KEYS],
)
def test_only_the_range_that_differs_is_read_again(
    place: Place,
    columns: str,
    values: str,
    first: str,
    capsys: pytest.CaptureFixture[str],
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
):
    fill(place, columns, values)
    monkeypatch.setattr(keyed_table, "RANGE_ROWS", 40)
    spark.sql(f"UPDATE delta.`{place.uri('orders')}` SET note = 'wrong' WHERE note = 'note 77'").collect()
    place.sql("EXEC sandbox.statement_log")
    found = result(place, capsys, "orders", code=5)
    assert [text.split(": ")[1] for text in found["differences"]] == ["differs in note"]
    sums = {READS.search(one)["where"] for one in statements(place, "COUNT_BIG(*), SUM")}  # type: ignore[index]
    again = statements(place, SEARCH)
    pieces = {re.sub(r" AND SUBSTRING.*", "", READS.search(one)["where"]) for one in again}  # type: ignore[index]
    assert len(sums) > 2
    assert all(f"[{first}] " in where for where in pieces)
    assert 1 <= len(again) == len(pieces) < 4  # One range; that of a composite key has up to three pieces.
    assert found["fetched_rows"] < 40


def test_a_moving_table_is_read_in_ranges_and_the_wrong_cell_is_found(
    orders: Place, capsys: pytest.CaptureFixture[str], spark: Any, monkeypatch: pytest.MonkeyPatch
):
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 200)")
    orders.settle()
    assert orders.catch_up() == 0
    monkeypatch.setattr(keyed_table, "RANGE_ROWS", 40)
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong' WHERE id = 77").collect()
    orders.sql("EXEC sandbox.statement_log")

    def changes(number: int) -> list[str]:
        return [
            f"UPDATE dbo.orders SET name = N'{number}' WHERE id % 10 = {number % 7}",
            f"INSERT INTO dbo.orders VALUES ({1000 + number}, N'new')",
            f"DELETE FROM dbo.orders WHERE id = {997 + number}",
        ]

    with writing(orders, changes, pause=0.1, at_least=3):  # The log of statements is not without end.
        found = result(orders, capsys, "orders", code=5)
    assert found["differences"] == ["key 77: differs in name"]
    assert statements(orders, SEARCH)
    assert not [text for text in statements(orders, SEARCH) if "[id] " not in READS.search(text)["where"]]  # type: ignore[index]


def test_rows_that_only_seem_to_differ_do_not_end_the_comparison(
    orders: Place, capsys: pytest.CaptureFixture[str], spark: Any, monkeypatch: pytest.MonkeyPatch
):
    """Every row but one was changed since the lake was read; that one is wrong in the lake."""
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 200)")
    orders.settle()
    assert orders.catch_up() == 0
    for name, value in {"RANGE_ROWS": 40, "HELD_ROWS": 10, "MOST_DIFFERENCES": 20}.items():
        monkeypatch.setattr(keyed_table, name, value)
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong' WHERE id = 207").collect()
    orders.sql("UPDATE dbo.orders SET name = N'new' WHERE id <> 207")
    found = result(orders, capsys, "orders", code=5)
    assert found["differences"] == ["key 207: differs in name"]
    assert found["notes"] == []


@pytest.mark.parametrize("kind", ["masked key", "sql_variant"])
def test_a_table_that_is_compared_row_by_row_is_read_in_ranges(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
):
    if kind == "masked key":
        place.configure(**{"column_mask_hash_SHA-256_with_salt_abc": "dbo.orders.mail", "delta_key_secret": "pepper"})
    fill(place, "mail nvarchar(40) NOT NULL PRIMARY KEY, v sql_variant NULL", "CONCAT('m', n), n")
    monkeypatch.setattr(keyed_table, "RANGE_ROWS", 40)
    place.sql("EXEC sandbox.statement_log")
    found = result(place, capsys, "orders", code=0)
    assert (found["result"], found["fetched_rows"]) == ("equal", 200)
    reads = [text for text in statements(place, "FROM [dbo].[orders] WHERE") if "ORDER BY" not in text]
    assert len(reads) == 6
    assert not [text for text in reads if "[mail] " not in READS.search(text)["where"]]  # type: ignore[index]
