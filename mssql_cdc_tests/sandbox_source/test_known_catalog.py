"""The captured tables are read again when one of them may have changed, and only then."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.errors import SourceUnavailableError
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

    shop.run("WAITFOR DELAY '00:00:00.020'", "INSERT dbo.t VALUES (2, N'x')")  # Cleanup compares times.
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


def changed_behind(shop: Shop, behind: str, change: Callable[[], None]) -> Any:
    """Something changes behind each statement that does this."""
    asked = shop.control.rows

    def rows(sql: str, *parameters: Any, doing: str) -> Any:
        found = asked(sql, *parameters, doing=doing)
        if doing == behind:
            change()
        return found

    return patch.object(shop.control, "rows", rows)


@pytest.mark.parametrize(
    "behind", ["reading captured columns", "reading change tables' columns", "reading unique indexes"]
)
def test_an_instance_that_comes_while_the_catalog_is_read_is_whole(shop: Shop, behind: str) -> None:
    """The statements are not one moment: its columns were missing, and a filter was blamed for that."""
    for name in ("t", "u"):
        shop.create(name, "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    shop.scan()
    changes = iter([lambda: shop.enable("t", "second")])

    def enable() -> None:
        next(changes, lambda: None)()

    with changed_behind(shop, behind, enable):
        found = known_tables(KnownCatalog(), shop)

    assert found == read_anew(shop)
    names = {table.table_id.name: [one.name for one in table.instances] for table in found[:-1]}
    assert (names["t"], names["u"]) == (["dbo_t", "second"], ["dbo_u"])
    assert found[-1] == {}


def test_a_catalog_that_never_stays_the_same_is_read_by_the_next_look(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    shop.scan()
    names = itertools.count()

    def alter() -> None:
        shop.run(f"ALTER TABLE dbo.t ADD c{next(names)} int NULL")

    known = KnownCatalog()
    with (
        changed_behind(shop, "reading captured columns", alter),
        pytest.raises(SourceUnavailableError, match="changed while they were read"),
    ):
        known_tables(known, shop)
    assert known_tables(known, shop) == read_anew(shop)


def test_the_catalog_is_asked_as_often_as_it_has_statements(shop: Shop) -> None:
    """What is the same before and after costs no further statement; nothing new costs two."""
    shop.create("t", "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    shop.scan()
    known, asked, rows = KnownCatalog(), list[str](), shop.control.rows

    def counted(sql: str, *parameters: Any, doing: str) -> Any:
        asked.append(doing)
        return rows(sql, *parameters, doing=doing)

    for expected in (10, 2):
        asked.clear()
        with patch.object(shop.control, "rows", counted):
            known_tables(known, shop)
        assert len(asked) == expected, asked
