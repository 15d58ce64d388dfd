"""Hypothetical indexes, which the tuning advisor leaves behind when it is interrupted, enforce nothing."""

from __future__ import annotations

import pytest

from mssql_cdc.source.sqlserver import catalog_statements as statements
from mssql_cdc.source.sqlserver.check_session import SqlServerCheckSession
from mssql_cdc.source.sqlserver.structures import structures
from mssql_cdc_tests.sandbox_source.kit import Shop


@pytest.fixture
def duplicated(shop: Shop) -> Shop:
    """A table without a key, with rows that such an index would forbid."""
    shop.create("t", "a int NOT NULL, b int NOT NULL")
    shop.run(
        "CREATE UNIQUE INDEX _dta_index_t ON dbo.t (a) WITH (STATISTICS_ONLY = -1)",
        "INSERT dbo.t VALUES (1, 1), (1, 2)",
    )
    shop.scan()
    return shop


def test_they_are_no_keys(duplicated: Shop) -> None:
    found = duplicated.instance("t")
    assert (found.keys, found.schema.key_columns) == ((), ())
    assert [one.key_columns for one in structures(duplicated.control) if one.table_id.name == "t"] == [()]
    tables = SqlServerCheckSession(duplicated.control, duplicated.connection).tables()
    assert [one.unique for one in tables if one.table_id.name == "t"] == [()]
    states = statements.INDEX_STATES.format(tables="SELECT OBJECT_ID('dbo.t')")
    assert duplicated.control.rows(states, doing="asking for the states of indexes") == []
