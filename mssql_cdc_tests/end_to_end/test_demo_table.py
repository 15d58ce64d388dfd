"""The demo's live table shows correct numbers."""

from __future__ import annotations

import time
from pathlib import Path

from mssql_cdc.capture.lag import Lag
from mssql_cdc.demo.caught_up import demo_database
from mssql_cdc.demo.lags import LagReader
from mssql_cdc.demo.table import Line, render, row_count
from mssql_cdc.run.status import read_lags
from mssql_cdc_tests.end_to_end.kit import Place


def test_the_row_count_of_a_current_table_is_what_a_reader_sees(place: Place):
    place.configure(delta_deletion_vectors="true")
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.orders SELECT value, N'x' FROM GENERATE_SERIES(1, 1000)")
    place.settle()
    assert place.catch_up() == 0
    # One of many rows: it is marked in a deletion vector, and the file stays.
    place.sql("DELETE FROM dbo.orders WHERE id = 7")
    assert place.catch_up() == 0
    log = "".join(path.read_text() for path in Path(place.uri("orders"), "_delta_log").glob("*.json"))
    assert '"deletionVector":{' in log
    assert row_count(place.uri("orders", "changes")) == 1001
    assert row_count(place.uri("orders")) == 999
    assert row_count(place.uri("nothing")) is None


def test_the_lags_that_are_sampled_are_those_of_the_status(place: Place):
    place.configure(delta_warehouse=str(place.warehouse))
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.settle()
    assert place.catch_up() == 0
    reader = LagReader(demo_database(place.config))
    for number in range(2):
        place.sql(f"INSERT INTO dbo.orders VALUES ({number}, N'x')")
        place.settle()
        time.sleep(0.1)
        sampled, anew = reader.read(), read_lags(demo_database(place.config))
        (orders,) = (table for table in sampled if table.name == "orders")
        assert sampled.keys() == anew.keys()
        sampled_lag, lag = sampled[orders].current, anew[orders].current
        assert sampled_lag is not None
        assert lag is not None
        assert 0 < sampled_lag <= lag, "the row is captured, and not in the lake"
        assert place.catch_up() == 0
        assert reader.read()[orders].current == 0


def test_table_shows_a_dash_for_missing_values():
    found = [Line("dbo.t", 1_200, 30_000, None, Lag()), Line("dbo.u", 1, 1, 1, Lag(0, 2.4))]
    assert render(found, note="streaming").splitlines() == [
        "table  source rows  events  current rows  log lag  current lag",
        "dbo.t        1,200  30,000             –        –            –",
        "dbo.u            1       1             1      0 s        2.4 s",
        "streaming",
    ]
