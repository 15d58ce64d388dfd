"""Rules of `sp_MSforeachtable` and `sp_MSforeachdb`, with which many enable change data capture.

Evidence: the published texts of the procedures.
"""

from __future__ import annotations

import pytest

from tests.cdc.client import World


@pytest.fixture
def tables(world: World) -> World:
    world.execute("CREATE TABLE a (id int PRIMARY KEY) CREATE TABLE [b c] (id int PRIMARY KEY) INSERT a VALUES (1)")
    world.execute("EXEC sys.sp_cdc_enable_db")
    return world


def test_the_name_takes_the_place_of_the_question_mark(tables: World) -> None:
    tables.execute("CREATE TABLE #found (name sysname, rows int)")
    tables.execute("INSERT #found EXEC sp_MSforeachtable 'SELECT ''?'', COUNT(*) FROM ?'")
    assert tables.rows("SELECT * FROM #found") == [("[dbo].[a]", 1), ("[dbo].[b c]", 0)]


def test_tables_are_chosen_and_enabled(tables: World) -> None:
    enable = (
        "DECLARE @s sysname = PARSENAME(''?'', 2), @n sysname = PARSENAME(''?'', 1) "
        "EXEC sys.sp_cdc_enable_table @source_schema = @s, @source_name = @n, @role_name = NULL"
    )
    tables.execute(f"EXEC sp_MSforeachtable @command1 = '{enable}', @whereand = 'AND o.name LIKE ''b%'''")
    assert tables.rows("SELECT name FROM sys.tables WHERE is_tracked_by_cdc = 1") == [("b c",)]


def test_databases_are_left_again(tables: World) -> None:
    answer = tables.execute("EXEC sp_MSforeachdb 'USE [?] SELECT DB_NAME(), is_cdc_enabled FROM sys.databases "
                            "WHERE database_id = DB_ID()' SELECT DB_NAME()")  # fmt: skip
    *each, (last,) = answer.sets
    own = tables.value("SELECT DB_NAME()")
    assert (own, 1) in [row for (row,) in each]
    assert last == (own,)


@pytest.mark.parametrize(
    ("call", "number"),
    [("sp_MSforeachtable", 201), ("sp_MSforeachdb @command1 = 'PRINT 1', @whereand = ''", 8145)],
)
def test_refused(tables: World, call: str, number: int) -> None:
    assert tables.error(f"EXEC {call}").number == number
