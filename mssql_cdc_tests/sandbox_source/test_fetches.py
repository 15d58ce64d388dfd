"""A fetch is bounded by the bytes that come, whatever came before (rule E29, architecture §7)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mssql_cdc.errors import SourceError
from mssql_cdc.schema import Column, SqlServerType
from mssql_cdc.source.sqlserver.bulk import open_bulk, raw_batch
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc_tests.sandbox_source.kit import Shop

MIB = 1024 * 1024
BODY = [pa.field("n", pa.int32()), pa.field("body", pa.binary())]


def fetched(shop: Shop, size: str, many: int, *, fetch_rows: int | None = None) -> list[pa.RecordBatch]:
    """What comes of `many` rows with a document of `size` bytes (T-SQL over `value`; NULL: none)."""
    body = f"CAST(REPLICATE(CAST('x' AS varchar(max)), {size}) AS varbinary(max))"
    sql = f"SELECT CAST(value AS int) AS n, {body} AS body FROM GENERATE_SERIES(1, {many}) ORDER BY value"
    with open_bulk(shop.connection, shop.catalog, by_rows=True, fetch_rows=fetch_rows) as opened:
        found = list(opened.read(sql, BODY, doing="testing"))
    assert [n for batch in found for n in batch.column("n").to_pylist()] == list(range(1, many + 1))
    return found


def test_a_fetch_is_bounded_by_its_bytes_when_large_values_follow_small_ones(shop: Shop) -> None:
    """Review of the readers, 1: 64 NULLs let 4,096 documents be fetched at once, of whatever size."""
    found = fetched(shop, "CASE WHEN value > 64 THEN 20000 END", 1_500)
    assert max(batch.nbytes for batch in found) < 4 * MIB + 30_000
    assert len(found) < 12


def test_a_fetch_is_bounded_by_its_bytes_from_its_first_row(shop: Shop) -> None:
    """Review of the readers, 1: the first 64 rows of a statement were one fetch, of whatever size."""
    found = fetched(shop, f"CASE WHEN value > 0 THEN {MIB} END", 64)
    assert {batch.num_rows for batch in found} == {4}


def test_a_fetch_is_bounded_by_its_rows_as_well(shop: Shop) -> None:
    assert [batch.num_rows for batch in fetched(shop, "NULL", 5_000)] == [4_096, 904]
    assert [batch.num_rows for batch in fetched(shop, "NULL", 5, fetch_rows=2)] == [2, 2, 1]


def test_a_value_that_arrow_cannot_hold_is_an_error_that_names_the_column() -> None:
    """SQL Server's largest value has 2**31 - 1 bytes; these are zero, and take no memory."""
    fields = RowPlan.of([Column("body", SqlServerType("varbinary", length=-1))]).raw_fields()
    with pytest.raises(SourceError, match=r"'body'.*2,147,483,647 bytes.*while testing"):
        raw_batch([(bytes(2**31 - 1), 2**31 - 1)], fields, doing="testing")
