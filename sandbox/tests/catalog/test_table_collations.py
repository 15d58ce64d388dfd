"""What bulk copies ask before they send rows: `sp_tablecollations_100`, in the batch of .NET's SqlBulkCopy."""

from __future__ import annotations

import pytest

from tests.cdc.client import World

TABLE = "(id int, a varchar(5) COLLATE Latin1_General_BIN2, b nvarchar(5) COLLATE SQL_Latin1_General_CP1_CI_AS)"
LATIN, SQL_LATIN = bytes.fromhex("0904000200"), bytes.fromhex("0904d00034")


@pytest.mark.parametrize("name", ["[loads]", ".[dbo].[loads]", "testdb..loads"])
def test_every_column_has_a_row_with_its_collation_as_the_wire_has_it(world: World, name: str) -> None:
    world.execute(f"CREATE TABLE dbo.loads {TABLE}")
    assert world.rows(f"EXEC ..sp_tablecollations_100 N'{name}'") == [
        (1, "id", None, None),
        (2, "a", LATIN, "Latin1_General_BIN2"),
        (3, "b", SQL_LATIN, "SQL_Latin1_General_CP1_CI_AS"),
    ]


def test_temporary_tables_have_theirs(world: World) -> None:
    world.execute(f"CREATE TABLE #loads {TABLE}")
    assert [row[1] for row in world.rows("EXEC tempdb..sp_tablecollations_100 N'.[#loads]'")] == ["id", "a", "b"]


def test_an_unknown_table_has_no_rows(world: World) -> None:
    assert world.rows("EXEC sp_tablecollations_90 N'nothing'") == []


def test_the_property_of_a_collation_is_the_same(world: World) -> None:
    expression = "CONVERT(binary(5), COLLATIONPROPERTY('Latin1_General_BIN2', 'tdscollation'))"
    assert world.rows(f"SELECT {expression}") == [(LATIN,)]


def test_the_question_of_sql_bulk_copy_describes_the_table_and_then_its_collations(world: World) -> None:
    world.execute(f"CREATE TABLE dbo.loads {TABLE}")
    columns = "SET FMTONLY ON select * from [loads] SET FMTONLY OFF"
    batch = f"select @@trancount; {columns} exec ..sp_tablecollations_100 N'.[loads]'"
    first, second, third = world.execute(batch).sets
    assert (first, second, len(third)) == ([(0,)], [], 3)
