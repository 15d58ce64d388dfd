"""Notices about a captured table."""

from __future__ import annotations

import pytest

from mssql_cdc.capture.notices import layout_notices, notices
from mssql_cdc.config import connector_from_mapping
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import CapturedTable, CaptureInstance
from mssql_cdc_tests.lake_kit import AT, ORDERS, column, lsn, orders
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with

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


@pytest.mark.parametrize(
    ("table", "databases", "said"),
    [
        ("dbo.orders", "shop", False),
        ("Shop.dbo.Orders", "shop,other", False),
        ("dbo.order", "shop", True),
        ("shop.dbo.order", "shop,other", True),
        ("other.dbo.order", "shop,other", False),
        ("dbo.order", "shop,other", False),
    ],
)
def test_a_layout_of_a_table_that_is_not_captured_is_named(table: str, databases: str, *, said: bool):
    name = f"delta.current.{table}.cluster.by"
    connector = connector_from_mapping("c", {**MINIMAL, "database.names": databases, name: "id"})
    found = list(layout_notices(connector, "shop", [TableId("shop", "dbo", "orders")]))
    expected = f"{name.lower()} has no effect: shop has no captured table of this name"
    assert found == ([expected] if said else [])


def test_a_table_whose_layout_two_names_give_takes_that_of_the_full_name():
    given = {"delta.current.dbo.orders.cluster.by": "a", "delta.current.shop.dbo.orders.cluster.by": "b"}
    connector = connector_from_mapping("c", {**MINIMAL, **given})
    assert connector.delta.layout_of("shop", "dbo", "orders").cluster_by == ("b",)
    assert connector.delta.layout_of("other", "dbo", "orders").cluster_by == ("a",)
    assert connector.delta.layout_of("shop", "dbo", "items").cluster_by == ()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("orders.partition.by", "a", "expected <schema>.<table>"),
        ("dbo.orders.partition.by", "a,b,A", "names A, a more than once"),
        ("dbo.orders.cluster.by", "a,b,c,d,e", "up to 4"),
        ("dbo.orders.partitioned.by", "a", "unknown property"),
    ],
)
def test_a_layout_that_means_nothing_is_a_problem_of_the_configuration(name: str, value: str, said: str):
    with pytest.raises(ConfigurationError, match=said):
        connector_from_mapping("c", {**MINIMAL, f"delta.current.{name}": value})


def test_a_table_is_partitioned_or_clustered():
    both = {"delta.current.dbo.orders.cluster.by": "a", "delta.current.dbo.orders.partition.by": "a"}
    with pytest.raises(ConfigurationError, match="cannot be set together with"):
        connector_from_mapping("c", {**MINIMAL, **both})
