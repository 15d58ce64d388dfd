"""Chunks of tables whose key's index has columns in both directions: planned column by column (rule C20).

The sandbox sorts without a plan, so SQLite's planner says here whether an index serves a statement: like SQL Server's,
its indexes are read forwards or backwards. What a real server reads is not shown.
"""

from __future__ import annotations

import itertools
import random
import re
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.source.sqlserver import key_order
from mssql_cdc.source.sqlserver.check_session import SqlServerCheckSession
from mssql_cdc.source.sqlserver.chunk_planning import last_bound, next_bound, plan_chunks, walk_of
from mssql_cdc.source.sqlserver.chunks import WHOLE
from mssql_cdc.source.sqlserver.key_walk import KeyWalk
from mssql_cdc.source.sqlserver.mixed_keys import MixedWalk
from mssql_cdc.source.sqlserver.partitioned_keys import PartitionedWalk
from mssql_cdc.source.values import Bound, Chunk
from mssql_cdc_tests.sandbox_source.kit import Shop, rows

KEYS = ["a, b DESC", "a DESC, b", "a, b DESC, c", "a DESC, b DESC, c", "a, b, c DESC", "a DESC, b, c DESC"]
SIZES = [1, 3, 7]


def names(key: str) -> list[str]:
    return [part.split()[0] for part in key.split(",")]


def create(shop: Shop, key: str, *, kind: str = "UNIQUE CLUSTERED") -> None:
    shop.create(
        "t", ", ".join(f"{name} int NULL" for name in names(key)) + f", note int NULL, CONSTRAINT u {kind} ({key})"
    )


def fill(shop: Shop, key: str, *, seed: int) -> list[tuple[int | None, ...]]:
    """Insert about thirty rows with few values a column, NULL among them."""
    every = list(itertools.product([None, 0, 1, 2], repeat=len(names(key))))
    chosen = random.Random(seed).sample(every, min(30, len(every) - 2))
    shop.run(
        "INSERT dbo.t VALUES "
        + ", ".join(f"({', '.join('NULL' if v is None else str(v) for v in one)}, 5)" for one in chosen)
    )
    return chosen


def sorted_bounds(shop: Shop, size: int) -> list[Bound]:
    """The bounds that a server finds by sorting."""
    walk = KeyWalk(shop.control, shop.instance("t").schema)
    ordered = shop.control.rows(f"SELECT {walk.texts} FROM dbo.t ORDER BY {walk.names}", doing="sorting")
    return [tuple(row) for row in ordered][size - 1 :: size]


@pytest.mark.feature("SNP-03")
@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_both_directions_has_the_chunks_of_its_columns_order(shop: Shop, key: str) -> None:
    """They have every row once, and are those that a release planned which sorted: its snapshots go on with them."""
    create(shop, key)
    every = fill(shop, key, seed=len(key))
    shop.scan()
    schema = shop.instance("t").schema
    assert isinstance(walk_of(KeyWalk(shop.control, schema)), MixedWalk)
    planned = {size: plan_chunks(shop.control, schema, size) for size in SIZES}
    for size, chunks in planned.items():
        assert [chunk.upper for chunk in chunks] == [*sorted_bounds(shop, size), None]
    read = [tuple(row["after"].values())[:-1] for chunk in planned[7] for row in rows(shop.chunk("t", chunk))]
    assert sorted(map(str, read)) == sorted(map(str, every))


@pytest.mark.parametrize("large", [False, True], ids=["arrow-odbc", "pyodbc"])
def test_rows_of_a_piece_come_in_the_order_of_the_index(shop: Shop, *, large: bool) -> None:
    shop.create("t", f"a int, b int, {'note xml, ' if large else ''}CONSTRAINT u UNIQUE NONCLUSTERED (a, b DESC)")
    shop.run(
        "INSERT dbo.t (a, b) SELECT x.value, y.value FROM GENERATE_SERIES(0, 3) x CROSS JOIN GENERATE_SERIES(0, 2) y"
    )
    shop.scan()
    read = [row["after"] for row in rows(shop.chunk("t", Chunk(0, ("0", "1"), ("3", "1"))))]

    found = [(row["a"], row["b"]) for row in read]
    assert found == [(0, 2), (1, 2), (1, 1), (1, 0), (2, 2), (2, 1), (2, 0), (3, 1), (3, 0)]


@pytest.mark.feature("INC-06")
@pytest.mark.parametrize("key", KEYS)
def test_steps_between_any_two_bounds_are_those_of_the_columns_order(shop: Shop, key: str) -> None:
    create(shop, key)
    schema = shop.instance("t").schema
    assert last_bound(shop.control, schema) is None
    fill(shop, key, seed=7)
    bounds = sorted_bounds(shop, 1)
    assert last_bound(shop.control, schema) == bounds[-1]
    chance = random.Random(key)
    for _ in range(12):
        low, high = sorted(chance.sample(range(len(bounds)), 2))
        size = chance.randint(1, high - low)
        found = next_bound(shop.control, schema, size, bounds[low], until=bounds[high])
        assert found == bounds[low + size]
        assert next_bound(shop.control, schema, high - low + 1, bounds[low], until=bounds[high]) is None


@pytest.mark.parametrize("key", KEYS)
def test_no_statement_needs_another_order_than_that_of_the_index(shop: Shop, key: str) -> None:
    create(shop, key)
    fill(shop, key, seed=3)
    bounds = sorted_bounds(shop, 1)
    schema, sent = shop.instance("t").schema, list[str]()
    look = shop.control.row

    def row(sql: str, *values: object, doing: str) -> Any:
        sent.append(sql)
        return look(sql, *values, doing=doing)

    with patch.object(shop.control, "row", row):
        last_bound(shop.control, schema)
        for last in (None, *bounds):
            next_bound(shop.control, schema, 4, last, until=bounds[-1])
    inner = {found[1] for sql in sent if (found := re.search(r"\((SELECT TOP \(\?\) .*?)\) AS [kn]\b", sql))}
    assert len(inner) > len(names(key))
    assert [sql for sql in inner if sorts(sql, key)] == []
    assert sorts(KeyWalk(shop.control, schema).first(WHOLE), key), "the judge knows the statement that was at fault"


def sorts(sql: str, key: str) -> bool:
    """Whether SQLite sorts for a statement, on a table with such a key."""
    with sqlite3.connect(":memory:") as judge:
        judge.execute("ATTACH ':memory:' AS dbo")
        judge.execute(f"CREATE TABLE dbo.t ({', '.join(f'{name} int' for name in names(key))}, note int)")
        judge.execute(f"CREATE UNIQUE INDEX dbo.u ON t ({key})")
        plain = sql.replace("TOP (?) ", "")
        for name in re.findall(r"\[(\w)\] (?:=|IS NULL)", plain):  # SQL Server seeks by equality, SQLite by either.
            plain = re.sub(rf" AND \[{name}\] (> CAST\(\? AS int\)|IS NOT NULL)", "", plain)
        plan = judge.execute(f"EXPLAIN QUERY PLAN {plain}", ["1"] * plain.count("?"))
        return any("TEMP B-TREE" in step[3] for step in plan)


@pytest.mark.parametrize("key", ["a, b DESC", "a DESC, b, c DESC"])
def test_keys_are_placed_in_the_ranges_that_read_their_rows(
    shop: Shop, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_order, "PARAMETERS", 12)
    create(shop, key)
    fill(shop, key, seed=1)
    schema, session = shop.instance("t").schema, SqlServerCheckSession(shop.control, shop.connection)
    ranges = session.ranges(schema, 2)
    read = [(texts[: len(schema.keys)], number) for number, chunk in enumerate(ranges)
            for texts in session.rows(schema, chunk, keys=schema.keys)]  # fmt: skip
    assert session.places(schema, [key for key, _ in read], ranges) == [number for _, number in read]


@pytest.mark.parametrize(
    ("find", "gone", "expected"),
    [
        (last_bound, "a = 2", ("1", "3")),
        (last_bound, "a = 2 AND b = 1", ("2", "0")),
        (partial(next_bound, rows=4, last=None), "a = 1", ("2", "1")),
        (partial(next_bound, rows=4, last=None), "a = 1 AND b <> 2", ("1", "2")),
    ],
)
def test_a_key_is_found_although_rows_with_its_first_value_go_meanwhile(
    shop: Shop, find: Callable[..., Bound | None], gone: str, expected: Bound
) -> None:
    """Behind the look for the value: no answer would stand for the end of the table."""
    create(shop, "a, b DESC")
    shop.run("INSERT dbo.t VALUES (0, 0, 5), (0, 4, 5), (1, 1, 5), (1, 2, 5), (1, 3, 5), (2, 0, 5), (2, 1, 5)")
    schema, look, sent = shop.instance("t").schema, shop.control.row, list[str]()

    def row(sql: str, *values: object, doing: str) -> Any:
        found = look(sql, *values, doing=doing)
        if not sent:
            shop.run(f"DELETE dbo.t WHERE {gone}")
        sent.append(sql)
        return found

    with patch.object(shop.control, "row", row):
        assert find(shop.control, schema) == expected


@pytest.mark.parametrize("key", ["id, place DESC", "id DESC, place"])
def test_a_partitioned_key_in_both_directions_is_walked_column_by_column_too(shop: Shop, key: str) -> None:
    shop.run(
        "CREATE PARTITION FUNCTION quarters (int) AS RANGE RIGHT FOR VALUES (1, 2, 3)",
        "CREATE PARTITION SCHEME places AS PARTITION quarters ALL TO ([PRIMARY])",
        f"CREATE TABLE dbo.t (id int NOT NULL, place int NULL, UNIQUE CLUSTERED ({key})) ON places (place)",
    )
    shop.enable("t")
    every = [(number, place) for number in range(7) for place in (None, 0, 1, 2, 3) if (number + (place or 0)) % 3]
    shop.run("INSERT dbo.t VALUES " + ", ".join(f"({a}, {'NULL' if b is None else b})" for a, b in every))
    shop.scan()
    schema = shop.instance("t").schema
    walk = walk_of(KeyWalk(shop.control, schema))
    assert isinstance(walk, MixedWalk)
    assert isinstance(walk.walk, PartitionedWalk)
    assert last_bound(shop.control, schema) == sorted_bounds(shop, 1)[-1]
    for size in (1, 4, 9):
        read = [[tuple(row["after"].values()) for row in rows(shop.chunk("t", chunk))]
                for chunk in plan_chunks(shop.control, schema, size)]  # fmt: skip
        assert sorted(str(row) for part in read for row in part) == sorted(map(str, every))
        assert all(len(part) <= size for part in read)


@pytest.mark.parametrize(
    ("key", "more"),
    [
        pytest.param("a, b", (), id="ascending"),
        pytest.param("a DESC, b DESC", (), id="descending"),
        pytest.param("a, b DESC", ("CREATE INDEX i ON dbo.t (a, b)",), id="another index in one direction"),
    ],
)
def test_a_key_in_one_direction_is_walked_as_a_whole(shop: Shop, key: str, more: Sequence[str]) -> None:
    create(shop, key)
    shop.run(*more)
    assert isinstance(walk_of(KeyWalk(shop.control, shop.instance("t").schema)), KeyWalk)


@pytest.mark.parametrize("more", ["CREATE INDEX i ON dbo.t (a)", "CREATE INDEX i ON dbo.t (a, b) WHERE a > 1"])
def test_an_index_without_the_whole_key_or_without_all_rows_gives_no_order(shop: Shop, more: str) -> None:
    create(shop, "a, b DESC")
    shop.run(more)
    assert isinstance(walk_of(KeyWalk(shop.control, shop.instance("t").schema)), MixedWalk)


def test_a_key_without_an_index_is_walked_as_a_whole(shop: Shop) -> None:
    """Such as columns of `message.key.columns`: in any way the server sorts, and once is enough."""
    create(shop, "a, b DESC")
    schema = shop.instance("t").schema.keyed_by(["b", "a"])
    assert isinstance(walk_of(KeyWalk(shop.control, schema)), KeyWalk)


def test_a_step_with_a_condition_counts_only_its_rows(shop: Shop) -> None:
    create(shop, "a, b DESC")
    shop.run("INSERT dbo.t VALUES (1, 1, 5), (1, 2, 6), (1, 3, 5), (2, 1, 6), (2, 2, 5), (3, 1, 5)")
    schema = shop.instance("t").schema
    assert next_bound(shop.control, schema, 2, None, condition="t.note = 5") == ("1", "3")
    assert next_bound(shop.control, schema, 2, ("1", "3"), condition="t.note = 5") == ("3", "1")
    assert last_bound(shop.control, schema, "t.note = 6") == ("2", "1")
