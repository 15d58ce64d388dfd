"""The catalogue's own views are objects with columns, apart from the database's [doc: sys.system_objects and more]."""

from __future__ import annotations

import pytest

from tests.cdc.client import World
from tests.cdc.conftest import Make

COLUMNS_OF_SCHEMAS = (
    "SELECT c.name FROM {columns} c JOIN {objects} o ON o.object_id = c.object_id "
    "WHERE o.name = 'schemas' AND o.schema_id = SCHEMA_ID('sys') ORDER BY c.column_id"
)


@pytest.mark.parametrize("which", ["system", "all"])
def test_columns_of_the_catalogue_are_in_the_system_views(world: World, which: str) -> None:
    query = COLUMNS_OF_SCHEMAS.format(columns=f"sys.{which}_columns", objects=f"sys.{which}_objects")
    assert world.rows(query) == [("name",), ("schema_id",), ("principal_id",)]


def test_what_users_make_is_among_all_and_not_among_those_of_the_system(world: World) -> None:
    world.execute("CREATE TABLE dbo.mine (a int, b int)")
    for things, found in (("system", 0), ("all", 1)):
        assert world.rows(f"SELECT COUNT(*) FROM sys.{things}_objects WHERE name = 'mine'") == [(found,)]
        columns = f"SELECT COUNT(*) FROM sys.{things}_columns WHERE object_id = OBJECT_ID('dbo.mine')"
        assert world.rows(columns) == [(2 * found,)]


@pytest.mark.parametrize("kind", ["objects", "columns", "views"])
def test_all_are_the_systems_and_the_users(world: World, kind: str) -> None:
    world.execute("CREATE TABLE dbo.mine (a int)")
    world.execute("CREATE VIEW dbo.seen AS SELECT a FROM dbo.mine")
    counts = ", ".join(f"(SELECT COUNT(*) FROM sys.{name})" for name in (f"all_{kind}", f"system_{kind}", kind))
    ((every, system, users),) = world.rows(f"SELECT {counts}")
    assert system > 0
    assert users > 0
    assert every == system + users


def test_ids_of_system_objects_are_below_zero_and_their_own(world: World) -> None:
    query = "SELECT MAX(object_id), COUNT(*) - COUNT(DISTINCT object_id) FROM sys.system_objects"
    ((highest, doubles),) = world.rows(query)
    assert highest < 0
    assert doubles == 0


@pytest.mark.parametrize(("version", "found"), [("2016", 0), ("2022", 1)])
def test_what_a_version_does_not_have_it_does_not_list(of_version: Make, version: str, found: int) -> None:
    query = (
        "SELECT COUNT(*) FROM sys.system_columns c JOIN sys.system_views v ON v.object_id = c.object_id "
        "WHERE v.name = 'databases' AND c.name = 'is_ledger_on'"
    )
    assert of_version(version).rows(query) == [(found,)]
