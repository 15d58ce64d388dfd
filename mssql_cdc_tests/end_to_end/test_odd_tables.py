"""One table's trouble is its own: it is named with a remedy that works, and every other table goes on."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.log import load_state
from mssql_cdc.schema import TableId
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.storm.lake import happening_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHANGED = "UPDATE dbo.variants SET name = N'newer' WHERE k = CAST(1 AS int)"


def insert_people(place: Place, number: int) -> None:
    place.sql(f"INSERT INTO dbo.people VALUES ({number})")
    place.settle()


def people(place: Place) -> int:
    return place.query("SELECT COUNT(*) AS n FROM t", "people")[0]["n"]


def test_tables_with_odd_keys_or_columns_do_not_hold_the_others_back(place: Place, capsys: pytest.CaptureFixture[str]):
    """Review, bugs 9 and 10: one of them, and no table was ever snapshotted."""
    place.create("documents", "node hierarchyid NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.documents VALUES ('/1/', N'one'), ('/2/', N'two')")
    place.create("variants", "k sql_variant NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.variants VALUES (CAST(1 AS int), N'one')")
    place.sql("INSERT INTO dbo.variants VALUES (N'a', N'two')")
    place.create("people", "id int NOT NULL PRIMARY KEY")
    insert_people(place, 1)
    assert place.catch_up() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t", "documents") == [{"n": 2}]
    assert place.query("SELECT COUNT(*) AS n FROM t", "variants") == [{"n": 2}]
    place.sql(
        "DELETE FROM dbo.documents WHERE name = N'two'", "UPDATE dbo.variants SET name = N'b' WHERE name = N'one'"
    )
    insert_people(place, 2)
    assert place.catch_up() == 0
    assert place.query("SELECT name FROM t", "documents") == [{"name": "one"}]
    assert place.query("SELECT name FROM t ORDER BY name", "variants") == [{"name": "b"}, {"name": "two"}]
    assert people(place) == 2


def test_texts_that_differ_in_a_lone_surrogate_are_different_variants(place: Place, spark: Any):
    """They were stored as one text, were one key, and no check of their table came to its end."""
    place.create("variants", "k sql_variant NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    for number, half in enumerate(("3DD8", "3ED8")):
        place.sql(f"INSERT INTO dbo.variants VALUES (CAST(0x4100{half} AS nvarchar(20)), N'{number}')")
    assert place.catch_up() == 0
    assert place.query("SELECT name FROM t ORDER BY name", "variants") == [{"name": "0"}, {"name": "1"}]
    assert place.check() == 0
    exact = "map('k', replace(_exact['k'], 'd83d', 'd83f'))"
    spark.sql(f"UPDATE delta.`{place.uri('variants')}` SET _exact = {exact} WHERE name = '0'").collect()
    assert place.check() == 5


def test_rows_with_a_variant_key_are_compared_while_they_change_and_never_repaired_by_key(
    place: Place, capsys: pytest.CaptureFixture[str], spark: Any
):
    """No text is a value that a `sql_variant` equals: sought by its key, a row looked deleted at the source."""
    place.create("variants", "k sql_variant NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.variants VALUES (CAST(1 AS int), N'one')")
    place.sql("INSERT INTO dbo.variants VALUES (N'a', N'two'), (N'b', N'three')")
    place.settle()
    assert place.catch_up() == 0

    def meanwhile() -> None:
        place.sql("UPDATE dbo.variants SET name = N'new' WHERE k = CAST(1 AS int)")
        place.sql("DELETE FROM dbo.variants WHERE k = N'b'", "INSERT INTO dbo.variants VALUES (N'c', N'four')")

    with happening_at("mssql_cdc.check.check_tables.compare_keyed", 1, meanwhile):
        assert place.check() == 0
    capsys.readouterr()
    assert place.catch_up() == 0
    spark.sql(f"UPDATE delta.`{place.uri('variants')}` SET name = 'wrong' WHERE name = 'two'").collect()
    with happening_at("mssql_cdc.check.check_tables.compare_keyed", 1, lambda: place.sql(CHANGED)):
        assert place.command("check", "--repair", "--json") == 5
    (found,) = json.loads(capsys.readouterr().out)["tables"]
    assert [note for note in found["notes"] if "cannot be re-read individually; take a blocking snapshot" in note]
    assert len(found["differences"]) == 1
    assert place.query("SELECT op FROM t WHERE _snapshot LIKE '%:%'", "variants", "changes") == []


def test_columns_that_differ_by_case_are_the_error_of_their_table(
    case_sensitive: Place, capsys: pytest.CaptureFixture[str]
):
    """Review, bug 10: they stopped every table, and what was advised did not help."""
    place = case_sensitive
    place.create("cases", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL, Name nvarchar(50) NULL")
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.cases VALUES (1, N'one', N'One')")
    insert_people(place, 1)
    assert place.catch_up() == 3
    assert "dbo.cases has columns like 'Name' that differ only by case" in capsys.readouterr().err
    assert people(place) == 1
    place.configure(column_exclude_list="dbo[.]cases[.](?-i:Name)")
    assert place.catch_up() == 0
    assert place.query("SELECT name FROM t", "cases") == [{"name": "one"}]


@pytest.mark.feature("PRE-02")
@pytest.mark.parametrize(
    ("columns", "properties", "reason"),
    [
        ("name nvarchar(50) NULL, Name nvarchar(50) NULL", {}, "has columns like 'Name' that differ only by case"),
        (
            "name nvarchar(50) NULL",
            {"column_exclude_list": "dbo[.]cases[.].*"},
            "The column filters exclude every column of",
        ),
    ],
    ids=["columns that differ by case", "no column left"],
)
def test_a_database_whose_only_table_is_unfit_is_told_why_and_not_to_enable_cdc(
    columns: str,
    properties: dict[str, str],
    reason: str,
    case_sensitive: Place,
    capsys: pytest.CaptureFixture[str],
):
    """The advice was sys.sp_cdc_enable_table, which had been run."""
    place = case_sensitive
    place.create("cases", f"id int NOT NULL PRIMARY KEY, {columns}")
    place.configure(**properties)
    place.settle()
    for command in (("run", "--until-caught-up"), ("check",)):
        capsys.readouterr()
        assert place.command(*command) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"captures no table: {place.database}.dbo.cases cannot be captured: " in said
        assert reason in said
        assert said.count(reason) == 1
        assert "sp_cdc_enable_table" not in said


def test_a_restored_change_log_is_lost_until_a_snapshot(signalled: Place, capsys: pytest.CaptureFixture[str]):
    """Review, bug 11: it stopped every table, and only removing the connector's folder helped."""
    place = signalled
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.sql("UPDATE dbo.orders SET name = N'changed' WHERE id = 1")
    insert_people(place, 1)
    assert place.catch_up() == 0
    DeltaTable(place.uri("orders", "changes")).restore(1)
    place.sql("UPDATE dbo.orders SET name = N'again' WHERE id = 1", "DELETE FROM dbo.orders WHERE id = 2")
    insert_people(place, 2)
    assert place.catch_up() == 4
    assert "was changed by RESTORE" in capsys.readouterr().err
    assert people(place) == 2
    output = str(place.warehouse / "records.jsonl")
    assert place.command("records", "--output", output) == 0
    capsys.readouterr()
    assert place.command("offsets", "--output", output) == 4
    said = capsys.readouterr()
    assert f"{place.database}.dbo.orders (lost) was read up to " in said.err, "Debezium would never get what it lacks"
    assert json.loads(said.out)["offsets"][0]["offset"]["commit_lsn"]
    place.sql(
        """INSERT INTO dbo.signals VALUES ('mend', 'execute-snapshot',
        '{"type": "blocking", "data-collections": ["dbo.orders"]}')"""
    )
    place.settle()
    place.catch_up()
    assert place.command("acknowledge") == 0
    assert place.catch_up() == 0
    assert place.check() == 0


def test_a_column_that_came_back_with_another_type_stops_no_table(orders: Place):
    """Review, bug 19: every other table of the connector stood still. Now its own table goes on, too."""
    place = orders
    place.create("people", "id int NOT NULL PRIMARY KEY")
    insert_people(place, 1)
    assert place.catch_up() == 0
    place.sql("ALTER TABLE dbo.orders DROP COLUMN name", "ALTER TABLE dbo.orders ADD name int NULL")
    place.enable("orders", instance="orders_2")
    place.sql("INSERT INTO dbo.orders VALUES (3, 3)")
    insert_people(place, 2)
    assert place.catch_up() == 0
    assert people(place) == 2
    assert place.query("SELECT id, name_2 FROM t ORDER BY id", "orders")[-1] == {"id": 3, "name_2": 3}
    place.configure(column_exclude_list="dbo[.]orders[.]name")
    insert_people(place, 3)
    place.sql("INSERT INTO dbo.orders VALUES (4, 4)")
    place.settle()
    assert place.catch_up() == 0
    assert place.query("SELECT name_2 FROM t WHERE id = 4", "orders") == [{"name_2": None}]
    assert place.check() == 0


def test_a_table_that_cannot_take_a_column_is_given_up_alone(orders: Place, capsys: pytest.CaptureFixture[str]):
    """Review, bug 19: every other table stood still. The history names the Delta columns; here it does not know one."""
    place = orders
    place.create("people", "id int NOT NULL PRIMARY KEY")
    insert_people(place, 1)
    assert place.catch_up() == 0
    home = Layout(str(place.warehouse), "shop", place.database).home(TableId(place.database, "dbo", "orders"))
    state = load_state(home.changes, owner=home.app_id)
    assert state is not None
    evolve(state, pa.schema([pa.field("after", pa.struct([pa.field("more", pa.int32())]))]))
    place.sql("ALTER TABLE dbo.orders ADD more nvarchar(9) NULL")
    place.enable("orders", instance="orders_2")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three', N'x')")
    for number in (2, 3, 4):
        insert_people(place, number)
        assert place.catch_up() == 2
        assert "Exclude the column" in capsys.readouterr().err
        assert people(place) == number
    place.configure(column_exclude_list="dbo[.]orders[.]more")
    assert place.catch_up() == 0
    assert place.query("SELECT id FROM t ORDER BY id", "orders") == [{"id": 1}, {"id": 2}, {"id": 3}]


@pytest.mark.sandbox
@pytest.mark.feature("ERR-02")
def test_a_table_that_fails_too_often_is_given_up_until_the_next_start(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    """Review, bug 25: it ended with code 0, and no later start read it."""
    place = orders
    place.configure(dagster_max_attempts="2", retriable_restart_connector_wait_ms="10")
    place.create("people", "id int NOT NULL PRIMARY KEY")
    insert_people(place, 1)
    assert place.catch_up() == 0
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    insert_people(place, 2)
    capsys.readouterr()
    place.sql("EXEC sandbox.cut_connection @pattern = N'SELECT TOP.*dbo_orders_CT', @when = N'middle', @times = 1000")
    assert place.catch_up() == 3
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"failed and will be retried at the next start: {place.database}.dbo.orders: 2 attempts failed: " in said
    assert f"while reading changes of {place.database}.dbo.orders" in said
    assert people(place) == 2
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 2}]
    place.sql("EXEC sandbox.clear_faults")
    assert place.catch_up() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]
    assert place.check() == 0


def test_a_column_that_current_tables_cannot_be_partitioned_by_is_a_mistake_in_the_configuration(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """It ended with 1, which asks for a bug report."""
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.configure(delta_current_dbo_people_partition_by="nonsense")
    insert_people(place, 1)
    assert place.catch_up() == 2
    assert "names 'nonsense', which is no captured column" in capsys.readouterr().err


def test_of_two_tables_whose_full_names_read_alike_one_is_captured(place: Place, capsys: pytest.CaptureFixture[str]):
    """Both went into one change log, and each look took the one for the successor of the other."""
    place.sql("CREATE SCHEMA [a]", "CREATE SCHEMA [a.b]")
    place.sql("CREATE TABLE [a].[b.c] (id int NOT NULL PRIMARY KEY)", "INSERT [a].[b.c] VALUES (1)")
    enable = "EXEC sys.sp_cdc_enable_table @source_schema = N'{}', @source_name = N'{}', @role_name = NULL, "
    place.sql(enable.format("a", "b.c") + "@capture_instance = N'first'")
    assert place.catch_up() == 0
    place.sql("CREATE TABLE [a.b].[c] (id int NOT NULL PRIMARY KEY)", "INSERT [a.b].[c] VALUES (2), (3)")
    place.sql(enable.format("a.b", "c") + "@capture_instance = N'second'")
    place.sql("INSERT [a].[b.c] VALUES (4)", "INSERT [a.b].[c] VALUES (5)")
    place.settle()
    for _ in range(2):
        capsys.readouterr()
        assert place.catch_up() == 3
        shown = capsys.readouterr().err
        assert "its full name reads like that of another captured table" in shown
        assert "rename one of the two" in shown
    layout = Layout(str(place.warehouse), "shop", place.database)
    log = DeltaTable(layout.home(TableId(place.database, "a", "b.c")).changes)
    rows = log.to_pyarrow_table().column("after").to_pylist()
    assert sorted(row["id"] for row in rows) == [1, 4]

    place.sql("EXEC sp_rename N'[a.b].[c]', N'd'")
    assert place.catch_up() == 0
    assert place.check() == 0
