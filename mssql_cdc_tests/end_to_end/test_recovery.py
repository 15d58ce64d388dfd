"""A lost schema history: told at the start, rebuilt by the mode `recovery`, refused where a table was altered."""

from __future__ import annotations

import shutil

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def lose_history(place: Place) -> None:
    shutil.rmtree(place.warehouse / "shop" / place.database / "_schema_history")


@pytest.mark.feature("SNP-13", "SCH-03")
def test_a_lost_schema_history_stops_the_start_and_says_what_to_do(orders: Place, capsys: pytest.CaptureFixture[str]):
    lose_history(orders)
    assert orders.catch_up() == 2
    said = capsys.readouterr().err
    assert f"_schema_history lacks version 1 of {orders.database}.dbo.orders" in said
    assert "snapshot.mode=recovery" in said


@pytest.mark.feature("SNP-06", "SNP-08")
@pytest.mark.parametrize(
    "properties",
    [
        {"snapshot_mode": "recovery"},
        {
            "snapshot_mode": "configuration_based",
            "snapshot_mode_configuration_based_snapshot_on_schema_error": "true",
            "snapshot_mode_configuration_based_start_stream": "true",
        },
    ],
    ids=["recovery", "configuration_based"],
)
def test_recovery_rebuilds_the_history_without_reading_a_row(orders: Place, properties: dict[str, str]):
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    lose_history(orders)
    orders.configure(**properties)
    assert orders.catch_up() == 0
    ops = [row["op"] for row in orders.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")]
    assert ops == ["r", "r", "c"]
    assert {row["schema"] for row in own_rows(orders, "schema_history", "SELECT schema FROM t")} == {1}
    assert orders.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]
    assert orders.check() == 0


@pytest.mark.feature("SNP-06")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("ALTER TABLE dbo.orders ADD note nvarchar(9) NULL", "it was altered since its last rows were written: ALTER"),
        ("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'", "no longer shows the table"),
    ],
)
def test_recovery_refuses_a_table_that_was_altered_since(
    orders: Place, capsys: pytest.CaptureFixture[str], change: str, reason: str
):
    orders.create("people", "id int NOT NULL PRIMARY KEY")
    orders.settle()
    assert orders.catch_up() == 0
    orders.sql(change)
    orders.settle()
    lose_history(orders)
    orders.configure(snapshot_mode="recovery")
    capsys.readouterr()
    assert orders.catch_up() == 2
    assert reason in capsys.readouterr().err


@pytest.mark.feature("SNP-06")
def test_recovery_refuses_a_table_with_a_column_that_continued_in_another_delta_column(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    """Only the history says which of them holds the values of which rows; the type of before came back."""
    for kind in ("varbinary(50)", "nvarchar(50)"):
        orders.sql("UPDATE dbo.orders SET name = NULL", f"ALTER TABLE dbo.orders ALTER COLUMN name {kind} NULL")
        orders.sql("UPDATE dbo.orders SET name = name WHERE id = 1")
        orders.settle()
        assert orders.catch_up() == 0
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    assert orders.catch_up() == 0
    lose_history(orders)
    orders.configure(snapshot_mode="recovery")
    capsys.readouterr()
    assert orders.catch_up() == 2
    assert "its column name may continue in the Delta column name_2" in capsys.readouterr().err


@pytest.mark.feature("SNP-06")
def test_recovery_needs_something_to_recover(place: Place, capsys: pytest.CaptureFixture[str]):
    place.configure(snapshot_mode="recovery")
    place.create("orders", "id int NOT NULL PRIMARY KEY")
    place.settle()
    assert place.catch_up() == 2
    assert "snapshot.mode=recovery: the lake has no position of database" in capsys.readouterr().err
