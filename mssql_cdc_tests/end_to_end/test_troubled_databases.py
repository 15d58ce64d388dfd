"""One database's trouble is its own, and a server that does not answer at first is waited for (ERR-*)."""

from __future__ import annotations

import re

import pytest

from mssql_cdc.config import load_connector
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def two(orders: Place) -> Place:
    """A connector of two databases, the second of which has had CDC switched off."""
    other = orders.second_database()
    # The troubled one comes first: it must not keep the other waiting.
    orders.configure(database_names=f"{other},{orders.database}", guardrail_collections_max="100")
    assert orders.catch_up() == 0
    with control(load_connector(orders.config).connection, other) as opened:
        opened.execute("EXEC sys.sp_cdc_disable_db", doing="preparing a test")
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    return orders


def damage(place: Place, table: str) -> None:
    """Cut the newest commit of a table off, and the checkpoint that would stand for it."""
    log = place.warehouse / "shop" / table / "_delta_log"
    newest = max(log.glob("*.json"))
    for file in (newest, *log.glob(f"{newest.stem}.checkpoint*")):
        file.write_bytes(file.read_bytes()[:-20])


@pytest.mark.parametrize(
    "options", [("--until-caught-up", "--timeout", "60"), pytest.param(("--seconds", "8"), marks=pytest.mark.long)]
)
def test_a_database_whose_cdc_was_switched_off_does_not_hold_the_others_back(
    two: Place, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    """Review, bug 20: error 208, code 3, and the connector's other databases stood still."""
    assert two.command("run", *options) == 2
    assert f"CDC is not enabled in database '{two.database}_b'" in capsys.readouterr().err
    assert two.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]


@pytest.mark.parametrize(
    "options", [("--until-caught-up", "--timeout", "60"), pytest.param(("--seconds", "8"), marks=pytest.mark.long)]
)
def test_a_database_whose_lake_is_damaged_does_not_hold_the_others_back(
    two: Place, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    """What a start does in each database ended the command at the first one that it failed in."""
    damage(two, f"{two.database}_b/_offsets")
    with control(load_connector(two.config).connection, f"{two.database}_b") as opened:
        for statement in (
            "EXEC sys.sp_cdc_enable_db",
            "EXEC sys.sp_cdc_enable_table N'dbo', N'people', @role_name = NULL",
        ):
            opened.execute(statement, doing="preparing a test")
    assert two.command("run", *options) == 2
    assert "_offsets cannot be opened" in capsys.readouterr().err
    assert two.command("status") == 2
    shown = capsys.readouterr().out
    assert f"{two.database}_b: the lake cannot be read, so the lags are unknown: " in shown
    assert f"{two.database}.dbo.orders" in shown
    assert two.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]


def test_a_database_that_cannot_be_checked_does_not_keep_the_others_from_it(
    two: Place, capsys: pytest.CaptureFixture[str]
):
    """The first database that could not be looked at ended the command."""
    assert two.command("run", "--seconds", "5") == 2
    capsys.readouterr()
    assert two.command("check") == 2
    said = capsys.readouterr()
    assert f"{two.database}_b: CDC is not enabled" in said.err
    assert re.search(rf"{two.database}\.dbo\.orders\s+equal\s+3\s+3", said.out)
    two.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'")
    two.create("others", "id int NOT NULL PRIMARY KEY")
    assert two.command("check") == 4, "the worst of what is wrong"
    said = capsys.readouterr()
    assert f"{two.database}_b: CDC is not enabled" in said.err
    assert f"{two.database}.dbo.orders is gone" in said.err


def test_a_database_whose_gaps_cannot_be_acknowledged_does_not_keep_the_others_from_it(
    two: Place, capsys: pytest.CaptureFixture[str]
):
    two.sql("WAITFOR DELAY '00:00:00.050'", "INSERT INTO dbo.orders VALUES (4, N'four')")
    two.settle()
    two.sql(
        "DECLARE @to binary(10) = sys.fn_cdc_get_max_lsn(); "
        "EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_orders', @low_water_mark = @to"
    )
    assert two.command("run", "--seconds", "5") == 4
    capsys.readouterr()
    assert two.command("acknowledge") == 2
    said = capsys.readouterr().err
    assert "1 gaps acknowledged" in said
    assert f"{two.database}_b: CDC is not enabled" in said


@pytest.mark.long
def test_a_database_that_cannot_be_maintained_does_not_keep_the_others_from_it(
    two: Place, capsys: pytest.CaptureFixture[str]
):
    damage(two, f"{two.database}_b/_offsets")
    capsys.readouterr()
    assert two.command("maintain") == 2
    said = capsys.readouterr().err
    assert f"{two.database}.dbo.orders changes: " in said
    last = said.splitlines()[-1]
    assert f"{two.database}_b: _offsets: " in last
    assert "_offsets cannot be opened" in last


@pytest.mark.sandbox
def test_a_first_connection_that_is_cut_is_made_again(orders: Place, capsys: pytest.CaptureFixture[str]):
    """Review, bug 24: a run gave up when its very first connection was cut."""
    orders.configure(guardrail_collections_max="100", retriable_restart_connector_wait_ms="200")
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    orders.sql("EXEC sandbox.cut_connection @pattern = N'SET TEXTSIZE', @when = N'unanswered', @times = 2")
    assert orders.command("run", "--seconds", "8") == 0
    assert "retry 1 in 0.2 s" in capsys.readouterr().err
    assert orders.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]


def test_a_server_that_never_answered_is_code_3(orders: Place):
    orders.configure(database_port="1")
    assert orders.command("run", "--seconds", "2") == 3
