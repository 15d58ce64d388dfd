"""Chunks of tables whose key's index is partitioned by another column: planned partition by partition (rule C20).

What a real server reads for each statement is not shown here: the sandbox keeps the rows of a table together, and shows
each nonclustered index as one that is not partitioned.
"""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest

from mssql_cdc.source.sqlserver.chunk_planning import last_bound, next_bound, plan_chunks, walk_of
from mssql_cdc.source.sqlserver.key_walk import KeyWalk
from mssql_cdc.source.sqlserver.partitioned_keys import PartitionedWalk
from mssql_cdc_tests.sandbox_source.kit import Shop, rows

ROWS = 24
PLACES = {
    "one after the other": [(number, number // 6) for number in range(ROWS)],
    "interleaved": [(number, number % 4) for number in range(ROWS)],
    "at random": [(number, random.Random(number).choice([0, 0, 0, 1, 2, 3])) for number in range(ROWS)],
    "in the last one": [(number, 3) for number in range(ROWS)],
    "without a place": [(number, None if number % 3 else 2) for number in range(ROWS)],
    "the same key in each": [(number // 4, number % 4) for number in range(ROWS)],
}


def partitioned(shop: Shop, key: str, *, on: str = "place", place: str = "place int NULL") -> None:
    """Create table `t` in four partitions by `on`, with an index on `key` that is partitioned, too."""
    shop.run(
        "CREATE PARTITION FUNCTION quarters (int) AS RANGE RIGHT FOR VALUES (1, 2, 3)",
        "CREATE PARTITION SCHEME places AS PARTITION quarters ALL TO ([PRIMARY])",
        f"CREATE TABLE dbo.t (id int NOT NULL, {place}, CONSTRAINT pk UNIQUE CLUSTERED ({key})) ON places ({on})",
    )
    shop.enable("t")


def insert(shop: Shop, places: list[tuple[int, int | None]]) -> None:
    values = ", ".join(f"({number}, {'NULL' if place is None else place})" for number, place in places)
    shop.run(f"INSERT dbo.t VALUES {values}")


def walk(shop: Shop) -> object:
    return walk_of(KeyWalk(shop.control, shop.instance("t").schema))


@pytest.mark.feature("SNP-03")
@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("size", [3, 10])
def test_chunks_of_a_partitioned_table_have_every_row_once(
    shop: Shop, places: list[tuple[int, int | None]], size: int
) -> None:
    partitioned(shop, "id, place")
    insert(shop, places)
    shop.scan()
    chunks = plan_chunks(shop.control, shop.instance("t").schema, size)
    read = [[tuple(row["after"].values()) for row in rows(shop.chunk("t", chunk))] for chunk in chunks]

    assert sorted(str(row) for part in read for row in part) == sorted(map(str, places))
    assert all(len(part) <= size for part in read)


@pytest.mark.parametrize(
    ("order", "size", "sizes"),
    [
        pytest.param("one after the other", 4, [4, 2, 4, 2, 4, 2, 4, 2], id="a chunk ends with its partition"),
        pytest.param("interleaved", 8, [5, 5, 5, 5, 4], id="each partition gives its part"),
        pytest.param("in the last one", 8, [8, 8, 8, 0], id="one partition"),
    ],
)
def test_a_chunk_has_as_many_rows_as_wanted_unless_a_partition_ends(
    shop: Shop, order: str, size: int, sizes: list[int]
) -> None:
    partitioned(shop, "id, place")
    insert(shop, PLACES[order])
    shop.scan()
    chunks = plan_chunks(shop.control, shop.instance("t").schema, size)

    assert [len(rows(shop.chunk("t", chunk))) for chunk in chunks] == sizes


@pytest.mark.feature("INC-06")
def test_the_last_bound_is_that_of_all_partitions(shop: Shop) -> None:
    partitioned(shop, "id, place")
    schema = shop.instance("t").schema

    assert last_bound(shop.control, schema) is None
    insert(shop, [(5, 0), (9, 1), (7, 3)])
    assert last_bound(shop.control, schema) == ("9", "1")
    assert last_bound(shop.control, schema, "t.place <> 1") == ("7", "3")
    assert next_bound(shop.control, schema, 2, None, until=("7", "3"), condition="t.place <> 1") == ("7", "3")


@pytest.mark.parametrize(
    ("key", "more"),
    [
        pytest.param("place, id", (), id="partitioned by the key's first column"),
        pytest.param("id, place", ("CREATE INDEX i ON dbo.t (id) ON [PRIMARY]",), id="another index in one order"),
    ],
)
def test_a_key_that_is_in_one_order_is_walked_as_a_whole(shop: Shop, key: str, more: tuple[str, ...]) -> None:
    partitioned(shop, key)
    shop.run(*more)

    assert isinstance(walk(shop), KeyWalk)


def test_an_index_of_some_rows_does_not_give_the_order(shop: Shop) -> None:
    partitioned(shop, "id, place")
    shop.run("CREATE INDEX i ON dbo.t (id) WHERE id > 5 ON [PRIMARY]")

    assert isinstance(walk(shop), PartitionedWalk)


def test_no_statement_asks_for_more_keys_than_a_chunk_has_of_each_partition(shop: Shop) -> None:
    """The rows that a statement may read are those of its TOP, in each partition that it asks."""
    partitioned(shop, "id, place")
    insert(shop, PLACES["interleaved"])
    schema, asked = shop.instance("t").schema, list[tuple[int, str]]()
    look = shop.control.row

    def row(sql: str, *values: object, doing: str) -> object:
        asked.extend((value, sql) for value in values if type(value) is int and "TOP (?)" in sql)
        return look(sql, *values, doing=doing)

    with patch.object(shop.control, "row", row):
        assert next_bound(shop.control, schema, 6, None) is not None

    whole = [sql for value, sql in asked if value == 6]
    shared = [sql for value, sql in asked if value == 2]
    assert whole
    assert all("= CAST(? AS int)" in sql for sql in whole)  # Of one partition.
    assert shared  # Of each of the four.
