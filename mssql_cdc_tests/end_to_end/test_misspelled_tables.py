"""A command that names several tables does nothing if one of the names is that of no table."""

from __future__ import annotations

import pytest

from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.lake.layout import Layout
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def reads(place: Place) -> int:
    """How often rows of `orders` were read by snapshots."""
    return place.query("SELECT COUNT(*) AS n FROM t WHERE op = 'r'", "orders", "changes")[0]["n"]


NAMED = {
    "listed": ("--tables", "dbo.orders,dbo.ordrs"),
    "incremental": ("--incremental", "--table", "dbo.orders", "--table", "dbo.ordrs"),
    "by expressions": ("--tables", "dbo.o.*,dbo.ordrs"),
    "stopped": ("--stop", "--table", "dbo.orders", "--table", "dbo.ordrs"),
}


@pytest.mark.parametrize("options", NAMED.values(), ids=list(NAMED))
def test_a_snapshot_with_a_misspelled_table_is_not_requested(
    options: tuple[str, ...], orders: Place, capsys: pytest.CaptureFixture[str]
):
    """It was requested of the others, with code 0, and nothing told of the misspelled one."""
    assert orders.command("snapshot", *options) == 2
    said = capsys.readouterr().err
    assert "dbo.ordrs matches no table of the lake that the filters let through; nothing was requested" in said
    assert "requested: " not in said
    assert orders.catch_up() == 0
    assert reads(orders) == 2


def test_a_table_of_one_of_several_databases_is_no_misspelled_one(orders: Place):
    other = orders.second_database()
    orders.configure(database_names=f"{orders.database},{other}")
    assert orders.catch_up() == 0
    assert orders.command("snapshot", "--tables", "dbo.people,dbo.ordrs") == 2
    assert orders.command("snapshot", "--tables", "dbo.people,dbo.orders") == 0
    assert orders.catch_up() == 0
    assert reads(orders) == 4


def test_no_gap_is_acknowledged_if_a_table_is_misspelled(orders: Place, capsys: pytest.CaptureFixture[str]):
    orders.sql("DELETE FROM dbo.orders WHERE id = 1", "WAITFOR DELAY '00:00:00.050'")
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    orders.sql(
        "DECLARE @to binary(10) = sys.fn_cdc_get_max_lsn(); "
        "EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_orders', @low_water_mark = @to"
    )
    assert orders.catch_up() == 4
    capsys.readouterr()
    assert orders.command("acknowledge", "--table", "dbo.orders", "--table", "dbo.ordrs") == 2
    assert "dbo.ordrs matches no table of the lake; nothing was acknowledged" in capsys.readouterr().err
    assert open_gaps(Layout(str(orders.warehouse), "shop", orders.database))
    assert orders.command("acknowledge", "--table", "dbo.orders") == 0
