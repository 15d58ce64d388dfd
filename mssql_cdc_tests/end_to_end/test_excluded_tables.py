"""Tables of the lake that the filters do not let through any more: a mistake, and never a database without changes."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows

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
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(COMMANDS[name], id=name, marks=[pytest.mark.long] * (name != "run until caught up"))
        for name in COMMANDS
    ],
)
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


RENAMED = {
    "renamed": (
        {"table_include_list": "dbo.orders"},
        ["EXEC sp_rename N'dbo.orders', N'orders_old'"],
        "dbo.orders_old",
        "table.include.list",
        {"table_include_list": "dbo.orders,dbo.orders_old"},
    ),
    "renamed to an excluded name": (
        {"table_exclude_list": "dbo[.].*_old"},
        ["EXEC sp_rename N'dbo.orders', N'orders_old'"],
        "dbo.orders_old",
        "table.exclude.list",
        {},
    ),
    "moved to another schema": (
        {"schema_include_list": "dbo", "table_include_list": "dbo.orders,dbo.people"},
        ["CREATE SCHEMA archive", "ALTER SCHEMA archive TRANSFER dbo.orders"],
        "archive.orders",
        "schema.include.list and table.include.list",
        {"schema_include_list": "dbo,archive", "table_include_list": "dbo.orders,dbo.people,archive.orders"},
    ),
}


@pytest.mark.feature("STR-21")
@pytest.mark.parametrize(
    ("listed", "moves", "now", "by", "mended"),
    [pytest.param(*RENAMED[name], id=name, marks=[pytest.mark.long] * (name != "renamed")) for name in RENAMED],
)
def test_a_table_that_is_renamed_out_of_the_filters_is_named_and_goes_on_once_they_let_it_through(
    listed: dict[str, str],
    moves: list[str],
    now: str,
    by: str,
    mended: dict[str, str],
    orders: Place,
    capsys: pytest.CaptureFixture[str],
):
    """The advice was a GRANT on the former name, which does not exist."""
    place = orders
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.configure(**listed)
    place.settle()
    assert place.catch_up() == 0
    place.sql("UPDATE dbo.orders SET name = N'before' WHERE id = 1", *moves)
    place.sql(f"INSERT INTO {now} VALUES (3, N'behind')")
    place.settle()
    for command in (*COMMANDS.values(), ("status",)):
        capsys.readouterr()
        assert place.command(*command) == 4
        text = said(capsys)
        assert f"it is {place.database}.{now} now, which is left out: let {now} through {by}" in text
        assert "GRANT" not in text

    place.configure(**mended)
    assert place.catch_up() == 0
    found = place.query("SELECT op, after.name AS name FROM t ORDER BY _pos", "orders", "changes")
    names = [("r", "one"), ("r", "two"), ("u", "before"), ("c", "behind")]
    assert [(one["op"], one["name"]) for one in found] == names
    assert place.check() == 0


def test_a_renamed_table_that_nobody_wants_any_more_is_given_up_by_excluding_its_former_name(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    place = orders
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.configure(table_exclude_list="dbo.orders_old")
    place.sql("EXEC sp_rename N'dbo.orders', N'orders_old'")
    place.settle()
    capsys.readouterr()
    assert place.catch_up() == 4
    assert f"To give it up, exclude {place.database}.dbo.orders, too" in said(capsys)
    place.configure(table_exclude_list="dbo.orders_old,dbo.orders")
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.feature("BLK-01")
def test_no_snapshot_of_an_excluded_table_can_be_requested(orders: Place, capsys: pytest.CaptureFixture[str]):
    """It was recorded with code 0, and nothing ever answered it."""
    orders.create("others", "id int NOT NULL PRIMARY KEY")
    orders.configure(table_include_list="dbo.others")
    assert orders.command("snapshot", "--table", "dbo.orders") == 2
    assert "dbo.orders matches no table of the lake that the filters let through" in said(capsys)


@pytest.mark.feature("BLK-01", "NOT-03")
def test_a_requested_snapshot_of_a_table_that_is_excluded_meanwhile_is_skipped(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    """It waited for ever, and each further step loaded all change logs."""
    orders.create("others", "id int NOT NULL PRIMARY KEY")
    assert orders.command("snapshot", "--table", "dbo.orders") == 0
    orders.configure(table_include_list="dbo.others", notification_enabled_channels="log")
    orders.settle()
    capsys.readouterr()
    assert orders.catch_up() == 0
    assert f"is ignored: none of its tables is captured: {orders.database}.dbo.orders" in said(capsys)
    assert orders.catch_up() == 0
    assert "is ignored" not in said(capsys), "it was answered"
    types = [(row["aggregate_type"], row["type"]) for row in own_rows(orders, "notifications", "SELECT * FROM t")]
    assert ("Initial Snapshot", "SKIPPED") in types
