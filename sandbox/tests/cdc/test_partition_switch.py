"""Rules of partition switching beside change data capture.

Evidence: Microsoft's documentation of `sys.sp_cdc_enable_table` (@allow_partition_switch) and its list of messages.
"""

from __future__ import annotations

import pytest

from tests.cdc.client import World


@pytest.fixture
def sales(world: World) -> World:
    world.execute("CREATE PARTITION FUNCTION halves (int) AS RANGE RIGHT FOR VALUES (100)")
    world.execute("CREATE PARTITION SCHEME both AS PARTITION halves ALL TO ([PRIMARY])")
    for name, place in (("sales", "ON both (id)"), ("kept", "")):
        world.execute(f"CREATE TABLE {name} (id int NOT NULL PRIMARY KEY CLUSTERED, v int) {place}")
    world.execute("INSERT sales VALUES (1, 1), (200, 2)")
    world.execute("EXEC sys.sp_cdc_enable_db")
    return world


def warnings(world: World, *, allowed: str) -> set[int]:
    world.require_messages()
    answer = world.enable_table("sales", allow_partition_switch=allowed)
    return {message.number for message in answer.messages if 22850 < message.number < 22860}


def test_switching_is_allowed_and_not_captured(sales: World) -> None:
    assert warnings(sales, allowed="1") == {22855}
    sales.stop_capture()
    sales.execute("ALTER TABLE sales SWITCH PARTITION 2 TO kept")
    sales.capture()
    assert sales.rows("SELECT id FROM sales") == [(1,)]
    assert sales.value("SELECT COUNT(*) FROM cdc.dbo_sales_CT") == 0


def test_switching_out_of_a_captured_table_is_refused_when_not_allowed(sales: World) -> None:
    assert warnings(sales, allowed="0") == {22856}
    assert sales.value("SELECT partition_switch FROM cdc.change_tables") in (0, False)
    assert sales.error("ALTER TABLE sales SWITCH PARTITION 2 TO kept").number == 22843


def test_switching_into_a_captured_table_is_refused_when_not_allowed(sales: World) -> None:
    sales.enable_table("sales", allow_partition_switch="0")
    sales.execute("DELETE sales WHERE id = 1 ALTER TABLE kept ADD CHECK (id < 100)")
    assert sales.error("ALTER TABLE kept SWITCH TO sales PARTITION 1").number == 22842


def test_a_table_without_partitions_is_switched_whatever_was_said(sales: World) -> None:
    sales.enable_table("kept", allow_partition_switch="0")
    assert sales.value("SELECT partition_switch FROM cdc.change_tables") in (1, True)
    sales.execute("CREATE TABLE other (id int NOT NULL PRIMARY KEY CLUSTERED, v int) ALTER TABLE kept SWITCH TO other")


def test_the_option_is_no_null(sales: World) -> None:
    failure = sales.error(
        "EXEC sys.sp_cdc_enable_table N'dbo', N'sales', @role_name = NULL, @allow_partition_switch = NULL"
    )
    assert failure.number == 22844
