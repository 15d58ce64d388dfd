"""Which statements end with a DONE of their own [doc: MS-TDS 2.2.7.6; wire: go-mssqldb's own tests].

A DONE without a count is no result to drivers, but a message before it is one (pyodbc: "No results" after PRINT).
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client


@pytest.mark.parametrize(
    ("batch", "ends"),
    [
        ("DECLARE @x int", 0),
        ("DECLARE @x int; SET @x = 1", 1),
        ("PRINT 'a'; SELECT 1; PRINT 'b'", 3),
        ("IF 1 = 0 PRINT 'a'", 1),
        ("IF 1 = 1 PRINT 'a' ELSE PRINT 'b'", 2),
        ("DECLARE @x int = 0; WHILE @x < 2 SET @x += 1", 5),
        ("BEGIN PRINT 'a' END", 1),
        ("BEGIN TRY PRINT 'a' END TRY BEGIN CATCH PRINT 'b' END CATCH", 1),
        ("WAITFOR DELAY '00:00:00'; RAISERROR ('a', 10, 1)", 2),
        ("SET XACT_ABORT ON; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", 2),
    ],
)  # fmt: skip
def test_every_statement_ends_but_declarations_and_what_only_groups(sql: Client, batch: str, ends: int) -> None:
    assert len(sql(batch).counts) == ends


def test_cursors_and_loops_of_a_procedure_end_statement_by_statement(sql: Client) -> None:
    sql(
        "CREATE PROCEDURE p AS BEGIN DECLARE @x int; DECLARE c CURSOR FOR SELECT 1 UNION SELECT 2; OPEN c;"
        " FETCH NEXT FROM c INTO @x; WHILE @@FETCH_STATUS = 0 BEGIN PRINT @x; FETCH NEXT FROM c INTO @x END;"
        " CLOSE c; DEALLOCATE c END"
    )
    inside = 12  # DECLARE CURSOR, OPEN, three FETCH, three tests, two PRINT, CLOSE, DEALLOCATE
    assert len(sql("EXEC p").counts) == inside


def test_a_procedure_under_nocount_keeps_its_ends_to_itself(sql: Client) -> None:
    sql("CREATE PROCEDURE p AS SET NOCOUNT ON; DECLARE @x int; SET @x = 1; IF @x = 1 PRINT 'a'")
    assert sql("EXEC p").counts == []


def test_a_batch_under_nocount_ends_without_counts(sql: Client) -> None:
    assert sql("SET NOCOUNT ON; PRINT 'a'; SELECT 1").counts == [None, None, None]
