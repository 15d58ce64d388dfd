"""A signal table whose columns are not read as they are is an error that names the property (SIG-02, SIG-03)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.schema import Column, SqlServerType, TableId
from mssql_cdc.source.sqlserver.signal_table import signal_table
from mssql_cdc.source.values import CapturedTable
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.source.raw import instance, schema

NAMED = {"database.names": "shop", "signal.data.collection": "shop.dbo.signals"}
COLUMNS = ("id", "type", "data", "note")


def found(properties: dict[str, object], *, captured: tuple[str, ...] = COLUMNS) -> CapturedTable | None:
    """What is read as the signal table, with the columns that the filters leave out marked as the catalog does."""
    connector = connector_with(NAMED | properties)
    name = TableId("shop", "dbo", "signals")
    columns = [
        Column(
            one, SqlServerType("varchar", length=2048), excluded=not connector.filters.columns.matches(*name.parts, one)
        )
        for one in captured
    ]
    table = replace(schema(*columns, key=("id",)), table_id=name)
    return signal_table(connector, "shop", [CapturedTable(name, 5, (instance(table),))])


@pytest.mark.feature("SIG-03", "FLT-05")
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"column.exclude.list": r".*\.note"},
        {"column.include.list": r"dbo\.orders\..*,dbo\.signals\.(id|type|data)"},
        {"column.truncate.to.10.chars": r".*\.data"},  # Only a signal that is longer is another one.
        {"column.mask.with.5.chars": r".*\.(id|note)"},
    ],
)
def test_a_signal_table_is_read_whatever_filters_make_of_its_other_columns(properties: dict[str, object]):
    assert found(properties) is not None


@pytest.mark.feature("SIG-03", "FLT-05")
@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"column.exclude.list": r".*\.data"}, "column.exclude.list leaves out its column data"),
        ({"column.exclude.list": r"dbo\.signals\.(id|type)"}, "column.exclude.list leaves out its columns id, type"),
        ({"column.include.list": r"dbo\.orders\..*"}, "column.include.list leaves out its columns id, type, data"),
        ({"column.mask.with.5.chars": r".*\.data"}, "column.mask.with.5.chars masks its column data"),
        ({"column.mask.hash.v2.SHA-256.with.salt.secretsalt": r".*\.type"}, "masks its column type"),
    ],
)
def test_a_filter_that_reaches_its_columns_is_an_error_that_names_the_property(
    properties: dict[str, object], said: str
):
    """The first signal raised IndexError at each start, or the fourth column was read as the data."""
    with pytest.raises(ConfigurationError) as caught:
        found(properties)
    assert said in str(caught.value)
    assert "secretsalt" not in str(caught.value)


@pytest.mark.feature("SIG-03")
def test_a_signal_table_with_two_captured_columns_is_an_error():
    with pytest.raises(ConfigurationError, match="has 2 captured columns"):
        found({}, captured=("id", "type"))
