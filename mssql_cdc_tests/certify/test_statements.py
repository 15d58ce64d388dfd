"""The connector's statements on a real SQL Server: seeks, no scans or sorts, no escalated locks, few cached plans."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mssql_cdc_tests.certify.plans import Finding, findings
from mssql_cdc_tests.end_to_end.kit import Place, open_place
from mssql_cdc_tests.servers import VARIABLE, configured, open_server

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(configured() is None, reason=f"the sandbox has no plans; {VARIABLE} names a SQL Server"),
]
_NUMBERS = itertools.count(1)
ROWS = 300_000
"""Enough for several chunks, and for the server to prefer a seek."""
TABLES = {
    "pairs": "a int NOT NULL, b int NOT NULL, note nvarchar(50) NULL, PRIMARY KEY (a, b)",
    "words": "word varchar(40) NOT NULL PRIMARY KEY, note nvarchar(50) NULL",
}
NUMBERS = (
    "SELECT TOP ({rows}) ROW_NUMBER() OVER (ORDER BY (SELECT NULL)) + {after} AS n "
    "FROM sys.all_columns x CROSS JOIN sys.all_columns y"
)
PLANS = """
SELECT t.text, CONVERT(nvarchar(max), p.query_plan)
FROM sys.dm_exec_cached_plans c
CROSS APPLY sys.dm_exec_sql_text(c.plan_handle) t
CROSS APPLY sys.dm_exec_query_plan(c.plan_handle) p
WHERE p.dbid = DB_ID() AND c.objtype IN ('Prepared', 'Adhoc') AND p.query_plan IS NOT NULL
  AND t.text NOT LIKE '%dm[_]exec[_]cached[_]plans%' AND t.text NOT LIKE '%all[_]columns%'"""
ESCALATIONS = """
SELECT OBJECT_NAME(object_id), SUM(index_lock_promotion_count)
FROM sys.dm_db_index_operational_stats(DB_ID(), NULL, NULL, NULL)
WHERE OBJECT_NAME(object_id) IN ('pairs', 'words') GROUP BY object_id"""


@dataclass(frozen=True)
class Captured:
    """A place whose two large tables are in the lake, and the escalated locks before and after their snapshot."""

    place: Place
    before: dict[str, int]
    after: dict[str, int]


@pytest.fixture(scope="module")
def captured(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captured]:
    folder = tmp_path_factory.mktemp("certify")
    with open_server(folder) as server, open_place(server, folder, server.database(next(_NUMBERS))) as place:
        if place.control.value("SELECT OBJECT_ID('sys.dm_exec_query_plan')", doing="looking for plans") is None:
            pytest.skip("the server shows no plans: it is a sandbox")
        place.configure(streaming_fetch_size="1000")
        for name, columns in TABLES.items():
            place.create(name, columns)
        insert(place, ROWS)
        place.settle()
        place.sql("ALTER DATABASE SCOPED CONFIGURATION CLEAR PROCEDURE_CACHE")
        before = escalations(place)
        assert place.catch_up() == 0
        after = escalations(place)
        ranges(place, 2)
        yield Captured(place, before, after)


def insert(place: Place, rows: int, after: int = 0) -> None:
    numbers = NUMBERS.format(rows=rows, after=after)
    place.sql(
        f"INSERT INTO dbo.pairs SELECT n / 1000, n % 1000, N'note' FROM ({numbers}) AS numbers",
        f"INSERT INTO dbo.words SELECT CONCAT('word ', n), N'note' FROM ({numbers}) AS numbers",
    )


def ranges(place: Place, number: int) -> None:
    """Capture that many ranges, each with one transaction of 5,000 rows per table."""
    for _ in range(number):
        insert(place, 5_000, after=ROWS + 5_000 * next(_NUMBERS))
        place.settle()
        assert place.catch_up() == 0


def plans(place: Place) -> dict[str, str]:
    return {row[0]: row[1] for row in place.control.rows(PLANS, doing="reading plans")}


def escalations(place: Place) -> dict[str, int]:
    return {row[0]: row[1] for row in place.control.rows(ESCALATIONS, doing="reading lock counts")}


def test_no_statement_scans_or_sorts_a_table_that_grows(captured: Captured):
    keyed = frozenset(f"dbo.{name}" for name in TABLES)
    found: dict[str, list[Finding]] = {}
    for text, plan in plans(captured.place).items():
        if one := findings(plan, keys=keyed):
            found[text] = one
    assert found == {}


def test_a_snapshot_escalates_no_lock_to_a_table(captured: Captured):
    assert captured.after == captured.before


def test_further_ranges_add_no_plans(captured: Captured):
    ranges(captured.place, 1)
    before = set(plans(captured.place))
    ranges(captured.place, 3)
    assert set(plans(captured.place)) - before == set()
