"""Tables of the lake that the filters do not let through any more: a mistake, and never a database without changes."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]
COMMANDS = {
    "run until caught up": ("run", "--until-caught-up", "--timeout", "120"),
    "run": ("run", "--seconds", "1"),
    "check": ("check",),
}


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """Everything that was said since, with single spaces."""
    shown = capsys.readouterr()
    return " ".join((shown.out + shown.err).split())


@pytest.mark.feature("PRE-02")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
@pytest.mark.parametrize("more", [{}, {"signal_data_collection": "dbo.signals"}], ids=["alone", "signals"])
def test_filters_that_exclude_every_table_of_the_lake_are_a_mistake_in_the_configuration(
    more: dict[str, str], command: tuple[str, ...], signalled: Place, capsys: pytest.CaptureFixture[str]
):
    """Capture stopped with exit code 0: behind its begin, the filters' mistake was a warning only.

    A signal table, which every filter lets through, is no table to capture.
    """
    place = signalled
    place.configure(table_include_list="dbo.order", **more)
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.settle()
    capsys.readouterr()
    assert place.command(*command) == 2
    text = said(capsys)
    assert "captures no table: table.include.list exclude every table that is enabled for CDC" in text
    assert f"{place.database}.dbo.orders" in text

    place.configure(table_include_list="dbo.orders", **more)
    assert place.catch_up() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_a_table_that_the_filters_let_through_and_the_source_does_not_show_is_a_loss(
    command: tuple[str, ...], orders: Place, capsys: pytest.CaptureFixture[str]
):
    place = orders
    place.create("others", "id int NOT NULL PRIMARY KEY")
    place.configure(table_include_list="dbo.orders")
    place.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'")
    capsys.readouterr()
    assert place.command(*command) == 4
    assert "CDC is no longer enabled on it" in said(capsys)
