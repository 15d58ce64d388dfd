"""Lives of a column across the versions of its table."""

from __future__ import annotations

import pytest

from mssql_cdc.schema import Column, SqlServerType, TableId, TableSchema
from mssql_cdc.schema.lives import lives


def version(number: int, position: int | None, *, incarnation: int = 1, excluded: bool = False) -> TableSchema:
    there = [] if position is None else [Column("name", SqlServerType("int"), position=position, excluded=excluded)]
    columns = (Column("id", SqlServerType("int"), position=1), *there)
    return TableSchema(TableId("shop", "dbo", "t"), columns, ("id",), version=number, incarnation=incarnation)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([version(1, 2), version(2, 2)], {1: 1, 2: 1}),
        ([version(1, None), version(2, 2)], {2: 1}),
        ([version(1, 2), version(2, None), version(3, 3)], {1: 1, 3: 2}),
        ([version(1, 2), version(2, None), version(3, 2)], {1: 1, 3: 2}),
        ([version(1, 2), version(2, 3)], {1: 1, 2: 2}),
        ([version(1, 2), version(2, 2, excluded=True), version(3, 2)], {1: 1, 3: 2}),
        ([version(1, 2), version(2, 3, incarnation=2)], {1: 1, 2: 1}),
    ],
)
def test_a_column_that_comes_back_begins_another_life(versions: list[TableSchema], expected: dict[int, int]) -> None:
    assert lives(versions, "name") == expected


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["int", "bigint", "bigint"], {1: 1, 2: 1, 3: 1}),
        (["datetime2", "date", "datetime2"], {1: 1, 2: 2, 3: 2}),
        (["datetime", "datetime2", "datetime"], {1: 1, 2: 2, 3: 3}),
    ],
)
def test_a_type_that_rewrites_the_values_begins_another_life_of_values_only(kinds: list[str], expected: dict[int, int]):
    versions = [
        TableSchema(TableId("shop", "dbo", "t"), (Column("a", SqlServerType(kind), position=1),), version=number)
        for number, kind in enumerate(kinds, 1)
    ]
    assert lives(versions, "a", of_values=True) == expected
    assert set(lives(versions, "a").values()) == {1}
