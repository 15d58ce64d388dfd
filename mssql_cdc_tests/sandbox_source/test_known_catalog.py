"""The captured tables are read again when one of them may have changed, and only then."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.schema import TableId
from mssql_cdc.source.sqlserver import catalog
from mssql_cdc.source.sqlserver.catalog import KnownCatalog, captured_tables
from mssql_cdc.source.sqlserver.positions import minima
from mssql_cdc_tests.sandbox_source.kit import Shop

CHANGES = {
    "column added": ["ALTER TABLE dbo.t ADD more int NULL"],
    "column altered": ["ALTER TABLE dbo.t ALTER COLUMN c nvarchar(30) NULL"],
    "column dropped": ["ALTER TABLE dbo.t DROP COLUMN c"],
    "default": ["ALTER TABLE dbo.t ADD CONSTRAINT d DEFAULT N'x' FOR c"],
    "index created": ["CREATE UNIQUE INDEX i ON dbo.t (id)"],
    "index disabled": ["CREATE UNIQUE INDEX i ON dbo.t (id)", "ALTER INDEX i ON dbo.t DISABLE"],
    "index dropped": ["CREATE UNIQUE INDEX i ON dbo.t (id)", "DROP INDEX i ON dbo.t"],
    "renamed": ["EXEC sp_rename N'dbo.t', N'u'"],
    "moved": ["EXEC('CREATE SCHEMA other')", "ALTER SCHEMA other TRANSFER dbo.t"],
    "second instance": ["EXEC sys.sp_cdc_enable_table N'dbo', N't', @capture_instance = N't2', @role_name = NULL"],
    "disabled": ["EXEC sys.sp_cdc_disable_table N'dbo', N't', N'dbo_t'"],
    "another table": [
        "CREATE TABLE dbo.v (id int NOT NULL PRIMARY KEY)",
        "EXEC sys.sp_cdc_enable_table N'dbo', N'v', @role_name = NULL",
    ],
    "dropped and made anew": [
        "DROP TABLE dbo.t",
        "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)",
        "EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL",
    ],
}


def known_tables(known: KnownCatalog, shop: Shop) -> list[Any]:
    problems: dict[TableId, str] = {}
    found: list[Any] = known.tables(shop.control, shop.connector.filters, problems)
    return [*found, problems]


def read_anew(shop: Shop) -> list[Any]:
    problems: dict[TableId, str] = {}
    found: list[Any] = captured_tables(shop.control, shop.connector.filters, problems=problems)
    return [*found, problems]


@pytest.mark.parametrize("statements", CHANGES.values(), ids=CHANGES)
def test_a_change_of_a_captured_table_is_seen(shop: Shop, statements: list[str]) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    shop.scan()
    known = KnownCatalog()
    for statement in statements:
        known_tables(known, shop)
        shop.run(statement)
    shop.scan()

    assert known_tables(known, shop) == read_anew(shop)


def test_tables_without_a_change_are_not_read_again(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    shop.scan()
    known = KnownCatalog()
    first = known_tables(known, shop)
    shop.run("INSERT dbo.t VALUES (1, N'x')")
    shop.scan()

    with patch.object(catalog, "captured_tables", side_effect=AssertionError("read again")):
        assert known_tables(known, shop) == first


def test_tables_are_read_again_after_a_while(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    shop.scan()
    known = KnownCatalog()
    first = known_tables(known, shop)

    with (
        patch.object(catalog.time, "monotonic", return_value=catalog.time.monotonic() + 61),
        patch.object(catalog, "captured_tables", return_value=[]) as again,
    ):
        assert known_tables(known, shop) == [{}]
    assert again.called
    assert first != [{}]


def test_minima_are_asked_again_only_when_an_instance_has_changed(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    shop.run("INSERT dbo.t VALUES (1, N'x')")
    shop.scan()
    known = KnownCatalog()
    known_tables(known, shop)
    first = known.minima(shop.control)

    known_tables(known, shop)
    with patch.object(catalog, "minima", side_effect=AssertionError("asked again")):
        assert known.minima(shop.control) == known.minima_now(shop.control) == first

    shop.run("INSERT dbo.t VALUES (2, N'x')")
    kept = shop.scan()
    shop.run(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_t', 0x{kept.raw.hex()}, 5000")
    assert known.minima_now(shop.control) == {**first, "dbo_t": kept}
    known_tables(known, shop)
    assert known.minima(shop.control) == {**first, "dbo_t": kept} == minima(shop.control)


def test_a_minimum_that_is_not_there_yet_is_asked_for_again(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    known = KnownCatalog()
    known_tables(known, shop)
    with patch.object(catalog, "minima", return_value={"dbo_t": None}):
        assert known.minima(shop.control) == {"dbo_t": None}

    shop.scan()
    known_tables(known, shop)
    assert known.minima(shop.control) == minima(shop.control) != {"dbo_t": None}
