"""Tables that the source no longer shows, and whose names other captured tables have taken (STR-21, rule B15)."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]
COMMANDS = [("run", "--until-caught-up", "--timeout", "120"), ("run", "--seconds", "1"), ("check",), ("status",)]


def every_command_says(place: Place, capsys: pytest.CaptureFixture[str], *texts: str) -> None:
    """Assert that each command ends with code 4 and says all of these texts."""
    for command in COMMANDS:
        capsys.readouterr()
        assert place.command(*command) == 4
        shown = capsys.readouterr()
        said = " ".join((shown.out + shown.err).split())
        for text in texts:
            assert text in said


def swapped(place: Place, *before: str) -> None:
    """`orders` is put aside, and `people` gets its name."""
    place.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.settle()
    assert place.catch_up() == 0
    place.sql(*before, "EXEC sp_rename N'dbo.orders', N'orders_old'", "EXEC sp_rename N'dbo.people', N'orders'")
    place.sql("INSERT INTO dbo.orders VALUES (7, N'seven')")
    place.settle()


@pytest.mark.feature("STR-21")
def test_a_table_that_is_no_longer_captured_is_told_until_it_is_acknowledged_though_its_name_is_taken(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    """Nothing said so: whatever looked for it by name found the other table."""
    place = orders
    swapped(place, "EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'")
    every_command_says(place, capsys, "another table has the name of this one", "@source_name = N'orders_old'")
    assert place.query("SELECT name FROM t", "people") == [{"name": "seven"}]

    assert place.command("acknowledge", "--table", "dbo.orders") == 0
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.feature("STR-21")
def test_a_table_that_the_filters_leave_out_goes_on_once_they_let_it_through_though_its_name_is_taken(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    place = orders
    place.configure(table_exclude_list="dbo.orders_old")
    swapped(place)
    place.sql("INSERT INTO dbo.orders_old VALUES (3, N'three')")
    place.settle()
    every_command_says(
        place,
        capsys,
        "dbo.orders_old now, which is left out: let dbo.orders_old through table.exclude.list",
        "To give it up, disable CDC on it and acknowledge the loss",
    )

    place.configure()
    assert place.catch_up() == 0
    assert place.query("SELECT name FROM t ORDER BY id", "orders") == [{"name": n} for n in ("one", "two", "three")]
    assert place.check() == 0


@pytest.mark.feature("STR-21")
def test_a_table_that_has_the_name_of_a_lost_one_goes_on_when_that_loss_is_acknowledged(orders: Place):
    """The name was excluded, and the table that has it now never read again."""
    place = orders
    place.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.settle()
    assert place.catch_up() == 0
    place.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'")
    place.settle()
    assert place.catch_up() == 4
    place.sql("EXEC sp_rename N'dbo.orders', N'orders_old'", "EXEC sp_rename N'dbo.people', N'orders'")
    place.sql("INSERT INTO dbo.orders VALUES (7, N'seven')")
    place.settle()
    assert place.catch_up() == 4

    assert place.command("acknowledge", "--table", "dbo.orders") == 0
    place.sql("INSERT INTO dbo.orders VALUES (8, N'eight')")
    place.settle()
    assert place.catch_up() == 0
    assert place.query("SELECT name FROM t ORDER BY id", "people") == [{"name": n} for n in ("seven", "eight")]
    assert place.query("SELECT op FROM t ORDER BY _pos", "people", "changes") == [{"op": "c"}, {"op": "c"}], (
        "no snapshot"
    )
    assert place.check() == 0
