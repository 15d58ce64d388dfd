"""The work whose statements are certified: large tables, captured, streamed, snapshotted beside, checked, repaired.

It runs on a SQL Server and on the sandbox, which has fewer rows. What the statements cost is `test_statements.py`'s.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from mssql_cdc_tests.end_to_end.kit import Place

TABLES = {
    "pairs": "a int NOT NULL, b int NOT NULL, note nvarchar(50) NULL, PRIMARY KEY (a, b)",
    "times": "a int NOT NULL, b int NOT NULL, note nvarchar(50) NULL, PRIMARY KEY (a, b DESC)",
    "words": "word varchar(40) NOT NULL PRIMARY KEY, note nvarchar(50) NULL",
}
KINDS: Mapping[str, tuple[str, ...]] = {
    "snapshot": (
        "FROM [dbo].[pairs] AS t ORDER BY [a], [b]) AS k",
        "FROM [dbo].[pairs] AS t WHERE",
        "FROM [dbo].[times] AS t ORDER BY [a]) AS k",
        "FROM [dbo].[times] AS t WHERE",
        "ORDER BY t.[a], t.[b] DESC",
        "FROM [dbo].[words] AS t WHERE",
    ),
    "ranges": ("FROM [cdc].[dbo_pairs_CT]", "FROM [cdc].[dbo_words_CT]"),
    "ranges by function": (
        "FROM [cdc].[fn_cdc_get_all_changes_dbo_pairs]",
        "FROM [cdc].[fn_cdc_get_all_changes_dbo_words]",
    ),
    "incremental snapshot": (
        "FROM [dbo].[words] AS t ORDER BY [word] DESC",
        "FROM [dbo].[words] AS t WHERE",
        "FROM [dbo].[times] AS t ORDER BY [a] DESC) AS n",
        "ORDER BY [b] DESC) AS n",
    ),
    "check": (
        "HASHBYTES('SHA2_256'",
        "FROM [dbo].[pairs] WHERE",
        "FROM [dbo].[times] WHERE",
        "FROM [dbo].[words] WHERE",
    ),
    "repair": (
        "AS varbinary(max)), CAST(SUBSTRING(HASHBYTES('SHA2_256'",
        "FROM [dbo].[words] AS t WITH (HOLDLOCK) WHERE",
    ),
}
"""What the statements of each part of the work contain."""
_NUMBERS = (
    "SELECT TOP ({rows}) ROW_NUMBER() OVER (ORDER BY (SELECT NULL)) + {after} AS n "
    "FROM sys.all_columns x CROSS JOIN sys.all_columns y"
)
_SERIES = "SELECT value + {after} AS n FROM GENERATE_SERIES(1, {rows})"
"""The same where rows that TOP leaves out cost time."""
_PLANS = """
SELECT t.text, CONVERT(nvarchar(max), p.query_plan)
FROM sys.dm_exec_cached_plans c
CROSS APPLY sys.dm_exec_sql_text(c.plan_handle) t
CROSS APPLY sys.dm_exec_query_plan(c.plan_handle) p
WHERE p.dbid = DB_ID() AND c.objtype IN ('Prepared', 'Adhoc') AND p.query_plan IS NOT NULL
  AND t.text NOT LIKE '%dm[_]exec[_]cached[_]plans%' AND t.text NOT LIKE '%all[_]columns%'"""
_EXECUTED = """
SELECT t.text, s.execution_count
FROM sys.dm_exec_query_stats s
CROSS APPLY sys.dm_exec_sql_text(s.plan_handle) t
CROSS APPLY sys.dm_exec_query_plan(s.plan_handle) p
WHERE p.dbid = DB_ID() AND t.text NOT LIKE '%dm[_]exec[_]query[_]stats%'"""
_LOGGED = "SELECT text, 1 FROM sandbox.statements WHERE text IS NOT NULL"
_ESCALATIONS = """
SELECT OBJECT_NAME(object_id), SUM(index_lock_promotion_count)
FROM sys.dm_db_index_operational_stats(DB_ID(), NULL, NULL, NULL)
WHERE OBJECT_NAME(object_id) IN ('pairs', 'times', 'words') GROUP BY object_id"""


@dataclass
class Work:
    """The work on one place.

    Attributes:
        place: Where it is done.
        spark: Makes the difference that is repaired.
        rows: How many each table has at first: enough for several chunks, and for the server to prefer a seek.
        shows_plans: The server shows plans; a sandbox does not.
        statements: The texts of the statements that each part has executed.
        escalated: The escalated locks before and after each part that changes nothing at the source.
    """

    place: Place
    spark: Any
    rows: int
    shows_plans: bool
    statements: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    escalated: dict[str, tuple[dict[str, int], dict[str, int]]] = field(
        default_factory=dict[str, tuple[dict[str, int], dict[str, int]]]
    )
    _after: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def configure(self, **properties: str) -> None:
        """Let the connector read in parts that are smaller than the tables."""
        parts = {"streaming_fetch_size": str(self.rows // 300), "incremental_snapshot_chunk_size": str(self.rows // 6)}
        self.place.configure(**parts, **properties)

    def do_all(self) -> None:
        """Do every part of the work once."""
        self.configure()
        for name, columns in TABLES.items():
            self.place.create(name, columns)
        self.insert(self.rows)
        self.place.settle()
        if self.shows_plans:
            self.place.sql("ALTER DATABASE SCOPED CONFIGURATION CLEAR PROCEDURE_CACHE")
        else:
            self.place.sql("EXEC sandbox.statement_log")
        with (
            patch("mssql_cdc.capture.snapshot.take.CHUNK_ROWS", self.rows * 2 // 3),
            patch("mssql_cdc.check.keyed_table.RANGE_ROWS", self.rows // 3),
        ):
            self.part("snapshot", self.catch_up)
            self.part("ranges", lambda: self.ranges(2))
            self.configure(data_query_mode="function")
            self.part("ranges by function", lambda: self.ranges(2))
            self.configure()
            self.part("incremental snapshot", self.snapshot_beside)
            self.part("check", lambda: self.command("check"))
            self.part("repair", self.repair)

    def part(self, name: str, action: Callable[[], None]) -> None:
        """Do a part of the work, and keep its statements.

        Args:
            name: Its name.
            action: The work.
        """
        before, earlier = self.escalations(), self.executed()
        action()
        self.statements[name] = list(self.executed() - earlier)
        if not name.startswith("ranges"):  # Their own insertions take more locks than a statement may.
            self.escalated[name] = before, self.escalations()

    def catch_up(self) -> None:
        """Bring everything that is captured into the lake."""
        assert self.place.catch_up() == 0

    def command(self, name: str, *options: str) -> None:
        """Run a command that must succeed."""
        assert self.place.command(name, *options) == 0

    def ranges(self, number: int) -> None:
        """Capture that many ranges, each with one transaction of many rows per table."""
        size = self.rows // 60
        for _ in range(number):
            self.insert(size, after=self.rows + size * next(self._after))
            self.place.settle()
            self.catch_up()

    def insert(self, rows: int, after: int = 0) -> None:
        """Insert rows into all tables, each in one transaction.

        Args:
            rows: How many.
            after: The number before the first one.
        """
        numbers = (_NUMBERS if self.shows_plans else _SERIES).format(rows=rows, after=after)
        self.place.sql(
            f"INSERT INTO dbo.pairs SELECT n / 1000, n % 1000, N'note' FROM ({numbers}) AS numbers",
            f"INSERT INTO dbo.times SELECT n / 1000, n % 1000, N'note' FROM ({numbers}) AS numbers",
            f"INSERT INTO dbo.words SELECT CONCAT('word ', n), N'note' FROM ({numbers}) AS numbers",
        )

    def snapshot_beside(self) -> None:
        """Read two tables in chunks beside the stream."""
        self.command("snapshot", "--tables", "dbo.times,dbo.words", "--incremental")
        self.catch_up()

    def repair(self) -> None:
        """Find a cell that is wrong in the lake, and read its row again."""
        wrong = f"UPDATE delta.`{self.place.uri('words')}` SET note = 'wrong' WHERE word = 'word 77'"
        self.spark.sql(wrong).collect()
        self.command("check", "--repair")

    # -- What the server tells ----------------------------------------------------------------------------------

    def plans(self) -> dict[str, str]:
        """The cached plans by their statements."""
        return {row[0]: row[1] for row in self.place.control.rows(_PLANS, doing="reading plans")}

    def escalations(self) -> dict[str, int]:
        """How often locks were escalated, by table."""
        if not self.shows_plans:
            return {}
        return {row[0]: row[1] for row in self.place.control.rows(_ESCALATIONS, doing="reading lock counts")}

    def executed(self) -> Counter[str]:
        """How often each statement has been executed, by its text: the cache keeps plans over all parts of the work."""
        found = Counter[str]()
        query = _EXECUTED if self.shows_plans else _LOGGED
        for text, times in self.place.control.rows(query, doing="reading what was executed"):
            found[text] += times
        return found


@contextmanager
def worked(place: Place, spark: Any) -> Iterator[Work]:
    """All of the work, done on a place."""
    shows_plans = not place.server.is_sandbox
    if shows_plans:
        found = place.control.value("SELECT OBJECT_ID('sys.dm_exec_query_plan')", doing="looking for plans")
        shows_plans = found is not None
    work = Work(place, spark, 300_000 if shows_plans else 600, shows_plans)
    work.do_all()
    yield work
