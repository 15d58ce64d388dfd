"""Created and dropped capture instances: a gap between two of them is detected and reported (B14)."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def disable(place: Place, table: str) -> None:
    place.sql(
        f"EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'{table}', @capture_instance = N'all'"
    )


def test_changes_while_cdc_was_off_are_lost_until_a_snapshot_repairs_them(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    """Review, bug 2: a usual maintenance window; the new instance was treated as a continuation of the old one."""
    place = orders
    disable(place, "orders")
    place.sql("UPDATE dbo.orders SET name = N'changed' WHERE id = 1", "DELETE FROM dbo.orders WHERE id = 2")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.enable("orders")
    place.settle()
    assert place.catch_up() == 4
    assert "the previously read capture instance no longer exists" in capsys.readouterr().err
    place.configure(snapshot_mode="when_needed")
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.feature("STR-18")
def test_a_second_instance_takes_over_and_the_first_may_be_dropped(orders: Place):
    place = orders
    place.sql("ALTER TABLE dbo.orders ADD amount int NULL")
    place.enable("orders", instance="orders_2")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three', 3)")
    place.settle()
    assert place.catch_up() == 0
    place.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'orders', "
        "@capture_instance = N'dbo_orders'"
    )
    place.sql("UPDATE dbo.orders SET amount = 4 WHERE id = 3")
    place.settle()
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.parametrize("gone", ["off", "dropped"])
def test_a_table_that_disappears_is_named_and_ends_with_code_4(
    orders: Place, capsys: pytest.CaptureFixture[str], gone: str
):
    """Review, bug 12: the run reported nothing and ended with 0."""
    place = orders
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.settle()
    assert place.catch_up() == 0
    if gone == "off":
        disable(place, "orders")
    else:
        place.sql("DROP TABLE dbo.orders")
    place.sql("INSERT INTO dbo.people VALUES (1)")
    place.settle()
    for _ in range(2):
        capsys.readouterr()
        assert place.catch_up() == 4
        found = capsys.readouterr().err
        assert "dbo.orders" in found
        assert ("CDC is no longer enabled" if gone == "off" else "dropped") in found
    assert place.query("SELECT COUNT(*) AS n FROM t", "people") == [{"n": 1}]
    assert place.command("acknowledge", "--table", "dbo.orders") == 0
    assert place.catch_up() == 0
