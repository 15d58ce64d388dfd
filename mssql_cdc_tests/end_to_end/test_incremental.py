"""Incremental snapshots end to end: with changes beside them, after a kill, paused, stopped, with odd keys."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.load import writing
from mssql_cdc_tests.end_to_end.test_reading_settings import statements
from mssql_cdc_tests.end_to_end.test_signals import own_rows
from mssql_cdc_tests.storm.lake import Killed, happening_at, killed_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

READS = "SELECT after.id AS id, _snapshot FROM t WHERE op = 'r' ORDER BY _pos"


@pytest.fixture
def empty(place: Place) -> Place:
    """A place with a signal table, whose connector reads no rows at its start, and three rows a chunk."""
    place.configure(
        signal_data_collection=f"{place.database}.dbo.signals",
        snapshot_mode="no_data",
        incremental_snapshot_chunk_size="3",
        incremental_snapshot_option_recompile="true",
    )
    place.create("signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL")
    return place


def ask(place: Place, key: str, *tables: str, **more: Any) -> None:
    place.signal(key, **{"data-collections": [f"{place.database}.dbo.{table}" for table in tables]}, **more)


def is_there(place: Place, table: str) -> bool:
    """Whether the table has a change log: it begins with the first row."""
    return DeltaTable.is_deltatable(place.uri(table, "changes"))


def notes(place: Place) -> list[str]:
    """The types of the notifications of incremental snapshots, with the status of those that have one."""
    rows = own_rows(
        place,
        "notifications",
        "SELECT type, additional_data FROM t WHERE aggregate_type LIKE 'Incr%' ORDER BY _batch, timestamp_ms",
    )
    return [" ".join(filter(None, (row["type"], dict(row["additional_data"]).get("status")))) for row in rows]


def told(place: Place) -> list[tuple[str, str, dict[str, str]]]:
    """Type, id and additional data of the notifications of incremental snapshots."""
    query = "SELECT * FROM t WHERE aggregate_type LIKE 'Incr%' ORDER BY _batch, timestamp_ms"
    rows = own_rows(place, "notifications", query)
    return [(row["type"], row["id"], dict(row["additional_data"])) for row in rows]


@pytest.mark.feature("INC-01", "INC-06", "NOT-04")
def test_signal_without_a_type_reads_the_rows_beside_the_stream(empty: Place):
    empty.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.orders VALUES " + ", ".join(f"({n}, N'order {n}')" for n in range(10)))
    empty.settle()
    assert empty.catch_up() == 0
    assert not is_there(empty, "orders")
    ask(empty, "i1", "ord.*")
    for _ in range(2):
        assert empty.catch_up() == 0
    reads = empty.query(READS, "orders", "changes")
    assert [row["id"] for row in reads] == list(range(10))
    assert len({row["_snapshot"] for row in reads}) == 1
    assert empty.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 10}]
    assert empty.check() == 0
    (signal,) = own_rows(empty, "signals", "SELECT status, result FROM t")
    assert signal["status"] == "requested"
    assert signal["result"] == f"an incremental snapshot of {empty.database}.dbo.orders"
    assert notes(empty) == ["STARTED", *["IN_PROGRESS"] * 4, "TABLE_SCAN_COMPLETED SUCCEEDED", "COMPLETED"]
    chunks = [data for kind, _, data in told(empty) if kind == "IN_PROGRESS"]
    assert [one["last_processed_key"] for one in chunks] == ["2", "5", "8", "9"], "one for each chunk of three rows"
    assert {one["maximum_key"] for one in chunks} == {"9"}


@pytest.mark.feature("INC-09", "INC-10")
def test_changes_beside_the_chunks_are_neither_lost_nor_undone(empty: Place):
    empty.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.orders SELECT value, N'order' FROM GENERATE_SERIES(1, 300)")
    empty.settle()
    assert empty.catch_up() == 0

    def changes(number: int) -> list[str]:
        key = 7 * number % 300 + 1
        return [
            f"UPDATE dbo.orders SET name = N'u{number}' WHERE id = {key}",
            f"DELETE FROM dbo.orders WHERE id = {key * 11 % 300 + 1}",
            f"INSERT INTO dbo.orders VALUES ({1000 + number}, N'new')",
            f"UPDATE dbo.orders SET id = {-number} WHERE id = {key * 13 % 300 + 1}",
        ]

    with writing(empty, changes, pause=0.01):
        ask(empty, "i1", "orders")
        with patch("mssql_cdc.capture.incremental.chunks.GROUP_ROWS", 20):
            assert empty.command("run", "--seconds", "8") == 0
    assert empty.catch_up() == 0
    assert empty.check() == 0
    assert empty.query("SELECT COUNT(*) AS n FROM t WHERE op = 'r'", "orders", "changes")[0]["n"] > 0


@pytest.mark.feature("INC-11")
@pytest.mark.parametrize(
    ("write", "after"),
    [
        pytest.param("mssql_cdc.capture.incremental.emission.commit", False, marks=pytest.mark.long),
        ("mssql_cdc.capture.incremental.emission.commit", True),
        ("mssql_cdc.capture.incremental.emission.append_offsets", True),
    ],
)
def test_killed_run_is_continued_and_no_row_is_emitted_twice(empty: Place, write: str, after: bool):  # noqa: FBT001
    empty.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.orders SELECT value, N'order' FROM GENERATE_SERIES(1, 20)")
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", "orders")
    with ExitStack() as stack:
        stack.enter_context(patch("mssql_cdc.capture.incremental.chunks.GROUP_ROWS", 3))
        stack.enter_context(patch("mssql_cdc.follow.incremental_step.MOST_STAGED", 2))
        with killed_at(write, 2, after=after), pytest.raises(Killed):
            empty.catch_up()
        assert empty.catch_up() == 0
    reads = empty.query(READS, "orders", "changes")
    assert [row["id"] for row in reads] == list(range(1, 21))
    assert empty.check() == 0


def test_staged_files_that_vacuum_has_removed_are_read_again(empty: Place):
    empty.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.orders SELECT value, N'order' FROM GENERATE_SERIES(1, 20)")
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", "orders")
    with killed_at("mssql_cdc.capture.incremental.emission.commit", 1, after=False), pytest.raises(Killed):
        empty.catch_up()
    table = DeltaTable(empty.uri("orders", "changes"))
    removed = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert any(name.endswith(".parquet") for name in removed)
    assert empty.catch_up() == 0
    assert [row["id"] for row in empty.query(READS, "orders", "changes")] == list(range(1, 21))


@pytest.mark.feature("INC-12", "INC-13", "INC-14")
def test_snapshots_are_paused_resumed_and_stopped(empty: Place):
    for table in ("orders", "people"):
        empty.create(table, "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
        empty.sql(f"INSERT INTO dbo.{table} VALUES (1, N'one'), (2, N'two')")
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", "orders")
    ask(empty, "i2", "people")
    empty.sql("INSERT INTO dbo.signals VALUES ('p', 'pause-snapshot', NULL)")
    assert empty.catch_up() == 0
    assert not is_there(empty, "orders")
    empty.sql("""INSERT INTO dbo.signals VALUES ('b', 'stop-snapshot', '{"type": "blocking"}')""")  # concerns neither
    stop = f'{{"type": "incremental", "data-collections": ["{empty.database}.dbo.people"]}}'
    empty.sql(f"INSERT INTO dbo.signals VALUES ('s', 'stop-snapshot', '{stop}')")
    empty.sql("INSERT INTO dbo.signals VALUES ('r', 'resume-snapshot', NULL)")
    assert empty.catch_up() == 0
    assert [row["id"] for row in empty.query(READS, "orders", "changes")] == [1, 2]
    assert not is_there(empty, "people")
    assert notes(empty)[:4] == ["STARTED", "PAUSED", "ABORTED", "RESUMED"]
    assert notes(empty)[-1] == "COMPLETED"


@pytest.mark.feature("NOT-04", "INC-12", "INC-13")
def test_notifications_have_the_id_of_the_last_request_and_an_abort_lists_what_it_removed(empty: Place):
    for table in ("orders", "people", "places"):
        empty.create(table, "id int NOT NULL PRIMARY KEY")
        empty.sql(f"INSERT INTO dbo.{table} VALUES (1), (2)")
    orders, people, places = (f"{empty.database}.dbo.{table}" for table in ("orders", "people", "places"))
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", "orders")
    ask(empty, "i2", "people", "places")
    empty.sql("INSERT INTO dbo.signals VALUES ('p', 'pause-snapshot', NULL)")
    assert empty.catch_up() == 0
    stop = '{"type": "incremental", "data-collections": [".*dbo.(pl|sig).*"]}'
    empty.sql(f"INSERT INTO dbo.signals VALUES ('s', 'stop-snapshot', '{stop}')")
    empty.sql("INSERT INTO dbo.signals VALUES ('r', 'resume-snapshot', NULL)")
    assert empty.catch_up() == 0
    found = [(kind, id_, data.get("data_collections")) for kind, id_, data in told(empty)]
    assert found == [
        ("STARTED", "i1", orders),
        ("PAUSED", "i2", f"{orders},{people},{places}"),
        ("ABORTED", "i2", places),
        ("RESUMED", "i2", f"{orders},{people}"),
        ("IN_PROGRESS", "i2", f"{orders},{people}"),
        ("TABLE_SCAN_COMPLETED", "i2", f"{orders},{people}"),
        ("IN_PROGRESS", "i2", people),
        ("TABLE_SCAN_COMPLETED", "i2", people),
        ("COMPLETED", "i2", None),
    ]
    ask(empty, "i3", "places", "people")
    empty.sql("INSERT INTO dbo.signals VALUES ('p2', 'pause-snapshot', NULL)")
    assert empty.catch_up() == 0
    empty.sql("INSERT INTO dbo.signals VALUES ('s2', 'stop-snapshot', '{\"type\": \"incremental\"}')")
    assert empty.catch_up() == 0
    assert [(kind, id_, data.get("data_collections")) for kind, id_, data in told(empty)][9:] == [
        ("STARTED", "i3", f"{places},{people}"),
        ("PAUSED", "i3", f"{places},{people}"),
        ("ABORTED", "i3", f"{people},{places}"),
    ]


@pytest.mark.feature("INC-03", "INC-05", "NOT-04")
def test_a_name_without_a_table_and_a_missing_surrogate_key_are_told_in_their_turn(empty: Place):
    for table in ("orders", "people"):
        empty.create(table, "id int NOT NULL PRIMARY KEY")
        empty.sql(f"INSERT INTO dbo.{table} VALUES (1)")
    empty.settle()
    assert empty.catch_up() == 0
    names = [f"{empty.database}.dbo.{table}" for table in ("orders", "nothing", "people")]
    orders, nothing, people = names
    empty.signal("i1", **{"data-collections": names})
    ask(empty, "i2", "orders", **{"surrogate-key": "missing"})
    assert empty.catch_up() == 0
    found = [
        (kind, data.get("scanned_collection"), data.get("status"), data.get("data_collections"))
        for kind, _, data in told(empty)
        if kind != "IN_PROGRESS"
    ]
    assert found == [
        ("STARTED", None, None, ",".join(names)),
        ("TABLE_SCAN_COMPLETED", orders, "SUCCEEDED", ",".join([*names, orders])),
        ("TABLE_SCAN_COMPLETED", nothing, "UNKNOWN_SCHEMA", f"{nothing},{people},{orders}"),
        ("TABLE_SCAN_COMPLETED", people, "SUCCEEDED", f"{people},{orders}"),
        ("TABLE_SCAN_COMPLETED", orders, "SQL_EXCEPTION", orders),
        ("COMPLETED", None, None, None),
    ]
    assert empty.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 1}]


@pytest.mark.feature("INC-05")
def test_a_surrogate_key_that_a_bound_cannot_hold_is_refused(empty: Place, capsys: pytest.CaptureFixture[str]):
    """A bound was cut to 2,000 characters: rows beyond it were not read, and then deleted as if they were gone."""
    empty.create("notes", "id int NOT NULL PRIMARY KEY, note varchar(3000) NULL")
    empty.settle()
    assert empty.catch_up() == 0
    empty.sql("INSERT INTO dbo.notes SELECT value, REPLICATE('a', 2500) + STR(value) FROM GENERATE_SERIES(1, 9)")
    empty.settle()
    ask(empty, "i1", "notes", **{"surrogate-key": "note"})
    for _ in range(2):
        assert empty.catch_up() == 0
        empty.settle()
    assert empty.query("SELECT COUNT(*) AS n FROM t", "notes") == [{"n": 9}]
    assert empty.query("SELECT op FROM t WHERE op = 'd'", "notes", "changes") == []
    (left,) = [data for kind, _, data in told(empty) if kind == "TABLE_SCAN_COMPLETED"]
    assert left["status"] == "SQL_EXCEPTION"
    assert "name another one in surrogate-key" in capsys.readouterr().err


@pytest.mark.feature("INC-04", "INC-05", "INC-07")
def test_conditions_choose_rows_and_a_surrogate_key_orders_a_table_without_a_key(empty: Place):
    empty.create("orders", "id int NOT NULL PRIMARY KEY, color varchar(10) NULL")
    empty.sql("INSERT INTO dbo.orders SELECT value, IIF(value % 2 = 0, 'blue', 'red') FROM GENERATE_SERIES(1, 9)")
    empty.create("notes", "id int NULL, note nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.notes VALUES (1, N'a'), (1, N'b'), (1, N'c'), (1, N'd'), (2, N'e'), (NULL, N'f')")
    empty.settle()
    assert empty.catch_up() == 0
    orders = f"{empty.database}.dbo.orders"
    ask(empty, "i1", "orders", **{"additional-conditions": [{"data-collection": orders, "filter": "color = 'blue'"}]})
    ask(empty, "i2", "notes", **{"surrogate-key": "id"})
    ask(empty, "i3", "notes")
    bad = {"data-collection": orders, "filter": "id IN (SELECT id FROM dbo.notes)"}
    ask(empty, "i4", "orders", **{"additional-conditions": [bad]})
    assert empty.catch_up() == 0
    assert [row["id"] for row in empty.query(READS, "orders", "changes")] == [2, 4, 6, 8]
    found = empty.query("SELECT after.note AS note FROM t WHERE op = 'r'", "notes", "changes")
    assert sorted(row["note"] for row in found) == list("abcdef")
    assert [one for one in notes(empty) if "COMPLETED " in one] == [
        "TABLE_SCAN_COMPLETED SUCCEEDED",
        "TABLE_SCAN_COMPLETED SUCCEEDED",
        "TABLE_SCAN_COMPLETED NO_PRIMARY_KEY",
        "TABLE_SCAN_COMPLETED SQL_EXCEPTION",
    ]


@pytest.mark.feature("INC-05", "INC-09")
def test_an_insert_beside_a_chunk_leaves_rows_whose_surrogate_key_is_null(empty: Place):
    """An insert has no image before it, which counted as one of a row with NULL: that row was never emitted."""
    empty.create("notes", "id int NULL, note nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.notes VALUES (1, N'a'), (NULL, N'b')")
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", "notes", **{"surrogate-key": "id"})

    def insert() -> None:
        empty.sql("INSERT INTO dbo.notes VALUES (7, N'c')")

    with happening_at("mssql_cdc.follow.incremental_step.read_group", 1, insert, after=True):
        assert empty.catch_up() == 0
    found = empty.query("SELECT after.note AS note FROM t WHERE op = 'r'", "notes", "changes")
    assert sorted(row["note"] for row in found) == ["a", "b"]
    assert empty.check() == 0


@pytest.mark.sandbox
@pytest.mark.feature("INC-04", "INC-06")
def test_a_condition_steps_over_the_rows_that_nobody_wants(empty: Place):
    empty.create("orders", "id int NOT NULL PRIMARY KEY, color varchar(10) NULL")
    empty.sql("INSERT INTO dbo.orders SELECT value, IIF(value = 70, 'blue', 'red') FROM GENERATE_SERIES(1, 200)")
    empty.settle()
    assert empty.catch_up() == 0
    orders = f"{empty.database}.dbo.orders"
    empty.sql("EXEC sandbox.statement_log")
    for id_, color in (("i1", "blue"), ("i2", "green")):
        condition = {"data-collection": orders, "filter": f"t.color = '{color}'"}
        ask(empty, id_, "orders", **{"additional-conditions": [condition]})
    assert empty.catch_up() == 0
    assert [row["id"] for row in empty.query(READS, "orders", "changes")] == [70]
    assert [one for one in notes(empty) if one.startswith(("IN", "TABLE"))] == [
        "IN_PROGRESS",
        "TABLE_SCAN_COMPLETED SUCCEEDED",
        "TABLE_SCAN_COMPLETED EMPTY",
    ]
    read = [text for text in statements(empty, "SELECT") if "FROM [dbo].[orders]" in text]
    # The largest key, the end of the chunk, the chunk; the largest key of none.
    assert len(read) == 4, read
    assert [text for text in read if text.rstrip().endswith("OPTION (RECOMPILE)")], (
        "incremental.snapshot.option.recompile"
    )


@pytest.mark.feature("INC-01")
def test_rows_that_went_uncaptured_are_swept_though_the_table_is_empty_now(place: Place):
    """CDC captures no switch of a partition; the snapshot of an empty table ended without a sweep."""
    place.create_sales()
    place.settle()
    assert place.catch_up() == 0
    place.sql("DELETE dbo.sales WHERE id >= 100", "ALTER TABLE dbo.sales SWITCH PARTITION 1 TO dbo.aside")
    assert place.command("snapshot", "--incremental", "--table", "dbo.sales") == 0
    assert place.catch_up() == 0
    assert place.catch_up() == 0
    assert place.query("SELECT id FROM t", "sales") == []
    assert place.check() == 0
    assert notes(place)[-2:] == ["TABLE_SCAN_COMPLETED EMPTY", "COMPLETED"]
    place.sql("INSERT INTO dbo.sales VALUES (5, 5)")
    assert place.catch_up() == 0
    assert place.check() == 0


def test_command_requests_snapshots_and_a_quiet_database_shows_their_rows(place: Place):
    """Nothing else happens in the database, so nothing else would make a complete cut of them."""
    place.configure(snapshot_mode="no_data")
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two'), (3, N'three')")
    place.settle()
    assert place.catch_up() == 0
    assert place.command("snapshot", "--incremental", "--table", "dbo.nothing") == 2
    assert place.command("snapshot", "--incremental", "--table", "dbo.orders", "--where", "id < 3; DROP TABLE x") == 2
    assert place.command("snapshot", "--incremental", "--table", "dbo.orders", "--where", "id < 3") == 0
    assert place.command("snapshot", "--pause") == 0
    assert place.catch_up() == 0
    assert not is_there(place, "orders")
    assert place.command("snapshot", "--resume") == 0
    assert place.catch_up() == 0
    assert place.query("SELECT id FROM t ORDER BY id", "orders") == [{"id": 1}, {"id": 2}]


KEYS = {
    "composite": ("a int NOT NULL, b nvarchar(20) NOT NULL", "a, b", "value % 3, CONCAT(N'k', value)"),
    "text": ("a varchar(20) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL", "a", "CONCAT('k-', value)"),
    "guid": ("a uniqueidentifier NOT NULL", "a", "NEWID()"),
    "time": ("a datetime NOT NULL", "a", "DATEADD(millisecond, 7 * value, '2024-01-01')"),
    "binary": ("a varbinary(8) NOT NULL", "a", "CAST(value AS varbinary(8))"),
    "number": ("a decimal(12, 3) NOT NULL", "a", "value * 1.5"),
    "hierarchy": ("node hierarchyid NOT NULL", "node", "CONCAT('/', value % 3, '/', value, '.1/')"),
}


@pytest.mark.feature("INC-16")
def test_chunks_of_any_kind_of_key_cover_the_table(empty: Place):
    for name, (columns, key, values) in KEYS.items():
        empty.create(name, f"{columns}, note nvarchar(20) NULL, PRIMARY KEY ({key})")
        empty.sql(f"INSERT INTO dbo.[{name}] SELECT {values}, N'x' FROM GENERATE_SERIES(1, 20)")
    empty.create("nobody", "id int NOT NULL PRIMARY KEY")
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", *KEYS, "nobody")
    assert empty.catch_up() == 0
    for name in KEYS:
        assert empty.query("SELECT COUNT(*) AS n FROM t", name) == [{"n": 20}]
    assert "TABLE_SCAN_COMPLETED EMPTY" in notes(empty)
    empty.sql("INSERT INTO dbo.nobody VALUES (1)")  # A table without any row has no current table.
    assert empty.catch_up() == 0
    assert empty.check() == 0


@pytest.mark.feature("EVO-10", "INC-18")
def test_table_that_gets_another_structure_is_read_on(empty: Place):
    empty.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.orders SELECT value, N'order' FROM GENERATE_SERIES(1, 20)")
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", "orders")
    with ExitStack() as stack:
        stack.enter_context(patch("mssql_cdc.capture.incremental.chunks.GROUP_ROWS", 3))
        stack.enter_context(patch("mssql_cdc.follow.incremental_step.MOST_STAGED", 2))
        with killed_at("mssql_cdc.capture.incremental.emission.commit", 2, after=False), pytest.raises(Killed):
            empty.catch_up()
        empty.sql("ALTER TABLE dbo.orders ADD color varchar(10) NULL")
        empty.enable("orders", instance="orders_2")
        empty.sql("UPDATE dbo.orders SET color = 'blue' WHERE id IN (1, 20)")
        empty.settle()
        assert empty.catch_up() == 0
    assert empty.check() == 0
    assert empty.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 20}]


@pytest.mark.feature("INC-19")
def test_table_that_cannot_be_read_is_left_and_the_next_one_follows(empty: Place):
    empty.create("broken", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.broken VALUES (1, N'one')")
    empty.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.orders VALUES (1, N'one')")
    empty.settle()
    assert empty.catch_up() == 0
    broken = f"{empty.database}.dbo.broken"
    wrong = [{"data-collection": broken, "filter": "no_such_column = 1"}]
    ask(empty, "i1", "broken", "orders", **{"additional-conditions": wrong})
    assert empty.catch_up() == 0
    assert [row["id"] for row in empty.query(READS, "orders", "changes")] == [1]
    assert "TABLE_SCAN_COMPLETED SQL_EXCEPTION" in notes(empty)


@pytest.mark.feature("EVT-25", "INC-20")
def test_records_show_the_rows_as_those_of_an_incremental_snapshot(empty: Place):
    empty.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", "orders")
    assert empty.catch_up() == 0
    output = empty.folder / "records.jsonl"
    assert empty.command("records", "--output", str(output)) == 0
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    orders = [one["value"] for one in records if one["topic"].endswith(".dbo.orders")]
    assert [(one["op"], one["after"]["id"], one["source"]["snapshot"]) for one in orders] == [
        ("r", 1, "incremental"),
        ("r", 2, "incremental"),
    ]


@pytest.mark.feature("NOT-04", "NOT-07")
def test_keys_are_told_as_debezium_writes_them(empty: Place):
    empty.create("lines", "code nvarchar(20) NOT NULL, number int NOT NULL, PRIMARY KEY (code, number)")
    empty.sql("INSERT INTO dbo.lines VALUES (N'Ärger', 1), (N'Ärger', 2), (N'Zöllner, A', 7)")
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", "lines")
    assert empty.catch_up() == 0
    told = own_rows(empty, "notifications", "SELECT additional_data FROM t WHERE type = 'IN_PROGRESS'")
    data = dict(told[-1]["additional_data"])
    assert (data["last_processed_key"], data["maximum_key"]) == ("Zöllner, A,7", "Zöllner, A,7")
    assert data["data_collections"] == f"{empty.database}.dbo.lines"


@pytest.mark.feature("INC-03", "NOT-04")
def test_a_name_without_a_table_is_told_as_a_table_without_a_schema(empty: Place):
    empty.create("orders", "id int NOT NULL PRIMARY KEY")
    empty.settle()
    assert empty.catch_up() == 0
    ask(empty, "i1", "nothing")
    assert empty.catch_up() == 0
    assert notes(empty) == ["STARTED", "TABLE_SCAN_COMPLETED UNKNOWN_SCHEMA", "COMPLETED"]
    (signal,) = own_rows(empty, "signals", "SELECT status, result FROM t")
    assert signal["status"] == "ignored"
    assert f"{empty.database}.dbo.nothing" in signal["result"]


def test_a_snapshot_waits_for_its_hours_and_nothing_waits_for_it(empty: Place):
    """The run ends, and the next one reads as soon as it is time."""
    empty.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    empty.sql("INSERT INTO dbo.orders SELECT value, N'order' FROM GENERATE_SERIES(1, 20)")
    empty.settle()
    properties = {
        "signal_data_collection": f"{empty.database}.dbo.signals",
        "snapshot_mode": "no_data",
        "incremental_snapshot_chunk_size": "3",
    }
    then = datetime.now(UTC) + timedelta(hours=6)
    empty.configure(**properties, incremental_snapshot_hours=f"{then:%H:%M}-{then + timedelta(hours=2):%H:%M}")
    assert empty.catch_up() == 0
    ask(empty, "i1", "orders")
    empty.sql("INSERT INTO dbo.orders VALUES (21, N'streamed')")
    assert empty.catch_up() == 0
    assert [row["op"] for row in empty.query("SELECT op FROM t", "orders", "changes")] == ["c"]
    empty.configure(
        **properties, incremental_snapshot_max_rows_per_second="10", incremental_snapshot_max_lag_seconds="60"
    )
    assert empty.catch_up() == 0
    assert len(empty.query(READS, "orders", "changes")) == 21
    assert empty.check() == 0


CHUNKS = "SELECT op FROM t WHERE _snapshot LIKE 'incremental:%'"


def said_while_it_waits(place: Place, capsys: pytest.CaptureFixture[str]) -> str:
    """Request a snapshot that may not be read now; what a run says that reads nothing of it."""
    assert place.command("snapshot", "--incremental", "--tables", "dbo.orders") == 0
    place.command("run", "--seconds", "3")
    assert place.query(CHUNKS, "orders", "changes") == []
    return capsys.readouterr().err


@pytest.mark.feature("INC-01")
@pytest.mark.sandbox
def test_a_snapshot_of_an_idle_database_deletes_no_row(place: Place):
    """The rows get the position of the stream, and the log has two rows of its own behind that."""
    place.create_orders()
    place.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.settle()
    assert place.catch_up() == 0
    for _ in range(3):
        place.sql("EXEC sandbox.advance_clock @seconds = 400")
        place.settle()
    assert place.command("snapshot", "--incremental", "--tables", "dbo.orders") == 0
    for _ in range(2):
        assert place.catch_up() == 0
        place.settle()
    assert len(place.query(CHUNKS, "orders", "changes")) == 2
    place.sql("INSERT INTO dbo.people VALUES (1, N'one')")
    place.settle()
    for _ in range(2):
        assert place.catch_up() == 0
    assert place.query("SELECT op FROM t WHERE op = 'd'", "orders", "changes") == []
    assert place.check() == 0


@pytest.mark.feature("INC-01")
@pytest.mark.sandbox
def test_a_snapshot_ends_on_an_idle_log_at_whose_end_a_table_was_read_whole(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """All positions stand there, behind whatever is captured; the storm's seed 9520004 waited for ever."""
    place.create_orders()
    place.settle()
    assert place.catch_up() == 0
    place.sql("CREATE TABLE dbo.uncaptured (id int)", "INSERT INTO dbo.uncaptured VALUES (1)")
    place.create("lines", "id int NOT NULL, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.lines VALUES (1, N'one')")
    place.settle()
    place.sql("INSERT INTO dbo.uncaptured VALUES (2)")  # So that the log ends behind the newest change.
    assert place.catch_up() == 0
    place.settle()
    assert place.catch_up() == 0
    assert place.command("snapshot", "--incremental", "--tables", "dbo.orders") == 0
    capsys.readouterr()
    for _ in range(2):
        assert place.catch_up() == 0
        place.settle()
    assert "replica" not in capsys.readouterr().out
    assert len(place.query(CHUNKS, "orders", "changes")) == 2
    assert place.check() == 0


@pytest.mark.sandbox
def test_a_snapshot_waits_while_a_secondary_replica_is_far_behind(place: Place, capsys: pytest.CaptureFixture[str]):
    place.configure(incremental_snapshot_max_lag_seconds="60")
    place.create_orders()
    place.sql("EXEC sandbox.replica_lag @seconds = 3600", "INSERT INTO dbo.orders VALUES (3, N'not there yet')")
    try:
        place.sql("EXEC sandbox.advance_clock @seconds = 300")
        place.settle()
        assert "the incremental snapshot waits: a secondary replica is 3" in said_while_it_waits(place, capsys)
    finally:
        place.sql("EXEC sandbox.replica_drop")
    assert place.catch_up() == 0
    assert len(place.query(CHUNKS, "orders", "changes")) == 3


@pytest.mark.sandbox
def test_a_snapshot_waits_while_capture_stands_still(place: Place, capsys: pytest.CaptureFixture[str]):
    place.configure(incremental_snapshot_max_lag_seconds="60")
    place.create_orders()
    place.sql("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 300")
    try:
        assert "the incremental snapshot waits: the stream is 3" in said_while_it_waits(place, capsys)
    finally:
        place.sql("EXEC sandbox.agent_start")
    place.settle()
    assert place.catch_up() == 0
    assert len(place.query(CHUNKS, "orders", "changes")) == 2


def test_a_staged_row_that_a_repair_has_deleted_meanwhile_does_not_come_back(signalled: Place):
    """Nothing captured says that it is gone: it was switched out, and only the repair knows."""
    place = signalled
    place.create_sales()
    place.settle()
    assert place.catch_up() == 0
    ask(place, "i1", "sales")
    with killed_at("mssql_cdc.capture.incremental.emission.commit", 1, after=False), pytest.raises(Killed):
        place.catch_up()
    place.sql("ALTER TABLE dbo.sales SWITCH PARTITION 2 TO dbo.aside", "INSERT dbo.sales VALUES (3, 3)")
    place.settle()
    assert place.command("check", "--repair") == 0
    assert [row["id"] for row in place.query("SELECT id FROM t ORDER BY id", "sales")] == [1, 2, 3]
    assert place.catch_up() == 0
    assert [row["id"] for row in place.query("SELECT id FROM t ORDER BY id", "sales")] == [1, 2, 3]
    assert place.check() == 0


def test_the_deletes_of_a_sweep_are_written_once_although_a_repair_commits_after_them(signalled: Place, spark: Any):
    """The current table does not have them yet, and the newest commit beside the stream's is not the sweep's."""
    place = signalled
    table = f"delta.`{place.uri('orders')}`"
    spark.sql(f"UPDATE {table} SET name = 'wrong' WHERE id = 1").collect()

    def swept() -> None:
        spark.sql(
            f"INSERT INTO {table} SELECT 1000000, 'extra', '7:1000000', _pos, _batch, _exact, _unavailable "
            f"FROM {table} WHERE id = 2"
        ).collect()
        ask(place, "i1", "orders")
        place.settle()
        with killed_at("mssql_cdc.follow.sweeps.commit", 1, after=True), pytest.raises(Killed):
            place.catch_up()

    found: list[int] = []
    with (
        happening_at("mssql_cdc.check.repair._stage", 1, swept, after=True),
        happening_at("mssql_cdc.check.repair.merge_table", 1, lambda: found.append(place.catch_up())),
    ):
        place.command("check", "--repair")
    assert found == [0]
    deletes = place.query("SELECT _key FROM t WHERE _snapshot LIKE 'sweep:%'", "orders", "changes")
    assert [row["_key"] for row in deletes] == ["7:1000000"]
    assert place.query("SELECT id FROM t ORDER BY id", "orders") == [{"id": 1}, {"id": 2}]
    assert place.check() == 0


@pytest.mark.feature("BLK-06")
def test_a_blocking_snapshot_whose_only_table_cannot_be_planned_is_answered_and_told_once(
    signalled: Place, capsys: pytest.CaptureFixture[str]
):
    """It began again with each step, and told of its begin and end each time."""
    place = signalled
    place.create("people", "mail nvarchar(40) NOT NULL PRIMARY KEY")
    place.configure(
        signal_data_collection=f"{place.database}.dbo.signals",
        snapshot_mode="no_data",
        column_mask_with_3_chars="dbo.people.mail",
    )
    place.settle()
    assert place.catch_up() == 0
    place.signal("s1", type="blocking", **{"data-collections": [f"{place.database}.dbo.people"]})
    for _ in range(2):
        place.settle()
        place.catch_up()
    assert "set delta.key.secret" in capsys.readouterr().err
    query = "SELECT type FROM t WHERE id = 's1' ORDER BY _batch, timestamp_ms"
    assert [row["type"] for row in own_rows(place, "notifications", query)] == [
        "STARTED",
        "TABLE_SCAN_COMPLETED",
        "ABORTED",
    ]
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.settle()
    assert place.catch_up() == 0


@pytest.mark.parametrize("how", ["removed", "restored"])
def test_signals_do_not_take_effect_again_when_the_state_of_the_snapshots_is_gone(
    signalled: Place, capsys: pytest.CaptureFixture[str], how: str
):
    place = signalled
    ask(place, "i1", "orders")
    place.settle()
    assert place.catch_up() == 0
    assert len(place.query(READS, "orders", "changes")) == 4
    states = f"{place.warehouse}/shop/{place.database}/_incremental_snapshots"
    if how == "removed":
        shutil.rmtree(states)
    else:
        DeltaTable(states).restore(1)
    capsys.readouterr()
    for _ in range(2):
        assert place.catch_up() == 0
    assert capsys.readouterr().err.count("signals until now do not take effect again") == 1
    assert len(place.query(READS, "orders", "changes")) == 4
    ask(place, "i2", "orders")
    place.settle()
    assert place.catch_up() == 0
    assert len(place.query(READS, "orders", "changes")) == 6
    assert place.check() == 0
