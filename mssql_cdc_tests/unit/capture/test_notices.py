"""Notices about a captured table."""

from __future__ import annotations

import pytest

from mssql_cdc.capture.notices import notices
from mssql_cdc.source.values import CapturedTable, CaptureInstance
from mssql_cdc_tests.lake_kit import AT, ORDERS, column, lsn, orders
from mssql_cdc_tests.unit.config.samples import connector_with

KINDS = {
    "n": "int", "d": "decimal", "at": "datetime2", "zoned": "datetimeoffset", "t": "time", "b": "varbinary",
    "text": "nvarchar", "v": "sql_variant", "g": "uniqueidentifier", "x": "xml",
}  # fmt: skip


def table(*warnings: str) -> CapturedTable:
    schema = orders(*(column(name, kind, length=9) for name, kind in KINDS.items()), keys=())
    instance = CaptureInstance("dbo_orders", 2, None, 1, AT, lsn(1), schema, (), warnings=warnings)
    return CapturedTable(ORDERS, 1, (instance,))


@pytest.mark.feature("FLT-07", "FLT-09")
@pytest.mark.parametrize("name", ["column.mask.with.3.chars", "column.mask.hash.v2.SHA-256.with.salt.s"])
def test_every_column_that_a_mask_names_but_does_not_hide_is_reported(name: str):
    found = notices(connector_with({name: "dbo.orders..*"}), table())
    assert [line.split("'")[1] for line in found] == ["n", "d", "at", "zoned", "t", "b"]
    assert all("is not masked" in line and "column.exclude.list" in line for line in found)


@pytest.mark.feature("FLT-06")
def test_bytes_are_truncated_and_therefore_not_reported():
    found = notices(connector_with({"column.truncate.to.3.chars": "dbo.orders.(b|n|text)"}), table())
    assert [line.split("'")[1] for line in found] == ["n"]


def test_without_a_mask_only_warnings_of_the_source_are_reported():
    connector = connector_with({})
    assert notices(connector, table()) == []
    assert notices(connector, table("column c is doubtful")) == ["column c is doubtful"]
