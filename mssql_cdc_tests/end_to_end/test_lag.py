"""A capture job far behind the log: no change is skipped, even if a snapshot runs in the meantime (A8, C18)."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.load import writing

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCAN = "EXEC sys.sp_cdc_scan @maxtrans = 3, @maxscans = 1"
"""A session of the capture job that ends after three transactions, far from the end of the log."""


@pytest.mark.sandbox
@pytest.mark.feature("STR-02")
def test_a_backlog_of_many_sessions_is_read_to_its_end_during_the_snapshot_of_a_keyless_table(orders: Place):
    """Review, bug 1: the mere end of a session was treated as proof that the end of the log had been captured."""
    place = orders
    place.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.people VALUES (1, N'Ann')")
    place.settle()
    assert place.catch_up() == 0
    place.create("notes", "note nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.notes VALUES (N'first')")
    place.settle()
    place.sql("EXEC sandbox.capture_pause")
    for number in range(10, 50):
        place.sql(f"INSERT INTO dbo.orders VALUES ({number}, N'order {number}')")
        place.sql(f"UPDATE dbo.people SET name = N'name {number}' WHERE id = 1")
    place.sql("INSERT INTO dbo.notes VALUES (N'second')")
    with writing(place, lambda _: [SCAN], pause=0.3):
        assert place.catch_up() == 0
    place.sql("EXEC sandbox.clear_faults")
    assert place.check() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t WHERE op = 'c'", "orders", "changes") == [{"n": 40}]
    assert place.query("SELECT COUNT(*) AS n FROM t WHERE op = 'u'", "people", "changes") == [{"n": 40}]
