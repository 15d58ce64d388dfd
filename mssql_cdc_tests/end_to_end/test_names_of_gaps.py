"""Gaps and positions of tables that were renamed belong to the table, not to the name that it had (A9, B15)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.check.verdict import judge
from mssql_cdc.config import load_connector
from mssql_cdc.run.known_lags import KnownLags
from mssql_cdc.schema import TableId
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]
GAP = "changes after"


def database_of(place: Place) -> Database:
    def no_session() -> None:
        raise AssertionError("no Spark session is needed")

    return Database.of(load_connector(place.config), place.database, spark=no_session, warehouse=str(place.warehouse))  # type: ignore[arg-type]


def table(place: Place, name: str) -> TableId:
    return TableId(place.database, "dbo", name)


def exchange_names(place: Place) -> None:
    place.sql(
        "EXEC sp_rename N'dbo.orders', N'people_'",
        "EXEC sp_rename N'dbo.people', N'orders'",
        "EXEC sp_rename N'dbo.people_', N'people'",
    )


@pytest.fixture
def place(signalled: Place) -> Place:
    """`orders`, and `people`, both streaming."""
    signalled.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    signalled.sql("INSERT INTO dbo.people VALUES (1, N'someone')")
    signalled.settle()
    assert signalled.catch_up() == 0
    return signalled


@pytest.mark.feature("STR-21")
def test_a_gap_is_told_and_acknowledged_under_the_name_that_its_table_has(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """It stayed with the name: the other table was red for it, and no name acknowledged it."""
    place.sql("DELETE FROM dbo.orders WHERE id = 1", "WAITFOR DELAY '00:00:00.050'")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.settle()
    place.sql(
        "DECLARE @to binary(10) = sys.fn_cdc_get_max_lsn(); "
        "EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_orders', @low_water_mark = @to"
    )
    assert place.catch_up() == 4
    place.signal("mend", type="blocking", **{"data-collections": [f"{place.database}.dbo.orders"]})
    assert place.catch_up() == 0
    exchange_names(place)
    place.sql("INSERT INTO dbo.orders VALUES (7, N'x')", "INSERT INTO dbo.people VALUES (7, N'x')")
    place.settle()
    assert place.catch_up() == 0

    database = database_of(place)
    assert any(GAP in problem for problem in judge(database, table(place, "people")).problems)
    assert judge(database, table(place, "orders")).problems == ()
    capsys.readouterr()
    assert place.command("status", "--json") == 0
    tables = json.loads(capsys.readouterr().out)
    assert {one["table"].rsplit(".")[-1]: one["open_gaps"] for one in tables} == {
        "orders": 0,
        "people": 1,
        "signals": 0,
    }
    assert place.command("acknowledge", "--table", "dbo.orders") == 2, "it has no gap"
    assert any(GAP in problem for problem in judge(database, table(place, "people")).problems)
    assert place.command("acknowledge", "--table", "dbo.people") == 0
    assert judge(database, table(place, "people")).problems == ()


@pytest.mark.feature("STR-21")
def test_no_changes_are_missed_in_the_change_log_of_a_table_that_was_renamed(place: Place):
    """Between its two ranges it had been idle under its former name, which the check did not look for."""
    for number in (3, 4):
        place.sql(f"INSERT INTO dbo.orders VALUES ({number}, N'x')")
        place.settle()
        assert place.catch_up() == 0
        place.sql(f"INSERT INTO dbo.people VALUES ({number}, N'x')", "WAITFOR DELAY '00:00:01.100'")
        place.settle()
        assert place.catch_up() == 0
    place.sql("EXEC sp_rename N'dbo.orders', N'purchases'", "INSERT INTO dbo.purchases VALUES (9, N'x')")
    place.settle()
    assert place.catch_up() == 0
    assert judge(database_of(place), table(place, "purchases")).problems == ()


@pytest.mark.feature("STR-21")
def test_a_renamed_table_is_as_late_as_it_is_and_its_former_name_is_not(place: Place):
    """The largest lag was that of the name that nothing has any more: it grew for ever."""
    place.sql("EXEC sp_rename N'dbo.orders', N'purchases'", "INSERT INTO dbo.purchases VALUES (9, N'x')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("INSERT INTO dbo.people VALUES (9, N'x')", "WAITFOR DELAY '00:00:01.100'")
    place.settle()
    assert place.catch_up() == 0
    database = database_of(place)
    offsets = database.offsets()
    lags = KnownLags(database, lambda: datetime.now(UTC))
    lags.ask(offsets)
    assert lags.log(table(place, "orders")) is None
    assert lags.log(table(place, "purchases")) == lags.largest()
