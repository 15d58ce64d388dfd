"""A column whose type Delta cannot widen to continues in a new Delta column: no table stops, no value is cast."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mssql_cdc.capture.snapshot import chunk_groups, take
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_altered_columns import images, once

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def things(place: Place) -> Place:
    """Four rows; `n` is an integer."""
    place.create("things", "id int NOT NULL PRIMARY KEY, n int NULL, name nvarchar(20) NULL")
    place.sql("INSERT INTO dbo.things VALUES (1, 10, N'one'), (2, 20, N'two'), (3, 30, N'three'), (4, NULL, N'four')")
    place.settle()
    assert place.catch_up() == 0
    return place


def alter(place: Place, kind: str, *statements: str) -> None:
    place.sql(f"ALTER TABLE dbo.things ALTER COLUMN n {kind} NULL", *statements)
    place.settle()


def current(place: Place) -> list[dict[str, Any]]:
    """The current table's rows without their names, and without the columns of ours but `_unavailable`."""
    found = place.query("SELECT * FROM t ORDER BY id", "things")
    return [{n: v for n, v in one.items() if n not in {"_key", "_pos", "_batch", "_exact", "name"}} for one in found]


def row(number: int, **values: Any) -> dict[str, Any]:
    unavailable = values.pop("unavailable", None)
    return {"id": number, **values, "_unavailable": unavailable}


def notices(place: Place) -> list[dict[str, str]]:
    table = DeltaTable(f"{place.warehouse}/shop/{place.database}/_notifications")
    rows = table.to_pyarrow_table().to_pylist()
    return [dict(one["additional_data"]) for one in rows if one["aggregate_type"] == "Delta Column"]


def test_a_type_that_delta_cannot_widen_to_continues_in_a_new_column(
    things: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: SparkSession
):
    """Values stay where they were written, in both tables; records have the type of their own version."""
    place = things
    before = images(place, tmp_path / "before.jsonl")
    alter(
        place, "nvarchar(20)", "UPDATE dbo.things SET n = N'zwei' WHERE id = 2", "DELETE FROM dbo.things WHERE id = 3"
    )
    assert place.catch_up() == 0
    told = capsys.readouterr()
    assert (told.out + told.err).count("It continues in the Delta column n_2") == 1
    assert current(place) == [
        row(1, n_2=None, n=10, unavailable=["n"]),
        row(2, n_2="zwei", n=None),
        row(4, n_2=None, n=None, unavailable=["n"]),
    ]
    changes = place.query(
        "SELECT op, before['n'] AS old, before['n_2'] AS old_2, after['n'] AS new, after['n_2'] AS new_2 "
        "FROM t WHERE op <> 'r' ORDER BY _pos",
        "things",
        "changes",
    )
    assert changes == [
        {"op": "u", "old": None, "old_2": "20", "new": None, "new_2": "zwei"},
        {"op": "d", "old": None, "old_2": "30", "new": None, "new_2": None},
    ]
    both = spark.sql(f"SELECT id, coalesce(n_2, CAST(n AS STRING)) AS n FROM delta.`{place.uri('things')}` ORDER BY id")
    assert [tuple(one) for one in both.collect()] == [(1, "10"), (2, "zwei"), (4, None)]
    after = images(place, tmp_path / "after.jsonl")
    assert after[: len(before)] == before
    assert [one["n"] for one in after if one] == [10, 20, 30, None, "zwei"]
    assert place.check() == 0
    (notice,) = notices(place)
    assert notice["table"] == f"{place.database}.dbo.things"
    assert (notice["column"], notice["former_delta_column"], notice["delta_column"]) == ("n", "n", "n_2")
    assert (notice["former_type"], notice["type"]) == ("int", "nvarchar(20)")
    comments = {field.name: field.metadata["comment"] for field in DeltaTable(place.uri("things")).schema().fields}
    assert comments["n"] == "SQL Server int, the former type of n: continues in n_2"
    assert comments["n_2"] == (
        "SQL Server nvarchar(20); rows that were written before it had this type have their value in n"
    )


def test_a_type_that_comes_back_gets_a_further_column(things: Place, tmp_path: Path):
    """A Delta column is left for good, so that what stands in it is of one time."""
    place = things
    alter(place, "nvarchar(20)", "UPDATE dbo.things SET n = N'2' WHERE id = 2")
    assert place.catch_up() == 0
    alter(place, "int", "UPDATE dbo.things SET n = 33 WHERE id = 3")
    assert place.catch_up() == 0
    assert current(place) == [
        row(1, n_3=None, n=10, n_2=None, unavailable=["n"]),
        row(2, n_3=None, n=None, n_2="2", unavailable=["n"]),
        row(3, n_3=33, n=None, n_2=None),
        row(4, n_3=None, n=None, n_2=None, unavailable=["n"]),
    ]
    assert place.check() == 0
    # Another column takes the next name that is free, and one of the source that has it already keeps it.
    place.sql("ALTER TABLE dbo.things ADD name_2 int NULL")
    place.enable("things", instance="things_2")
    place.sql("UPDATE dbo.things SET name_2 = 7 WHERE id = 1", "ALTER TABLE dbo.things ALTER COLUMN name varbinary(40)")
    place.sql("UPDATE dbo.things SET name = 0x0102, n = 11 WHERE id = 1")
    place.settle()
    assert place.catch_up() == 0
    found = place.query("SELECT n_3, name, name_2, name_3 FROM t WHERE id = 1", "things")
    assert found == [{"n_3": 11, "name": None, "name_2": 7, "name_3": b"\x01\x02"}]
    assert place.check() == 0
    shown = [(one["n"], one["name"]) for one in images(place, tmp_path / "all.jsonl") if one["id"] == 1]
    assert (shown[0], shown[-1]) == ((10, "one"), (11, "AQI="))


def test_a_column_that_is_dropped_and_added_with_another_type(things: Place, tmp_path: Path):
    """Under a second capture instance; the rows that were written before keep what they had."""
    place = things
    place.configure(incremental_snapshot_added_columns="false")
    place.sql("UPDATE dbo.things SET n = 11 WHERE id = 1")
    place.sql("ALTER TABLE dbo.things DROP COLUMN n", "ALTER TABLE dbo.things ADD n date NULL")
    place.enable("things", instance="things_2")
    place.sql("UPDATE dbo.things SET n = '2026-01-02' WHERE id = 2", "INSERT INTO dbo.things VALUES (5, N'five', NULL)")
    place.settle()
    assert place.catch_up() == 0
    found = place.query("SELECT id, n, CAST(n_2 AS STRING) AS n_2, _unavailable AS u FROM t ORDER BY id", "things")
    assert [tuple(one.values()) for one in found] == [
        (1, 11, None, ["n"]),
        (2, None, "2026-01-02", None),
        (3, 30, None, ["n"]),
        (4, None, None, ["n"]),
        (5, None, None, None),
    ]
    assert place.check() == 0
    assert [one["n"] for one in images(place, tmp_path / "all.jsonl")] == [10, 20, 30, None, 11, 20455, None]


def test_an_incremental_snapshot_fills_the_new_column(things: Place, tmp_path: Path):
    place = things
    place.sql(
        "CREATE TABLE dbo.signals (id varchar(64) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
    )
    place.enable("signals")
    place.configure(signal_data_collection=f"{place.database}.dbo.signals")
    alter(place, "nvarchar(20)", "UPDATE dbo.things SET n = N'zwei' WHERE id = 2")
    assert place.catch_up() == 0
    place.signal("fill", type="incremental", **{"data-collections": [f"{place.database}.dbo.things"]})
    place.settle()
    assert place.catch_up() == 0
    assert current(place) == [
        row(1, n_2="10", n=None), row(2, n_2="zwei", n=None), row(3, n_2="30", n=None), row(4, n_2=None, n=None)
    ]  # fmt: skip
    assert place.check() == 0
    read = [json.loads(one)["value"] for one in records(place, tmp_path / "all.jsonl")]
    assert [one["after"]["n"] for one in read if one and one["op"] == "r"][-4:] == ["10", "zwei", "30", None]


def records(place: Place, output: Path) -> list[str]:
    assert place.command("records", "--table", "dbo.things", "--output", str(output)) == 0
    return output.read_text().splitlines()


def test_a_key_column_whose_type_changes_is_a_new_key_and_a_new_delta_column(place: Place):
    place.create("things", "id int NOT NULL CONSTRAINT pk PRIMARY KEY, n int NULL")
    place.sql("INSERT INTO dbo.things VALUES (1, 10), (2, 20)")
    place.settle()
    assert place.catch_up() == 0
    place.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'things', @capture_instance = N'all'",
        "ALTER TABLE dbo.things DROP CONSTRAINT pk",
        "ALTER TABLE dbo.things ALTER COLUMN id nvarchar(9) NOT NULL",
        "ALTER TABLE dbo.things ADD CONSTRAINT pk PRIMARY KEY (id)",
    )
    place.enable("things")
    place.sql("INSERT INTO dbo.things VALUES (N'drei', 30)")
    place.settle()
    place.catch_up()
    assert place.command("acknowledge") == 0
    place.configure(snapshot_mode="when_needed")
    assert place.catch_up() == 0
    assert place.query("SELECT id_2, id, n FROM t ORDER BY n", "things") == [
        {"id_2": "1", "id": None, "n": 10}, {"id_2": "2", "id": None, "n": 20}, {"id_2": "drei", "id": None, "n": 30}
    ]  # fmt: skip
    assert place.check() == 0


def test_a_table_without_a_key_and_what_check_says_of_it(place: Place, capsys: pytest.CaptureFixture[str]):
    place.create("things", "n int NULL, name nvarchar(20) NULL")
    place.sql("INSERT INTO dbo.things VALUES (10, N'one'), (20, N'two')")
    place.settle()
    assert place.catch_up() == 0
    alter(place, "nvarchar(20)", "UPDATE dbo.things SET n = N'zwei' WHERE name = N'two'")
    assert place.catch_up() == 0
    capsys.readouterr()
    assert place.check() == 0
    assert "n (its type changed: rows have it in n or in n_2)" in capsys.readouterr().out


def test_a_current_table_that_is_partitioned_by_the_column(place: Place):
    place.configure(**{"delta.current.dbo.things.partition.by": "n"})
    place.create("things", "id int NOT NULL PRIMARY KEY, n int NULL")
    place.sql("INSERT INTO dbo.things VALUES (1, 10), (2, 20), (3, 20)")
    place.settle()
    assert place.catch_up() == 0
    alter(
        place, "nvarchar(20)", "UPDATE dbo.things SET n = N'' WHERE id = 2", "INSERT INTO dbo.things VALUES (4, N'x')"
    )
    assert place.catch_up() == 0
    found = place.query("SELECT id, n, n_2 FROM t ORDER BY id", "things")
    assert [tuple(one.values()) for one in found] == [(1, 10, None), (2, None, None), (3, 20, None), (4, None, "x")]
    assert DeltaTable(place.uri("things")).metadata().partition_columns == ["n_2"]
    assert place.check() == 0


@pytest.mark.long
def test_a_type_that_changes_between_two_groups_of_chunks(place: Place, monkeypatch: pytest.MonkeyPatch):
    """Each group has the Delta column of the structure that it was read under; the name needs column mapping."""
    place.create("things", "id int NOT NULL PRIMARY KEY, [net price] int NULL")
    place.sql("INSERT INTO dbo.things VALUES (1, 10), (2, 20), (3, 30)")
    place.settle()
    change = once(lambda: place.sql("ALTER TABLE dbo.things ALTER COLUMN [net price] nvarchar(20) NULL"))
    monkeypatch.setattr(take, "CHUNK_ROWS", 1)
    monkeypatch.setattr(take, "GROUP_CHUNKS", 1)
    run_here = chunk_groups.run_here

    def alter_behind_the_first_group(*given: Any, **more: Any) -> Any:
        done = run_here(*given, **more)
        change()
        return done

    monkeypatch.setattr(chunk_groups, "run_here", alter_behind_the_first_group)
    assert place.catch_up() == 0
    current = 'SELECT id, "net price" AS one, "net price_2" AS two, _unavailable AS u FROM t ORDER BY id'
    rows = [tuple(one.values()) for one in place.query(current, "things")]
    assert rows == [(1, 10, None, ["net price"]), (2, None, "20", None), (3, None, "30", None)]
    place.sql("UPDATE dbo.things SET [net price] = N'zehn' WHERE id = 1")
    place.settle()
    assert place.catch_up() == 0
    assert next(tuple(one.values()) for one in place.query(current, "things")) == (1, None, "zehn", None)
    assert place.check() == 0


def test_a_name_that_differs_by_case_only_is_another_column(things: Place, tmp_path: Path):
    """Delta does not tell `name` and `NAME` apart, so the new one has another name there; records have its own."""
    place = things
    place.configure(incremental_snapshot_added_columns="false")
    place.sql("ALTER TABLE dbo.things DROP COLUMN name", "ALTER TABLE dbo.things ADD NAME nvarchar(20) NULL")
    place.enable("things", instance="things_2")
    place.sql("UPDATE dbo.things SET NAME = N'zwei' WHERE id = 2")
    place.settle()
    assert place.catch_up() == 0
    assert place.query('SELECT id, "NAME_2" AS name FROM t WHERE id < 3 ORDER BY id', "things") == [
        {"id": 1, "name": None}, {"id": 2, "name": "zwei"}
    ]  # fmt: skip
    assert place.check() == 0
    assert images(place, tmp_path / "all.jsonl")[-1] == {"id": 2, "n": 20, "NAME": "zwei"}


def test_a_mask_of_the_column_hides_the_values_of_the_new_one(place: Place):
    """It has no effect on a number, and begins with the type that it can hide."""
    place.configure(column_mask_with_4_chars="dbo[.]things[.]n")
    place.create("things", "id int NOT NULL PRIMARY KEY, n int NULL")
    place.sql("INSERT INTO dbo.things VALUES (1, 10), (2, 20)")
    place.settle()
    assert place.catch_up() == 0
    alter(place, "nvarchar(20)", "UPDATE dbo.things SET n = N'secret' WHERE id = 2")
    assert place.catch_up() == 0
    assert current(place) == [row(1, n_2=None, n=10, unavailable=["n"]), row(2, n_2="****", n=None)]
    logged = place.query("SELECT after['n_2'] AS new, before['n_2'] AS old FROM t WHERE op = 'u'", "things", "changes")
    assert logged == [{"new": "****", "old": "****"}]
