"""A switch to a capture instance with further columns: their values in the rows of before are read (EVO-09, D24)."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows
from mssql_cdc_tests.storm.lake import Killed, happening_at, killed_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AMOUNTS = "SELECT id, amount, _unavailable AS unknown FROM t ORDER BY id"


def add_amount(place: Place) -> None:
    """Rows get a value without a change row: by the default, and by an update of the new column alone."""
    place.sql(
        "ALTER TABLE dbo.orders ADD amount int NOT NULL DEFAULT 7",
        "UPDATE dbo.orders SET amount = 5 WHERE id = 1",
    )
    place.enable("orders", instance="orders_2")


def amounts(place: Place) -> list[tuple[int, int | None, tuple[str, ...]]]:
    return [(row["id"], row["amount"], tuple(row["unknown"] or ())) for row in place.query(AMOUNTS, "orders")]


def asked(place: Place) -> list[dict[str, Any]]:
    return own_rows(place, "signals", "SELECT id, channel, data FROM t")


@pytest.mark.feature("EVO-09")
def test_values_of_an_added_column_in_the_rows_of_before_are_read_once(orders: Place):
    place = orders
    add_amount(place)
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three', 3)")
    for _ in range(2):
        place.settle()
        assert place.catch_up() == 0
    assert amounts(place) == [(1, 5, ()), (2, 7, ()), (3, 3, ())]
    (signal,) = asked(place)
    assert signal["id"].startswith("added-columns-")
    assert signal["channel"] == "capture instance"
    assert json.loads(signal["data"])["data-collections"] == [f"{place.database}.dbo.orders"]
    assert place.check() == 0


@pytest.mark.feature("EVO-09")
def test_a_table_that_rests_gets_its_added_column_too(orders: Place):
    place = orders
    place.create("people", "id int NOT NULL PRIMARY KEY")
    add_amount(place)
    place.settle()
    assert place.catch_up() == 0
    place.sql("INSERT INTO dbo.people VALUES (1)")
    place.settle()
    assert place.catch_up() == 0
    assert amounts(place) == [(1, 5, ()), (2, 7, ())]
    assert place.check() == 0


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_run_that_dies_at_the_switch_asks_once(orders: Place, after: bool):  # noqa: FBT001 (drawn)
    place = orders
    add_amount(place)
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three', 3)")
    place.settle()
    with pytest.raises(Killed), killed_at("mssql_cdc.follow.added_columns.ask_for_snapshot", 1, after=after):
        place.catch_up()
    assert place.catch_up() == 0
    assert len(asked(place)) == 1
    assert amounts(place) == [(1, 5, ()), (2, 7, ()), (3, 3, ())]


def test_rows_of_before_do_not_know_an_added_column_that_nobody_reads(orders: Place):
    place = orders
    place.configure(incremental_snapshot_added_columns="false")
    add_amount(place)
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three', 3)")
    place.settle()
    assert place.catch_up() == 0
    assert amounts(place) == [(1, None, ("amount",)), (2, None, ("amount",)), (3, 3, ())]
    assert asked(place) == []


@pytest.mark.parametrize("read", ["true", "false"])
def test_a_column_that_is_dropped_and_added_again_loses_its_values(orders: Place, read: str):
    place = orders
    place.configure(incremental_snapshot_added_columns=read)
    place.sql("ALTER TABLE dbo.orders DROP COLUMN name", "ALTER TABLE dbo.orders ADD name nvarchar(50) NULL")
    place.enable("orders", instance="orders_2")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.settle()
    assert place.catch_up() == 0
    found = place.query("SELECT id, name, _unavailable AS unknown FROM t ORDER BY id", "orders")
    assert [(row["id"], row["name"]) for row in found] == [(1, None), (2, None), (3, "three")]
    unknown = None if read == "true" else ["name"]
    assert [row["unknown"] or None for row in found] == [unknown, unknown, None]
    assert place.check() == 0


def test_values_of_a_column_before_it_was_dropped_are_not_folded_into_the_one_that_came_back(orders: Place):
    place = orders
    place.configure(incremental_snapshot_added_columns="false")
    place.sql("ALTER TABLE dbo.orders DROP COLUMN name", "ALTER TABLE dbo.orders ADD name nvarchar(max) NULL")
    place.enable("orders", instance="orders_2")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.settle()
    assert place.catch_up() == 0
    shutil.rmtree(place.uri("orders"))
    place.sql("INSERT INTO dbo.orders VALUES (4, N'four')")
    place.settle()
    assert place.catch_up() == 0
    found = place.query("SELECT id, name, _unavailable AS unknown FROM t ORDER BY id", "orders")
    assert [(row["id"], row["name"]) for row in found] == [(1, None), (2, None), (3, "three"), (4, "four")]
    assert [row["unknown"] or [] for row in found] == [["name"], ["name"], [], []]
    assert place.check() == 0


def test_a_table_without_a_key_is_told_once_to_need_a_snapshot(place: Place, capsys: pytest.CaptureFixture[str]):
    place.create("notes", "text nvarchar(50) NULL")
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.notes VALUES (N'one')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("ALTER TABLE dbo.notes ADD amount int NULL")
    place.enable("notes", instance="notes_2")
    for key in range(2):
        place.sql(f"INSERT INTO dbo.people VALUES ({key})")
        place.settle()
        assert place.catch_up() == 0
    said = capsys.readouterr().err
    assert said.count("have no value of amount; as the table has no key, take a blocking snapshot") == 1
    place.sql("INSERT INTO dbo.notes VALUES (N'two', 2)")
    place.settle()
    assert place.catch_up() == 0


@pytest.mark.feature("EVO-09")
def test_the_rest_of_a_table_gets_its_added_column_after_a_snapshot_of_some_rows(orders: Place):
    """The snapshot reads the new instance before the stream does, so that the lake knows its structure by then."""
    place = orders
    add_amount(place)
    assert place.command("snapshot", "--table", "dbo.orders", "--where", "id = 1") == 0
    place.settle()
    assert place.catch_up() == 0
    assert amounts(place) == [(1, 5, ()), (2, 7, ())]
    assert place.check() == 0


@pytest.mark.feature("EVO-09")
def test_the_rest_of_a_table_gets_its_added_column_after_a_snapshot_that_is_stopped(orders: Place):
    place = orders
    add_amount(place)
    assert place.command("snapshot", "--table", "dbo.orders") == 0
    with (
        pytest.raises(Killed),
        killed_at("mssql_cdc.capture.snapshot.chunk_groups.commit", 1, after=False),
    ):
        place.catch_up()
    assert place.command("snapshot", "--table", "dbo.orders", "--stop") == 0
    place.settle()
    assert place.catch_up() == 0
    assert amounts(place) == [(1, 5, ()), (2, 7, ())]
    assert place.check() == 0


@pytest.mark.feature("EVO-09")
def test_an_added_column_is_read_although_an_incremental_snapshot_of_some_rows_runs(signalled: Place):
    """A range ends just below the new instance; the snapshot beside it looks at the structure that comes next."""
    place = signalled
    name = f"{place.database}.dbo.orders"
    some = [{"data-collection": name, "filter": "id = 1"}]
    place.signal("i1", **{"data-collections": [name], "additional-conditions": some})
    place.settle()

    def meanwhile() -> None:
        place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
        add_amount(place)
        place.settle()

    with happening_at("mssql_cdc.follow.incremental_step.open_table", 1, meanwhile):
        assert place.catch_up() == 0
    place.sql("INSERT INTO dbo.orders VALUES (4, N'four', 4)")
    place.settle()
    assert place.catch_up() == 0
    assert amounts(place) == [(1, 5, ()), (2, 7, ()), (3, 7, ()), (4, 4, ())]
    assert place.check() == 0


@pytest.mark.feature("EVO-09")
def test_a_table_that_was_read_whole_with_its_added_column_is_not_read_again(orders: Place):
    place = orders
    add_amount(place)
    assert place.command("snapshot", "--table", "dbo.orders") == 0
    for number in (3, 4):
        place.sql(f"INSERT INTO dbo.orders VALUES ({number}, N'new', {number})")
        place.settle()
        assert place.catch_up() == 0
    assert amounts(place) == [(1, 5, ()), (2, 7, ()), (3, 3, ()), (4, 4, ())]
    assert [signal["channel"] for signal in asked(place)] == ["command"]


@pytest.mark.feature("EVO-09")
def test_an_added_column_is_read_again_if_the_stream_still_had_rows_without_it(orders: Place):
    """Behind these, the column begins another life, in which what the snapshot has read of it does not count."""
    place = orders
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    add_amount(place)
    assert place.command("snapshot", "--table", "dbo.orders") == 0
    place.settle()
    assert place.catch_up() == 0
    place.sql("INSERT INTO dbo.orders VALUES (4, N'four', 4)")
    place.settle()
    assert place.catch_up() == 0
    assert amounts(place) == [(1, 5, ()), (2, 7, ()), (3, 7, ()), (4, 4, ())]
    assert place.check() == 0


@pytest.mark.feature("EVO-09")
def test_an_instance_that_adds_nothing_asks_for_nothing(orders: Place):
    """What an earlier instance has added was read then."""
    place = orders
    add_amount(place)
    place.settle()
    assert place.catch_up() == 0
    place.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'dbo_orders'")
    place.enable("orders", instance="orders_3")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three', 3)")
    place.settle()
    assert place.catch_up() == 0
    assert len(asked(place)) == 1
    assert amounts(place) == [(1, 5, ()), (2, 7, ()), (3, 3, ())]


@pytest.mark.sandbox
@pytest.mark.feature("EVO-09")
def test_an_added_column_is_read_again_after_a_restore(orders: Place):
    """The server gives the same object ids again: the instance is another one that looks like the first."""
    place = orders
    place.settle()
    place.sql("EXEC sandbox.restore_point")
    add_amount(place)
    place.settle()
    assert place.catch_up() == 0
    assert amounts(place) == [(1, 5, ()), (2, 7, ())]
    place.sql("EXEC sandbox.restore_database")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'in the new history')")
    place.settle()
    assert place.catch_up() == 4
    assert place.command("acknowledge", "--restored") == 0
    assert place.catch_up() == 0
    add_amount(place)
    place.settle()
    assert place.catch_up() == 0
    assert [signal["channel"] for signal in asked(place)] == ["capture instance"] * 2
    assert amounts(place) == [(1, 5, ()), (2, 7, ()), (3, 7, ())]
    assert place.check() == 0
