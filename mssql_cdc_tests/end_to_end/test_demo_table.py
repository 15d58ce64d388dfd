"""The demo's live table shows correct numbers."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from mssql_cdc.demo.table import Line, lag, render, row_count, screen
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offsets import load_offsets
from mssql_cdc.schema import TableId
from mssql_cdc_tests.end_to_end.kit import Place


def test_lag_is_zero_when_the_lake_is_complete_and_grows_from_the_oldest_missing_change(place: Place):
    table = TableId(place.database, "dbo", "t")
    layout = Layout(str(place.warehouse), "shop", place.database)

    def now() -> float | None:
        return lag(place.control.raw, table, load_offsets(layout))

    place.create("t", "id int PRIMARY KEY, v int")
    place.configure(snapshot_mode="no_data")
    assert now() is None, "the table is not streaming yet"
    place.settle()
    assert place.catch_up() == 0
    assert now() == 0
    place.sql("INSERT dbo.t VALUES (1, 1)")
    place.settle()
    first = now()
    place.sql("WAITFOR DELAY '00:00:01'", "INSERT dbo.t VALUES (2, 2)")
    place.settle()
    assert first is not None
    second = now()
    assert second is not None
    assert second >= first + 1, "a newer change must not reduce the lag of the older one"
    assert place.catch_up() == 0
    assert now() == 0


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


def test_table_shows_a_dash_for_missing_values():
    shown = render([Line("dbo.t", 1_200, 30_000, None, None), Line("dbo.u", 1, 1, 1, 2.4)], note="streaming")
    assert shown.splitlines() == [
        "table  source rows  events  current rows  lag",
        "dbo.t        1,200  30,000             –    –",
        "dbo.u            1       1             1  2 s",
        "streaming",
    ]


def test_the_live_table_redraws_in_place_on_a_terminal_and_appends_elsewhere(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    pipe, terminal = io.StringIO(), Terminal()
    for out in (pipe, terminal):
        with screen(out) as show:
            show([Line("dbo.t", 1, 1, 1, 0)], "first")
            show([Line("dbo.t", 2, 2, 2, 0)], "second")
    assert pipe.getvalue().split("second")[0].count("table") == 2
    assert "\x1b" not in pipe.getvalue()
    up = "\x1b[1A"
    assert terminal.getvalue().split("second")[0].count(up) == 2, "the cursor moves two lines up, to the heading"
