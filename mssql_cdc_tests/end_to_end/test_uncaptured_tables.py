"""SNP-03: `snapshot.mode=initial_only` also reads tables that CDC is not enabled on, as Debezium does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mssql_cdc.cli import main
from mssql_cdc.config import load_connector
from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.run.databases import open_databases
from mssql_cdc.run.discover import table_list_path
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.feature("SNP-03")]

ITEMS = "SELECT id, at, twice FROM t ORDER BY id"


@pytest.fixture
def once(place: Place) -> Place:
    """Two tables without CDC, one of them without a key."""
    place.configure(snapshot_mode="initial_only")
    place.sql(
        "CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, at datetime2(3) NULL, twice AS (id * 2))",
        "INSERT INTO dbo.items (id, at) VALUES (1, '2024-05-06 07:08:09.123'), (2, NULL)",
        "CREATE TABLE dbo.notes (what nvarchar(50) NULL)",
        "INSERT INTO dbo.notes VALUES (N'a'), (N'a')",
    )
    return place


def rows(place: Place) -> list[tuple[int, bool, int]]:
    return [(row["id"], row["at"] is None, row["twice"]) for row in place.query(ITEMS, "items")]


@pytest.mark.parametrize("captured", [True, False])
def test_tables_that_are_not_captured_are_read_once(once: Place, capsys: pytest.CaptureFixture[str], *, captured: bool):
    if captured:
        once.create("orders", "id int NOT NULL PRIMARY KEY")
        once.sql("INSERT INTO dbo.orders VALUES (1)")
        once.settle()
    assert once.catch_up() == 0
    assert rows(once) == [(1, False, 2), (2, True, 4)], "computed columns are read, too"
    assert [row["op"] for row in once.query("SELECT op FROM t", "notes", "changes")] == ["r", "r"]
    once.sql("INSERT INTO dbo.items (id) VALUES (3)", "DELETE FROM dbo.notes")
    assert once.catch_up() == 0
    assert len(rows(once)) == 2
    if captured:
        assert [row["id"] for row in once.query("SELECT id FROM t", "orders")] == [1]
    capsys.readouterr()
    assert once.check() == 0
    shown = capsys.readouterr()
    assert "not captured: " in shown.out + shown.err
    assert "dbo.items" in shown.out + shown.err
    assert once.command("status") == 0
    assert once.command("records", "--output", str(once.folder / "records.jsonl")) == 0


def test_discover_lists_them_for_dagster(once: Place):
    assert main(["discover", "--config", str(once.config)]) == 0
    listed = table_list_path(once.config).read_text(encoding="utf-8")
    assert '"items"' in listed
    assert '"notes"' in listed


def test_another_mode_leaves_them_out(once: Place):
    once.configure()
    once.create("orders", "id int NOT NULL PRIMARY KEY")
    assert once.catch_up() == 0
    assert set(load_offsets(layout(once)).entries) == {f"{once.database}.dbo.orders"}


@pytest.mark.parametrize("isolation", ["repeatable_read", "snapshot"])
def test_their_rows_are_of_one_moment(once: Place, isolation: str):
    """A writer has changed a row and not committed: a lock waits for it, SNAPSHOT isolation reads what was before."""
    once.configure(
        snapshot_mode="initial_only",
        snapshot_isolation_mode=isolation,
        snapshot_lock_timeout_ms="300",
        errors_max_retries="0",
        dagster_max_attempts="1",
        table_include_list="dbo.items",
    )
    once.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    with writing(once, "UPDATE dbo.items SET at = NULL WHERE id = 1"):
        done = once.command("run", "--until-caught-up", "--timeout", "5")
        if isolation == "snapshot":
            assert done == 0
            assert rows(once) == [(1, False, 2), (2, True, 4)]
        else:
            assert done != 0
    assert once.catch_up() == 0
    assert len(rows(once)) == 2


def test_a_table_that_is_captured_later_has_a_gap_and_is_read_anew(once: Place):
    """Nobody knows what changed in between; rows that went are swept."""
    assert once.catch_up() == 0
    once.sql("DELETE FROM dbo.items WHERE id = 1", "UPDATE dbo.items SET at = NULL")
    for table in ("items", "notes"):
        once.enable(table)
    once.configure(snapshot_mode="when_needed")
    once.settle()
    assert once.catch_up() == 0
    assert [(row["id"], row["at"]) for row in once.query(ITEMS, "items")] == [(2, None)]
    gaps = open_gaps(layout(once))
    assert f"{once.database}.dbo.items" in gaps


@contextmanager
def writing(place: Place, statement: str) -> Iterator[None]:
    """A transaction that has run a statement and not ended."""
    with control(load_connector(place.config).connection, place.database, autocommit=False) as writer:
        writer.execute(statement, doing="writing")
        yield
        writer.rollback()


def layout(place: Place) -> Layout:
    with open_databases(load_connector(place.config), warehouse=str(place.warehouse)) as (database,):
        return database.layout
