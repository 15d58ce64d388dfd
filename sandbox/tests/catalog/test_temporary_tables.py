"""Temporary tables in tempdb's catalogue, as scripts and SQLAlchemy's reflection look for them [doc: tempdb]."""

from __future__ import annotations

from tests.cdc.client import World

COLUMNS = "SELECT name FROM tempdb.sys.columns WHERE object_id = OBJECT_ID('tempdb..#t') ORDER BY column_id"


def test_their_columns_and_indexes_are_found_by_id(world: World) -> None:
    world.execute("CREATE TABLE #t (id int NOT NULL PRIMARY KEY, name nvarchar(20))")
    assert world.rows(COLUMNS) == [("id",), ("name",)]
    assert len(world.rows("SELECT 1 FROM tempdb.sys.indexes WHERE object_id = OBJECT_ID('tempdb..#t')")) == 1


def test_their_listed_name_is_filled_up_to_the_length_of_a_name(world: World) -> None:
    world.execute("CREATE TABLE #t (id int)")
    ((name,),) = world.rows("SELECT table_name FROM tempdb.information_schema.tables WHERE table_name LIKE '#t[_][_]%'")
    assert len(name) == 128
    same = f"SELECT COUNT(*) FROM tempdb.sys.tables WHERE name = '{name}' AND object_id = OBJECT_ID('tempdb..#t')"
    assert world.rows(same) == [(1,)]


def test_two_sessions_have_one_each_of_the_same_name(world: World) -> None:
    for session in ("one", "two"):
        world.execute("CREATE TABLE #t (id int)", name=session)
    assert len(world.rows("SELECT name FROM tempdb.sys.tables WHERE name LIKE '#t%'", name="one")) == 2
    world.execute("DROP TABLE #t", name="two")
    assert len(world.rows("SELECT name FROM tempdb.sys.tables WHERE name LIKE '#t%'", name="one")) == 1


def test_those_of_a_procedure_are_gone_when_it_ends(world: World) -> None:
    world.execute("CREATE PROCEDURE dbo.p AS CREATE TABLE #t (id int); SELECT COUNT(*) FROM tempdb.sys.tables")
    assert world.rows("EXEC dbo.p") == [(1,)]
    assert world.rows("SELECT COUNT(*) FROM tempdb.sys.tables") == [(0,)]
