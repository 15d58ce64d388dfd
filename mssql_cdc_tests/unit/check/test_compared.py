"""Which columns are compared is decided by the source's own structure; what does not match is named."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from mssql_cdc.check.compared import Compared, compared_of
from mssql_cdc.schema import Column, SqlServerType, TableSchema
from mssql_cdc.source.values import SourceTable
from mssql_cdc_tests.lake_kit import ORDERS, column, orders
from mssql_cdc_tests.unit.config.samples import connector_with

LAKE = orders()
NAMES = frozenset({"id", "name", "note"})


def compared(
    *columns: Column,
    captured: Collection[str] = NAMES,
    unique: tuple[tuple[str, ...], ...] = (("id",),),
    masked: Sequence[str] = (),
    stored: frozenset[str] = NAMES,
    lake: TableSchema = LAKE,
    **properties: str,
) -> Compared:
    table = SourceTable(ORDERS, 1, columns or LAKE.columns, (dict.fromkeys(captured, 0),), unique)
    connector = connector_with({name.replace("_", "."): value for name, value in properties.items()})
    return compared_of(table, lake, connector=connector, masked=masked, stored=stored)


def test_all_columns_are_compared_when_nothing_is_in_the_way():
    found = compared()
    assert (found.names, found.left_out, found.structure) == (("id", "name", "note"), (), ())
    assert found.keyed


def test_each_column_that_is_not_compared_is_named_with_its_reason():
    found = compared(
        column("id", "int"),
        column("later", "int"),
        column("twice", "int", computed=True),
        column("name", "nvarchar", length=50),
        column("fresh", "int"),
        captured=frozenset({"id", "name", "note", "twice", "fresh"}),
        masked=["name"],
    )
    assert found.names == ("id",)
    assert found.left_out == (
        "later (not captured)",
        "twice (computed)",
        "name (masked)",
        "fresh (not in the lake yet)",
        "note (no longer at the source)",
    )


PLACED = tuple(replace(one, position=place) for place, one in enumerate(LAKE.columns, 1))
FORMER, AGAIN = {"id": 1, "name": 2, "note": 3}, {"id": 1, "name": 4, "note": 3}
ADDED = replace(PLACED[1], position=4)


@pytest.mark.parametrize(
    ("captured", "recorded", "left_out"),
    [
        ([FORMER], PLACED, ("name (not captured: dropped and added again)",)),
        ([FORMER, AGAIN], PLACED, ("name (not in the lake yet)",)),
        ([FORMER, AGAIN], (PLACED[0], ADDED, PLACED[2]), ()),
        ([AGAIN], (PLACED[0], ADDED, PLACED[2]), ()),
    ],
    ids=["captured before", "captured anew", "in the lake", "alone"],
)
@pytest.mark.parametrize("kind", [ADDED.type, SqlServerType("int")], ids=["same type", "other type"])
def test_a_column_that_was_dropped_and_added_again_is_compared_where_the_new_one_is_captured(
    captured: Sequence[Mapping[str, int]], recorded: tuple[Column, ...], left_out: tuple[str, ...], kind: SqlServerType
):
    """Its name was captured, so every row differed in it, and no repair could read the table."""
    lake = orders(*(replace(one, type=kind) if one == ADDED else one for one in recorded), object_id=1)
    table = SourceTable(ORDERS, 1, (PLACED[0], PLACED[2], replace(ADDED, type=kind)), tuple(captured), (("id",),))
    found = compared_of(table, lake, connector=connector_with({}), masked=(), stored=NAMES)
    assert (found.left_out, found.structure) == (left_out, ())
    assert found.names == (("id", "note") if left_out else ("id", "note", "name"))


def test_positions_of_a_table_that_was_made_anew_are_others():
    """The lake has recorded the former table; nothing says that its columns were dropped one by one."""
    lake = orders(*PLACED, object_id=7)
    columns = PLACED[0], replace(PLACED[1], position=3), replace(PLACED[2], position=2)
    table = SourceTable(ORDERS, 1, columns, ({"id": 1, "name": 3, "note": 2},), (("id",),))
    assert compared_of(table, lake, connector=connector_with({}), masked=(), stored=NAMES).left_out == ()


def test_excluded_columns_are_named():
    assert compared(column_exclude_list="dbo.orders.note").left_out == ("note (excluded)",)


def test_a_column_of_the_newest_structure_that_the_table_does_not_store_is_named():
    """Review, bug 6b: a column came back, the current table did not have it, and the check reported equal."""
    assert compared(stored=NAMES - {"note"}).left_out == ("note (not in the lake yet)",)


@pytest.mark.parametrize(
    ("changed", "names", "line"),
    [
        (column("name", "nvarchar", length=90), ("id", "name", "note"), "name: nvarchar(50) in the lake, nvarchar(90)"),
        (column("name", "int"), ("id", "note"), "name: nvarchar(50) in the lake, int"),
    ],
)
def test_a_type_that_the_lake_has_recorded_otherwise_is_named(changed: Column, names: tuple[str, ...], line: str):
    found = compared(column("id", "int"), changed, column("note", "nvarchar", length=-1))
    assert found.names == names
    assert found.structure == (f"{line} at the source",)


def test_a_key_that_is_not_unique_any_more_is_named():
    found = compared(unique=(("name",),))
    assert found.structure == ("the key (id) is no longer unique at the source",)


def test_rows_with_a_masked_key_cannot_be_told_apart():
    assert not compared(masked=["id"]).keyed


def test_rows_with_a_variant_key_are_told_apart_and_not_sought_by_it():
    """A key is sought as a text, and that text as a `sql_variant` equals no value of another base type."""
    lake = orders(column("id", "sql_variant"), column("name", "nvarchar", length=50), column("note", "int"))
    found = compared(*lake.columns, lake=lake)
    assert (found.keyed, found.sought_by_key) == (True, False)
    assert compared().sought_by_key
    assert not compared(masked=["id"]).sought_by_key


def test_ranges_are_made_of_the_lakes_key_also_where_it_is_masked():
    found = compared(masked=["id"])
    assert (found.schema.key_columns, found.sought.key_columns) == ((), ("id",))
    assert compared().sought.key_columns == ("id",)


def test_a_key_that_no_index_has_makes_no_ranges():
    assert compared(unique=(("name",),)).sought.key_columns == ()


def test_a_collation_that_the_lake_has_recorded_otherwise_is_named():
    columns = LAKE.columns[0], _collated("Latin1_General_BIN"), LAKE.columns[2]
    recorded = replace(LAKE, columns=(LAKE.columns[0], _collated("Polish_CI_AS"), LAKE.columns[2]))
    found = compared(*columns, lake=recorded)
    assert found.structure == (
        "name: nvarchar(50) COLLATE Polish_CI_AS in the lake, nvarchar(50) COLLATE Latin1_General_BIN at the source",
    )
    assert compared(*columns).structure == ()  # An older lake does not know it.


def _collated(collation: str) -> Column:
    name = LAKE.columns[1]
    return replace(name, type=replace(name.type, collation=collation))
