"""Columns of alias types (CREATE TYPE … FROM), which `sys.types` hides from logins without a permission on the type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mssql_cdc.schema import TableSchema, TableStructure
from mssql_cdc.source.sqlserver.catalog import captured_tables
from mssql_cdc.source.sqlserver.check_session import SqlServerCheckSession
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc.source.sqlserver.structures import structures
from mssql_cdc_tests.sandbox_source.kit import Shop, rows

RIGHTS = ("SELECT ON SCHEMA::dbo", "SELECT ON SCHEMA::cdc", "VIEW DATABASE STATE")


@pytest.fixture
def reader(shop: Shop) -> Shop:
    """The shop of a login without a right on the types of `t`: parts of both keys have one, and a value."""
    shop.run("CREATE TYPE dbo.number FROM int NOT NULL", "CREATE TYPE dbo.word FROM nvarchar(20)")
    shop.create(
        "t",
        "a int NOT NULL, b dbo.number, c dbo.word NULL, s sysname NULL, h hierarchyid NULL, g geometry NULL, "
        "u int NOT NULL, v dbo.number, PRIMARY KEY (a, b), UNIQUE (u, v)",
    )
    shop.run("INSERT dbo.t VALUES (1, 2, N'c', N's', '/1/', NULL, 3, 4)")
    shop.scan()
    return shop.seen_by("reader", *RIGHTS)


def without_aliases(schema: TableSchema) -> TableSchema:
    return replace(schema, columns=tuple(replace(one, alias=None) for one in schema.columns))


def test_the_catalog_has_their_columns_and_keys(shop: Shop, reader: Shop) -> None:
    own = shop.instance("t")
    with control(reader.connection, shop.catalog) as opened:
        (found,) = (table.newest for table in captured_tables(opened) if table.table_id.name == "t")
    assert own.schema.key_columns == ("a", "b")
    assert {one.name: one.alias for one in own.schema.columns if one.alias} == {
        "b": "number", "c": "word", "s": "sysname", "v": "number"
    }  # fmt: skip
    assert without_aliases(found.schema) == without_aliases(own.schema)
    assert [one.columns for one in found.keys] == [one.columns for one in own.keys] == [("a", "b"), ("u", "v")]


def test_structures_have_their_columns_and_keys(shop: Shop, reader: Shop) -> None:
    def plain(found: list[TableStructure]) -> list[TableStructure]:
        return [replace(one, columns=tuple(replace(own, alias=None) for own in one.columns)) for one in found]

    with control(reader.connection, shop.catalog) as opened:
        assert plain(structures(opened)) == plain(structures(shop.control))


def test_a_check_sees_their_columns(shop: Shop, reader: Shop) -> None:
    with control(reader.connection, shop.catalog) as opened:
        found = SqlServerCheckSession(opened, reader.connection).tables()
    assert found == SqlServerCheckSession(shop.control, shop.connection).tables()


@pytest.mark.parametrize("by_function", [False, True])
def test_readers_find_their_columns_unchanged(shop: Shop, reader: Shop, *, by_function: bool) -> None:
    changes = reader.changes("t")
    if by_function:
        changes = replace(changes, instance=replace(changes.instance, change_table=None))
    assert [row["after"]["c"] for row in rows(changes)] == ["c"]
    assert [row["after"]["c"] for row in rows(reader.chunk("t"))] == ["c"]
