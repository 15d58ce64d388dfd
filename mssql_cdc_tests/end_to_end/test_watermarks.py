"""Watermarks of incremental snapshots in the signal table: rows around each chunk, on demand (INC-08)."""

from __future__ import annotations

import json
import uuid
from datetime import datetime

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_incremental import notes
from mssql_cdc_tests.end_to_end.test_reading_settings import statements
from mssql_cdc_tests.end_to_end.test_signals import own_rows
from mssql_cdc_tests.servers import grant

pytestmark = [pytest.mark.spark, pytest.mark.slow]

INSERTED, DELETED = 2, 1
OPENING, READING = "INSERT INTO [dbo].[signals]", "SELECT t.[id]"
CLOSING = {"insert_insert": OPENING, "insert_delete": "DELETE FROM [dbo].[signals]"}
WRITTEN = "SELECT [__$operation], id, type, data FROM cdc.dbo_signals_CT ORDER BY [__$start_lsn], [__$seqval]"


def watermarked(place: Place, strategy: str, **more: str) -> None:
    """A signal table, and a table whose four rows are two chunks."""
    place.configure(signal_data_collection=f"{place.database}.dbo.signals")
    place.create("signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL")
    place.create_orders()
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three'), (4, N'four')")
    place.settle()
    place.configure(
        signal_data_collection=f"{place.database}.dbo.signals",
        incremental_snapshot_chunk_size="2",
        incremental_snapshot_watermarking_strategy=strategy,
        **more,
    )


@pytest.mark.sandbox
@pytest.mark.feature("INC-08")
@pytest.mark.parametrize("strategy", ["insert_insert", "insert_delete"])
def test_each_chunk_is_read_between_two_rows_of_the_signal_table(place: Place, strategy: str):
    watermarked(place, strategy)
    place.sql("EXEC sandbox.statement_log")
    assert place.command("snapshot", "--table", "dbo.orders", "--incremental") == 0
    assert place.catch_up() == 0
    assert place.check() == 0
    reads = place.query("SELECT after.id AS id FROM t WHERE _snapshot LIKE 'incremental%'", "orders", "changes")
    assert sorted(row["id"] for row in reads) == [1, 2, 3, 4]
    place.settle()
    written = place.control.rows(WRITTEN, doing="reading what was written")
    pairs = list(zip(written[::2], written[1::2], strict=True))
    assert len(pairs) == 2
    for opened, closed in pairs:
        chunk, _, suffix = opened.id.rpartition("-")
        assert (opened[0], str(uuid.UUID(chunk)), suffix) == (INSERTED, chunk, "open")
        assert opened.type == "snapshot-window-open"
        times = json.loads(opened.data)
        assert datetime.fromisoformat(times["openWindowTimestamp"]).tzinfo is not None
        if strategy == "insert_delete":
            assert (closed[0], closed.id) == (DELETED, opened.id)
        else:
            assert (closed[0], closed.id, closed.type) == (INSERTED, f"{chunk}-close", "snapshot-window-close")
            assert json.loads(closed.data).items() > times.items()
            assert list(json.loads(closed.data)) == ["openWindowTimestamp", "closeWindowTimestamp"]
    bracketed = [OPENING, READING, CLOSING[strategy]]
    logged = [verb for text in statements(place, "[dbo].") for verb in {*bracketed} if text.startswith(verb)]
    assert logged == bracketed * 2


@pytest.mark.feature("INC-08", "SIG-08")
def test_watermarks_are_no_signals(place: Place):
    watermarked(place, "insert_insert")
    place.signal("i1", **{"data-collections": [f"{place.database}.dbo.orders"]})
    for _ in range(2):
        assert place.catch_up() == 0
    assert [row["id"] for row in own_rows(place, "signals", "SELECT id FROM t")] == ["i1"]


@pytest.mark.feature("INC-08", "INC-19")
def test_a_login_that_may_not_write_watermarks_is_told_and_the_table_streams_on(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    reader, password = f"{place.database}_reader", "Reader-of-the-test-1"
    place.sql(
        f"CREATE LOGIN [{reader}] WITH PASSWORD = '{password}'",
        f"CREATE USER [{reader}] FOR LOGIN [{reader}]",
        f"GRANT SELECT TO [{reader}]",
        grant("VIEW SERVER STATE", reader, place.database),
    )
    watermarked(place, "insert_insert", database_user=reader, database_password=password)
    assert place.command("snapshot", "--table", "dbo.orders", "--incremental") == 0
    assert place.catch_up() == 0
    said = capsys.readouterr()
    assert "GRANT INSERT ON" in said.out + said.err
    assert "TABLE_SCAN_COMPLETED SQL_EXCEPTION" in notes(place)
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 4}]
