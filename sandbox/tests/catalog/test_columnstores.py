"""Columnstore indexes in the catalogue [doc: sys.index_columns]."""

from __future__ import annotations

from tests.cdc.client import World


def test_a_columnstore_index_has_a_number_of_its_own_and_its_columns_as_included_ones(world: World) -> None:
    world.execute("CREATE TABLE dbo.t (id int, x varchar(20), y int)")
    world.execute("CREATE NONCLUSTERED COLUMNSTORE INDEX ix ON dbo.t (x, id)")
    world.execute("CREATE NONCLUSTERED INDEX iy ON dbo.t (y)")
    found = world.rows(
        "SELECT i.name, i.type, c.index_column_id, COL_NAME(c.object_id, c.column_id), c.key_ordinal,"
        " CAST(c.is_included_column AS int) FROM sys.indexes i JOIN sys.index_columns c"
        " ON c.object_id = i.object_id AND c.index_id = i.index_id WHERE i.object_id = OBJECT_ID('dbo.t') ORDER BY 1, 3"
    )
    assert found == [("ix", 6, 1, "x", 0, 1), ("ix", 6, 2, "id", 0, 1), ("iy", 2, 1, "y", 1, 0)]


def test_a_clustered_one_has_all_columns(world: World) -> None:
    world.execute("CREATE TABLE dbo.t (id int, x varchar(20)); CREATE CLUSTERED COLUMNSTORE INDEX ix ON dbo.t")
    columns = "SELECT index_id, column_id FROM sys.index_columns WHERE object_id = OBJECT_ID('dbo.t') ORDER BY 2"
    assert world.rows(columns) == [(1, 1), (1, 2)]
