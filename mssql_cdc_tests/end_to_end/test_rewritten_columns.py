"""An ALTER COLUMN that rewrites values writes no change row: the table is read again (D24)."""

from __future__ import annotations

from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def create(place: Place, more: str = "") -> None:
    place.create("orders", f"id int NOT NULL{more}, price decimal(9, 3) NULL, code char(3) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, 1.234, 'a'), (2, 2.0, 'b')")
    place.settle()
    assert place.catch_up() == 0


def alter(place: Place) -> None:
    place.sql(
        "ALTER TABLE dbo.orders ALTER COLUMN price decimal(7, 1) NULL",
        "ALTER TABLE dbo.orders ALTER COLUMN code char(5) NULL",
        "INSERT INTO dbo.orders VALUES (3, 3.5, 'c')",
    )
    place.settle()


def asked(place: Place) -> list[dict[str, Any]]:
    return own_rows(place, "signals", "SELECT id, channel, data FROM t")


def test_values_that_an_alter_rewrote_are_read_once(place: Place):
    create(place, " PRIMARY KEY")
    alter(place)
    for _ in range(2):
        assert place.catch_up() == 0
        place.sql("UPDATE dbo.orders SET price = price + 1 WHERE id = 3")
        place.settle()
    assert place.catch_up() == 0
    rows = place.query("SELECT id, CAST(price AS DOUBLE) AS price, code FROM t ORDER BY id", "orders")
    assert [(row["id"], row["price"], row["code"]) for row in rows] == [
        (1, 1.2, "a    "),
        (2, 2.0, "b    "),
        (3, 5.5, "c    "),
    ]
    (signal,) = asked(place)
    assert signal["id"].startswith("altered-columns-")
    assert place.check() == 0


def test_a_table_without_a_key_says_what_to_do(place: Place, capsys: pytest.CaptureFixture[str]):
    create(place)
    alter(place)
    assert place.catch_up() == 0
    assert "take a blocking snapshot to read them" in capsys.readouterr().err
    (signal,) = asked(place)
    assert signal["id"].startswith("altered-columns-")


def test_the_property_turns_it_off(place: Place):
    place.configure(incremental_snapshot_added_columns="false")
    create(place, " PRIMARY KEY")
    alter(place)
    assert place.catch_up() == 0
    assert asked(place) == []


KINDS = {
    "padded": ("char(3)", "char(5)", "'a'"),
    "replaced": ("nvarchar(5)", "varchar(5)", "N'aż'"),
    "finer": ("datetime", "datetime2(7)", "'2026-01-02T03:04:05.003'"),
    "rounded": ("decimal(9, 3)", "decimal(7, 1)", "1.234"),
}


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        pytest.param("padded", "true", id="read again"),
        pytest.param("rounded", "false", id="never read again"),
        *(pytest.param(kind, "false", id=kind, marks=pytest.mark.long) for kind in ("padded", "replaced", "finer")),
    ],
)
def test_a_row_that_changes_after_the_alter_breaks_no_story(place: Place, kind: str, wanted: str):
    """Its before image has the rewritten value, the image that precedes it the one of before."""
    place.configure(incremental_snapshot_added_columns=wanted)
    before, after, value = KINDS[kind]
    place.create("orders", f"id int NOT NULL PRIMARY KEY, n int NULL, v {before} NULL")
    place.sql(f"INSERT INTO dbo.orders VALUES (1, 1, {value})")
    place.settle()
    assert place.catch_up() == 0
    place.sql("UPDATE dbo.orders SET n = 2")  # Captured with the former type, read with the new one.
    place.sql(f"ALTER TABLE dbo.orders ALTER COLUMN v {after} NULL", "UPDATE dbo.orders SET n = 3")
    place.settle()
    assert place.catch_up() == 0
    assert place.check() == 0
    place.sql("UPDATE dbo.orders SET n = 4", "DELETE FROM dbo.orders")
    place.settle()
    assert place.catch_up() == 0
    assert place.check() == 0
