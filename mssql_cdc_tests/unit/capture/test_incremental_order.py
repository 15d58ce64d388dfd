"""Which columns order the chunks of an incremental snapshot, and which are refused (INC-05, INC-07)."""

from __future__ import annotations

import pytest

from mssql_cdc.capture.incremental.chunks import ordered
from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.lake_kit import column, orders
from mssql_cdc_tests.unit.config.samples import connector_with

COLUMNS = (column("id", "int"), column("name", "nvarchar", length=50), column("twice", "int", computed=True))
REFUSED = r"orders cannot be read in the order of twice: .*computed.*name another one in "


@pytest.mark.feature("INC-05")
def test_a_computed_column_cannot_tell_the_rows_of_a_table_without_a_key_apart():
    """Events have no value of it, so that a row that has changed since it was staged counted as untouched."""
    with pytest.raises(ConfigurationError, match=f"{REFUSED}surrogate-key"):
        ordered(connector_with({}), orders(*COLUMNS, keys=()), "twice")


@pytest.mark.feature("INC-07")
def test_a_computed_column_of_a_configured_key_is_refused_for_a_table_without_one():
    connector = connector_with({"message.key.columns": "dbo.orders:id,twice"})
    with pytest.raises(ConfigurationError, match=rf"{REFUSED}message\.key\.columns"):
        ordered(connector, orders(*COLUMNS, keys=()), None)


@pytest.mark.feature("INC-05")
def test_a_computed_column_may_order_the_chunks_of_a_table_with_a_key():
    """There the key tells which rows have changed."""
    assert ordered(connector_with({}), orders(*COLUMNS), "twice").key_columns == ("twice",)
