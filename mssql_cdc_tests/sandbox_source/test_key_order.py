"""The server tells which key range a key falls into: the one that reads its row."""

from __future__ import annotations

import pytest

from mssql_cdc.source.sqlserver import key_order
from mssql_cdc.source.sqlserver.check_session import SqlServerCheckSession
from mssql_cdc.source.values import Buckets
from mssql_cdc_tests.sandbox_source.kit import Shop
from mssql_cdc_tests.sandbox_source.test_chunks import KEYS


@pytest.mark.parametrize("parameters", [2_000, 6])
@pytest.mark.parametrize(("columns", "key", "values"), KEYS, ids=[columns for columns, *_ in KEYS])
def test_a_key_is_placed_in_the_range_that_reads_its_row(
    shop: Shop, columns: str, key: str, values: list[str], parameters: int, monkeypatch: pytest.MonkeyPatch
):
    """With few parameters a statement, keys are placed among some of the edges first."""
    monkeypatch.setattr(key_order, "PARAMETERS", parameters * len(key.split(",")))
    shop.create("t", f"{columns}, CONSTRAINT pk PRIMARY KEY ({key})")
    shop.run(f"INSERT dbo.t VALUES {', '.join(values)}")
    _require_places(shop)


def test_a_key_with_null_is_placed_in_the_range_that_reads_its_row(shop: Shop):
    shop.create("t", "a int NULL, b int NOT NULL, CONSTRAINT u UNIQUE (a, b)")
    shop.run("INSERT dbo.t VALUES (NULL, 1), (NULL, 2), (NULL, 3), (1, 1), (1, 2), (2, 1)")
    _require_places(shop)


def _require_places(shop: Shop) -> None:
    schema = shop.instance("t").schema
    session = SqlServerCheckSession(shop.control, shop.connection)
    ranges = session.ranges(schema, 2)
    assert len(ranges) > 2
    read = [
        (texts, number)
        for number, chunk in enumerate(ranges)
        for texts in session.rows(schema, chunk, keys=schema.keys)
    ]
    names = [column.name for column in schema.columns]
    keys = [tuple(texts[names.index(name)] for name in schema.key_columns) for texts, _ in read]
    assert session.places(schema, keys, ranges) == [number for _, number in read]


def test_rows_of_buckets_and_of_a_range_are_those_of_both(shop: Shop):
    """The statement's text is the same for any buckets."""
    shop.create("t", "a int NOT NULL, b varchar(5) NOT NULL, PRIMARY KEY (a, b)")
    shop.run(f"INSERT dbo.t VALUES {', '.join(f'({n // 4}, {n % 4})' for n in range(30))}")
    schema = shop.instance("t").schema
    session = SqlServerCheckSession(shop.control, shop.connection)
    for chunk in session.ranges(schema, 7):
        whole = sorted(session.rows(schema, chunk, keys=schema.keys))
        by_bucket = [
            sorted(session.rows(schema, chunk, keys=schema.keys, buckets=Buckets(4, frozenset(numbers))))
            for numbers in ({0, 3}, {1, 2}, set())
        ]
        assert sorted(by_bucket[0] + by_bucket[1]) == whole
        assert by_bucket[2] == []
        sums = session.checksums(schema, chunk, 4)
        assert sums is not None
        assert sum(sums[number].rows for number in (0, 3) if number in sums) == len(by_bucket[0])
