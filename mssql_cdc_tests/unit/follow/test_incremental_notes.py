"""What notifications of incremental snapshots show of a key."""

from __future__ import annotations

from dataclasses import replace

from mssql_cdc.follow.incremental_notes import key_text, without_hidden
from mssql_cdc_tests.lake_kit import column, orders
from mssql_cdc_tests.unit.config.samples import connector_with

COLUMNS = (column("id", "int"), column("name", "nvarchar", length=50), column("note", "nvarchar", length=20))


def test_masked_and_excluded_columns_of_a_key_are_not_shown():
    connector = connector_with({"column.mask.with.3.chars": "dbo.orders.name"})
    by = orders(*COLUMNS[:2], replace(COLUMNS[2], excluded=True), keys=("id", "name", "note"))
    assert key_text(without_hidden(connector, by, ("7", "a", None))) == "7,***,***"


def test_a_key_without_hidden_columns_is_shown_whole():
    by = orders(*COLUMNS, keys=("id", "name"))
    assert key_text(without_hidden(connector_with({}), by, ("7", None))) == "7,<null>"
