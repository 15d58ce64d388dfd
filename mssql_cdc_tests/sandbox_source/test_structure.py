"""A row is read under the structure that it is stored with, or the read fails and is planned anew (E26)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mssql_cdc.errors import SourceError, StaleStructureError
from mssql_cdc.source.sqlserver.structure import Structure
from mssql_cdc_tests.sandbox_source.kit import Shop, rows

WIDER = [
    ("nvarchar(10)", "nvarchar(30)"),
    ("varchar(10)", "varchar(30)"),
    ("varbinary(4)", "varbinary(8)"),
    ("decimal(8, 2)", "decimal(12, 4)"),
    ("int", "bigint"),
    ("int", "decimal(12, 2)"),
    ("real", "float"),
    ("date", "datetime2(7)"),
    ("datetime2(3)", "datetime2(7)"),
    ("time(0)", "time(7)"),
]
wider = pytest.mark.parametrize(("narrow", "wide"), WIDER, ids=[f"{a} to {b}" for a, b in WIDER])


@wider
def test_changes_of_a_column_that_was_altered_are_not_read_with_its_old_type(
    shop: Shop, narrow: str, wide: str
) -> None:
    """Review, bug 4: rows behind an ALTER COLUMN were cut to the lengths that were read before it."""
    shop.create("t", f"id int NOT NULL PRIMARY KEY, c {narrow} NULL")
    shop.run("INSERT dbo.t VALUES (1, NULL)")
    reader = shop.changes("t")
    shop.run(f"ALTER TABLE dbo.t ALTER COLUMN c {wide} NULL")
    shop.scan()

    with pytest.raises(StaleStructureError, match="'c' is"):
        rows(reader)
    assert rows(shop.changes("t"))[0]["after"] == {"id": 1, "c": None}


@pytest.mark.parametrize("column", ["nvarchar(10)", "nvarchar(10) NULL, body nvarchar(max)"])
def test_a_column_that_is_altered_between_two_pages_is_found(shop: Shop, column: str) -> None:
    shop.create("t", f"id int NOT NULL PRIMARY KEY, c {column} NULL")
    shop.run("INSERT dbo.t (id, c) VALUES (1, N'a'), (2, N'b'), (3, N'c'), (4, N'd')")
    batches = shop.changes("t", page_rows=1).read()
    next(batches)
    shop.run("ALTER TABLE dbo.t ALTER COLUMN c nvarchar(30) NULL")
    shop.scan()

    with pytest.raises(StaleStructureError, match="'c' is"):
        list(batches)


@wider
def test_a_chunk_of_a_column_that_was_altered_is_not_read_with_its_old_type(shop: Shop, narrow: str, wide: str) -> None:
    """Review, bug 3: a column that was widened between two groups of chunks."""
    shop.create("t", f"id int NOT NULL PRIMARY KEY, c {narrow} NULL")
    shop.run("INSERT dbo.t VALUES (1, NULL)")
    shop.scan()
    reader = shop.chunk("t")
    shop.run(f"ALTER TABLE dbo.t ALTER COLUMN c {wide} NULL")

    with pytest.raises(StaleStructureError, match="'c' is"):
        rows(reader)
    with pytest.raises(StaleStructureError, match="once capture has picked it up"):
        rows(shop.chunk("t"))
    shop.scan()
    assert rows(shop.chunk("t"))[0]["after"] == {"id": 1, "c": None}


@pytest.mark.parametrize("more", ["", ", body nvarchar(max) NULL"], ids=["arrays", "by rows"])
@pytest.mark.parametrize(
    ("narrow", "wide", "value"),
    [
        ("date", "datetime2(7)", "'2021-07-30 01:02:03'"),
        ("uniqueidentifier", "nvarchar(50)", "REPLICATE(N'A', 40)"),
        ("time(7)", "nvarchar(40)", "N'01:02:03.1234567 and more'"),
        ("decimal(8, 2)", "decimal(12, 4)", "1.2345"),
        ("real", "float", "0.1"),
    ],
    ids=["date", "uniqueidentifier", "time", "decimal", "real"],
)
def test_a_value_that_does_not_fit_is_an_error_although_the_structure_was_not_seen_to_change(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, narrow: str, wide: str, value: str, more: str
) -> None:
    """What the decoders see by themselves, whatever a driver does to a value that its buffer does not hold."""
    monkeypatch.setattr(Structure, "require_columns", lambda _self, _rows: None)
    shop.create("t", f"id int NOT NULL PRIMARY KEY, c {narrow} NULL{more}")
    shop.scan()
    reader = shop.chunk("t")
    shop.run(
        "ALTER TABLE dbo.t DROP COLUMN c", f"ALTER TABLE dbo.t ADD c {wide} NULL",
        f"INSERT dbo.t (id, c) VALUES (1, {value})",
    )  # fmt: skip
    with pytest.raises(StaleStructureError, match="'c' does not fit"):
        rows(reader)


def test_a_collation_that_was_altered_is_another_structure(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, c nvarchar(10) COLLATE Latin1_General_CI_AS NULL")
    shop.scan()
    reader = shop.chunk("t")
    shop.run("ALTER TABLE dbo.t ALTER COLUMN c nvarchar(10) COLLATE Polish_CS_AS NULL")

    with pytest.raises(StaleStructureError, match="Polish_CS_AS"):
        rows(reader)


@pytest.mark.parametrize("again", [False, True])
def test_a_captured_column_that_was_dropped_asks_for_a_new_instance(shop: Shop, again: bool) -> None:  # noqa: FBT001
    shop.create("t", "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    shop.run("ALTER TABLE dbo.t DROP COLUMN c", *(["ALTER TABLE dbo.t ADD c nvarchar(10) NULL"] if again else []))
    shop.scan()

    with pytest.raises(SourceError, match="enable a new capture instance") as error:
        rows(shop.chunk("t"))
    assert not error.value.retriable
    assert rows(shop.changes("t")) == []


DROPPED = [
    ["ALTER TABLE dbo.t DROP COLUMN c"],
    ["ALTER TABLE dbo.t DROP COLUMN c", "ALTER TABLE dbo.t ADD c int NULL"],
]


@pytest.mark.parametrize("ddl", DROPPED, ids=["dropped", "dropped and added again"])
@pytest.mark.parametrize("more", ["", ", body nvarchar(max) NULL"], ids=["arrays", "by rows"])
def test_a_captured_column_that_was_dropped_is_still_what_its_function_returns(
    shop: Shop, more: str, ddl: list[str]
) -> None:
    """Else the changes before the start of a new instance, which is what the advice is to make, were never read."""
    shop.create("t", f"id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL{more}")
    shop.run("INSERT dbo.t (id, c) VALUES (1, N'before')")
    shop.scan()
    shop.run(*ddl, "INSERT dbo.t (id) VALUES (2)")
    shop.scan()
    reader = shop.changes("t", instance=replace(shop.instance("t"), change_table=None))

    assert [(row["after"]["id"], row["after"]["c"]) for row in rows(reader)] == [(1, "before"), (2, None)]


@wider
def test_what_a_function_returns_of_a_column_that_was_altered_is_not_read_with_its_old_type(
    shop: Shop, narrow: str, wide: str
) -> None:
    shop.create("t", f"id int NOT NULL PRIMARY KEY, c {narrow} NULL")
    shop.run("INSERT dbo.t VALUES (1, NULL)")
    shop.scan()
    reader = shop.changes("t", instance=replace(shop.instance("t"), change_table=None))
    shop.run(f"ALTER TABLE dbo.t ALTER COLUMN c {wide} NULL")

    with pytest.raises(StaleStructureError, match="'c' is"):
        rows(reader)


def test_a_table_that_took_the_name_of_another_is_not_read_for_it(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.create("other", "id int NOT NULL PRIMARY KEY")
    shop.scan()
    reader = shop.chunk("t")
    shop.run("EXEC sp_rename 'dbo.t', 'gone'")
    with pytest.raises(StaleStructureError, match="renamed"):
        rows(reader)
    shop.run("EXEC sp_rename 'dbo.other', 't'")
    with pytest.raises(StaleStructureError, match="a different table"):
        rows(reader)
