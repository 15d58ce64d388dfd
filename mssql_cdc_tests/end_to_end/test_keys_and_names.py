"""Keys and names that change at the source: no current table is emptied or frozen, no change is passed over (B15)."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def caught_up(place: Place) -> None:
    place.settle()
    assert place.catch_up() == 0
    assert place.check() == 0


def reads(place: Place, table: str) -> int:
    """The rows that snapshots have read."""
    return place.query("SELECT COUNT(*) AS n FROM t WHERE op = 'r'", table, "changes")[0]["n"]


def test_a_key_of_another_type_fills_the_current_table_again(orders: Place):
    """Review, bugs 5 and 14: the usual way to a longer key."""
    place = orders
    place.configure(snapshot_mode="when_needed")
    place.sql("CREATE TABLE dbo.prices (id char(4) NOT NULL CONSTRAINT prices_key PRIMARY KEY, name nvarchar(50))")
    place.enable("prices")
    place.sql("INSERT INTO dbo.prices VALUES ('a', N'one'), ('b', N'two'), ('c', N'three')")
    caught_up(place)
    place.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'prices', @capture_instance = N'all'",
        "ALTER TABLE dbo.prices DROP CONSTRAINT prices_key",
        "ALTER TABLE dbo.prices ALTER COLUMN id char(8) NOT NULL",
        "ALTER TABLE dbo.prices ADD CONSTRAINT prices_key PRIMARY KEY (id)",
        "DELETE FROM dbo.prices WHERE id = 'a'",
        "UPDATE dbo.prices SET name = N'changed' WHERE id = 'b'",
    )
    place.enable("prices")
    caught_up(place)
    assert place.query("SELECT name FROM t ORDER BY name", "prices") == [{"name": "changed"}, {"name": "three"}]


def test_an_index_beside_the_key_changes_nothing_and_one_that_was_disabled_fills_again(place: Place):
    """Review, bugs 5, 6 and 18."""
    place.sql("CREATE TABLE dbo.items (a int NOT NULL, b int NOT NULL, name nvarchar(50) NULL)")
    place.sql("CREATE UNIQUE INDEX items_b ON dbo.items (b)")
    place.enable("items")
    place.sql("INSERT INTO dbo.items VALUES (1, 10, N'one'), (2, 20, N'two'), (3, 30, N'three')")
    caught_up(place)
    before = reads(place, "items")
    place.sql("CREATE UNIQUE CLUSTERED INDEX items_a ON dbo.items (a)", "UPDATE dbo.items SET name = N'x' WHERE a = 1")
    caught_up(place)
    assert reads(place, "items") == before
    place.sql("DROP INDEX items_a ON dbo.items", "ALTER INDEX items_b ON dbo.items DISABLE")
    place.sql("DELETE FROM dbo.items WHERE a = 2", "INSERT INTO dbo.items VALUES (4, 40, N'four')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("ALTER INDEX items_b ON dbo.items REBUILD")
    caught_up(place)
    assert place.query("SELECT name FROM t ORDER BY a", "items") == [{"name": name} for name in ("x", "three", "four")]


@pytest.mark.parametrize("named", [pytest.param("PRIMARY KEY", marks=pytest.mark.long), "UNIQUE"])
def test_a_key_that_was_away_between_two_looks_fills_the_current_table_again(place: Place, named: str):
    """Two rows had the same key meanwhile, and one of them went: the change log cannot tell which one is left."""
    key = f"ALTER TABLE dbo.items ADD CONSTRAINT items_key {named} (id)"
    place.sql("CREATE TABLE dbo.items (id int NOT NULL, name nvarchar(50) NULL)")
    place.enable("items")
    place.sql(key, "INSERT INTO dbo.items VALUES (1, N'one'), (2, N'two')")  # Not an index that CDC protects.
    caught_up(place)
    before = reads(place, "items")
    place.sql("UPDATE dbo.items SET name = N'changed' WHERE id = 2")
    caught_up(place)
    assert reads(place, "items") == before
    place.sql(
        "ALTER TABLE dbo.items DROP CONSTRAINT items_key",
        "INSERT INTO dbo.items VALUES (1, N'another one')",
        "DELETE FROM dbo.items WHERE name = N'one'",
        key,
    )
    caught_up(place)
    assert place.query("SELECT name FROM t ORDER BY id", "items") == [{"name": "another one"}, {"name": "changed"}]
    before = reads(place, "items")
    place.sql("UPDATE dbo.items SET name = N'again' WHERE id = 1")
    caught_up(place)
    assert reads(place, "items") == before


def test_names_that_are_exchanged_or_taken_over_lose_nothing(orders: Place):
    """Review, bug 24: the last changes under the old name were in no change log, and no gap said so."""
    place = orders
    place.create("fresh", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.fresh VALUES (7, N'seven')")
    caught_up(place)
    place.sql(
        "UPDATE dbo.orders SET name = N'last as orders' WHERE id = 1",
        "EXEC sp_rename N'dbo.orders', N'orders_old'",
        "EXEC sp_rename N'dbo.fresh', N'orders'",
        "INSERT INTO dbo.orders VALUES (8, N'eight')",
        "UPDATE dbo.orders_old SET name = N'later' WHERE id = 2",
    )
    caught_up(place)
    place.create("fresh", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL", instance="fresh_2")
    place.sql("INSERT INTO dbo.fresh VALUES (9, N'nine')")
    caught_up(place)
    sql = "SELECT op, after.name AS name FROM t WHERE op <> 'r' ORDER BY _pos"
    found = place.query(sql, "orders", "changes")  # The folder of what is orders_old now.
    assert found == [{"op": "u", "name": "last as orders"}, {"op": "u", "name": "later"}]
    assert place.query(sql, "fresh", "changes") == [{"op": "c", "name": "eight"}]
