"""What `mssql-cdc check` proves, what it finds and what it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.check import keyed_table, repair
from mssql_cdc.check.check_tables import check_table
from mssql_cdc.check.looked import look_at
from mssql_cdc.config import load_connector
from mssql_cdc.errors import SourceError
from mssql_cdc.run.databases import open_databases
from mssql_cdc.source.registry import open_check_source
from mssql_cdc.source.sqlserver.check_session import SqlServerCheckSession
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.load import writing
from mssql_cdc_tests.end_to_end.test_types import COLUMNS
from mssql_cdc_tests.storm.lake import happening_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NUMBERS = {
    "before": {
        "wider": "decimal(9,2)",
        "narrower": "decimal(9,3)",
        "from_money": "money",
        "to_money": "decimal(9,2)",
        "small": "smallmoney",
    },
    "after": {
        "wider": "decimal(12,4)",
        "narrower": "decimal(9,1)",
        "from_money": "decimal(19,2)",
        "to_money": "money",
        "small": "money",
    },
}
"""Columns of numbers, with values that both types hold."""


def results(place: Place, capsys: pytest.CaptureFixture[str], *, code: int) -> dict[str, Any]:
    """What `check --json` prints, and that it ends with this code."""
    capsys.readouterr()
    found = place.command("check", "--json")
    shown = capsys.readouterr()
    assert found == code, shown.out + shown.err
    return json.loads(shown.out)


def result(place: Place, capsys: pytest.CaptureFixture[str], name: str, *, code: int) -> dict[str, Any]:
    """The result of one table."""
    found = results(place, capsys, code=code)
    (one,) = (entry for entry in found["tables"] if entry["table"] == f"{place.database}.dbo.{name}")
    return one


def widen(place: Place, table: str) -> None:
    """From int to bigint, as SQL Server allows it on a captured column, with a value that needs it."""
    place.sql(f"ALTER TABLE dbo.{table} ALTER COLUMN amount bigint NULL")
    place.sql(f"INSERT INTO dbo.{table} VALUES (3, 3000000000)")


@pytest.mark.long
def test_a_widened_column_is_compared(place: Place, capsys: pytest.CaptureFixture[str], spark: Any):
    """Review, bug 13: DataFusion cannot open such a table, and the command ended there."""
    place.create("amounts", "id int NOT NULL PRIMARY KEY, amount int NULL")
    place.sql("INSERT INTO dbo.amounts VALUES (1, 1), (2, 2)")
    place.settle()
    assert place.catch_up() == 0
    widen(place, "amounts")
    place.sql("DELETE FROM dbo.amounts WHERE id = 2")
    assert place.catch_up() == 0
    found = result(place, capsys, "amounts", code=0)
    assert (found["result"], found["source_rows"], found["lake_rows"]) == ("equal", 2, 2)
    spark.sql(f"UPDATE delta.`{place.uri('amounts')}` SET amount = 4 WHERE id = 1").collect()
    assert "key 1: differs in amount" in result(place, capsys, "amounts", code=5)["differences"]


@pytest.mark.parametrize("key", ["PRIMARY KEY", pytest.param("", marks=pytest.mark.long)], ids=["keyed", "keyless"])
def test_a_number_is_compared_in_the_scale_that_its_column_has_now(
    place: Place, capsys: pytest.CaptureFixture[str], key: str, spark: Any
):
    """The lake printed it in its own scale, so that every row of a quiet table differed behind an ALTER."""
    before, after = NUMBERS["before"], NUMBERS["after"]
    place.create(
        "prices", f"id int NOT NULL {key}, " + ", ".join(f"{name} {kind} NULL" for name, kind in before.items())
    )
    place.sql("INSERT INTO dbo.prices VALUES (1, 1.5, 2, -3.25, 4, 5), (2, NULL, NULL, NULL, NULL, NULL)")
    place.settle()
    assert place.catch_up() == 0
    place.sql(*(f"ALTER TABLE dbo.prices ALTER COLUMN {name} {kind} NULL" for name, kind in after.items()))
    found = result(place, capsys, "prices", code=0)
    assert (found["result"], found["source_rows"]) == ("equal", 2)
    assert [note for note in found["notes"] if note.startswith("wider: decimal(9, 2) in the lake, decimal(12, 4)")]
    if key:
        spark.sql(f"UPDATE delta.`{place.uri('prices')}` SET wider = 1.51, narrower = 2.001 WHERE id = 1").collect()
        found = result(place, capsys, "prices", code=5)
        assert found["differences"] == ["key 1: differs in wider, narrower"]
        return
    place.sql("DELETE FROM dbo.prices WHERE id = 2")
    place.settle()
    assert place.catch_up() == 0
    assert result(place, capsys, "prices", code=0)["source_rows"] == 1


def test_what_is_not_looked_at_is_named(place: Place, capsys: pytest.CaptureFixture[str]):
    place.configure(column_exclude_list="dbo.orders.secret", table_exclude_list="dbo.hidden")
    place.sql("CREATE TABLE dbo.uncaptured (id int)")
    place.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, name nvarchar(50), secret int, later int)")
    place.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', @role_name = NULL, "
        "@captured_column_list = N'id, name, secret'"
    )
    place.create("hidden", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one', 1, 1)")
    place.settle()
    assert place.catch_up() == 0
    found = results(place, capsys, code=0)
    (orders,) = found["tables"]
    assert orders["not_compared"] == ["secret (excluded)", "later (not captured)"]
    assert found["not_captured"] == [f"{place.database}.dbo.uncaptured"]
    assert found["left_out_by_filters"] == [f"{place.database}.dbo.hidden"]
    assert place.check() == 0
    shown = capsys.readouterr().out
    assert f"not captured: {place.database}.dbo.uncaptured" in shown
    assert "later (not captured)" in shown


def test_cells_that_cdc_never_delivered_are_named_and_the_rest_of_their_rows_is_compared(
    place: Place, spark: Any, capsys: pytest.CaptureFixture[str]
):
    """A server need not deliver an ntext that an update leaves alone, and no snapshot has read these rows."""
    place.configure(snapshot_mode="no_data")
    place.create("notes", "id int NOT NULL PRIMARY KEY, n int NULL, body ntext NULL, picture image NULL")
    place.sql("INSERT INTO dbo.notes VALUES (1, 1, N'one', 0x01), (2, 2, N'two', 0x02)")
    place.settle()
    assert place.catch_up() == 0
    place.sql(
        "UPDATE dbo.notes SET n = 9 WHERE id = 1",
        "UPDATE dbo.notes SET n = 9, picture = 0x03 WHERE id = 2",
        "INSERT INTO dbo.notes VALUES (3, 3, N'three', 0x03)",
    )
    place.settle()
    left_alone = "UPDATE cdc.dbo_notes_CT SET {column} = NULL WHERE [__$operation] = 4 AND id <= {last}"
    place.sql(left_alone.format(column="body", last=2), left_alone.format(column="picture", last=1))
    assert place.catch_up() == 0
    found = place.query("SELECT id, n, body, picture FROM t ORDER BY id", "notes")
    assert [tuple(row.values()) for row in found] == [
        (1, 9, None, None),
        (2, 9, None, b"\x03"),
        (3, 3, "three", b"\x03"),
    ]
    (notes,) = results(place, capsys, code=0)["tables"]
    assert (notes["result"], notes["source_rows"]) == ("equal", 3)
    assert notes["not_compared"] == ["cells of body, picture in 2 rows (never delivered by CDC)"]
    assert place.check() == 0
    assert "cells of body, picture in 2 rows (never delivered by CDC)" in capsys.readouterr().out
    spark.sql(f"UPDATE delta.`{place.uri('notes')}` SET n = 8, picture = X'04' WHERE id <= 2").collect()
    (notes,) = results(place, capsys, code=5)["tables"]
    assert notes["differences"] == ["key 1: differs in n", "key 2: differs in n, picture"]
    place.sql("UPDATE dbo.notes SET n = 7, body = N'eins', picture = 0x0101")
    place.settle()
    assert place.catch_up() == 0
    (notes,) = results(place, capsys, code=0)["tables"]
    assert (notes["result"], notes["not_compared"]) == ("equal", [])


def test_a_table_that_is_gone_is_named_and_ends_with_code_4(orders: Place, capsys: pytest.CaptureFixture[str]):
    orders.create("people", "id int NOT NULL PRIMARY KEY")
    orders.settle()
    assert orders.catch_up() == 0
    orders.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'people', @capture_instance = N'all'"
    )
    found = {one["table"].rsplit(".", 1)[1]: one["result"] for one in results(orders, capsys, code=4)["tables"]}
    assert found == {"orders": "equal", "people": "gone"}


def test_one_tables_error_is_its_own(orders: Place, capsys: pytest.CaptureFixture[str]):
    """A table whose files are gone cannot be compared; the others are, and the command says both."""
    orders.create("people", "id int NOT NULL PRIMARY KEY")
    orders.sql("INSERT INTO dbo.people VALUES (1)")
    orders.settle()
    assert orders.catch_up() == 0
    for file in (orders.warehouse / "shop" / orders.database / "dbo" / "people" / "current").glob("*.parquet"):
        file.unlink()
    found = {one["table"].rsplit(".", 1)[1]: one for one in results(orders, capsys, code=2)["tables"]}
    assert found["orders"]["result"] == "equal"
    assert found["people"]["result"] == "error"
    assert "cannot be read" in found["people"]["error"]


def test_a_current_table_that_cannot_be_updated_is_not_equal(
    orders: Place, capsys: pytest.CaptureFixture[str], spark: Any
):
    """What its change log adds up to took the place of the row that it lacks, and the merge's error was forgotten."""
    table = f"delta.`{orders.uri('orders')}`"
    orders.create("people", "id int NOT NULL PRIMARY KEY")
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT few CHECK (id < 3)")
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')", "INSERT INTO dbo.people VALUES (1)")
    orders.settle()
    failed = orders.catch_up()
    assert failed != 0
    found = {one["table"].rsplit(".", 1)[1]: one for one in results(orders, capsys, code=failed)["tables"]}
    assert (found["orders"]["result"], found["orders"]["differences"]) == ("error", [])
    assert (found["orders"]["source_rows"], found["orders"]["lake_rows"]) == (3, 2)
    assert "the current table could not be updated" in found["orders"]["error"]
    assert found["people"]["result"] == "equal"
    spark.sql(f"UPDATE {table} SET name = 'wrong' WHERE id = 1").collect()
    assert result(orders, capsys, "orders", code=5)["differences"] == ["key 1: differs in name"]
    spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT few")
    spark.sql(f"UPDATE {table} SET name = 'one' WHERE id = 1").collect()
    assert result(orders, capsys, "orders", code=0)["lake_rows"] == 3


def test_what_was_found_of_the_rows_stands_when_the_change_log_cannot_be_looked_at(
    orders: Place, capsys: pytest.CaptureFixture[str], spark: Any
):
    """Review: the finished comparison was lost with the error, after all of its work."""
    for file in (orders.warehouse / "shop" / orders.database / "dbo" / "orders" / "changes").rglob("*.parquet"):
        file.unlink()
    found = result(orders, capsys, "orders", code=2)
    assert (found["result"], found["source_rows"], found["lake_rows"]) == ("error", 2, 2)
    assert "the change log could not be examined" in found["error"]
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    assert orders.catch_up() == 0
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong' WHERE id = 1").collect()
    found = result(orders, capsys, "orders", code=5)
    assert (found["result"], found["differences"]) == ("differs", ["key 1: differs in name"])
    assert "the change log could not be examined" in found["error"]


def test_a_renamed_table_that_was_written_to_during_its_snapshot_stays_equal(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """The snapshot was found by the recorded name, so the event behind its row was judged, and differed for ever."""
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
    place.settle()

    def meanwhile() -> None:
        place.sql("UPDATE dbo.orders SET name = N'new' WHERE id = 1")

    with happening_at("mssql_cdc.capture.snapshot.chunk_groups._read_group", 1, meanwhile):
        assert place.catch_up() == 0
    place.settle()
    assert place.catch_up() == 0
    ops = place.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")
    assert [row["op"] for row in ops] == ["r", "r", "u"]
    assert result(place, capsys, "orders", code=0)["result"] == "equal"
    place.sql("EXEC sp_rename N'dbo.orders', N'purchases'")
    assert result(place, capsys, "purchases", code=0)["change_log"] == []
    place.sql("INSERT INTO dbo.purchases VALUES (3, N'three')")
    place.settle()
    assert place.catch_up() == 0
    assert result(place, capsys, "purchases", code=0)["change_log"] == []


def test_a_row_that_changes_while_it_is_compared_is_no_difference(orders: Place, capsys: pytest.CaptureFixture[str]):
    """The source does not rest: two rows change all the time, and one cell of the lake is wrong."""
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 200)")
    orders.settle()
    assert orders.catch_up() == 0
    with moving(orders):
        found = result(orders, capsys, "orders", code=0)
    assert found["result"] == "equal"


def test_a_wrong_cell_is_found_while_the_source_moves(orders: Place, capsys: pytest.CaptureFixture[str], spark: Any):
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 200)")
    orders.settle()
    assert orders.catch_up() == 0
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong' WHERE id = 77").collect()
    with moving(orders):
        found = result(orders, capsys, "orders", code=5)
    assert found["differences"] == ["key 77: differs in name"]


@pytest.mark.long
def test_a_table_that_differs_everywhere_is_not_compared_to_its_end(
    orders: Place, capsys: pytest.CaptureFixture[str], spark: Any, monkeypatch: pytest.MonkeyPatch
):
    """Memory: rows that differ are held bucket group by bucket group, and not without end."""
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 200)")
    orders.settle()
    assert orders.catch_up() == 0
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong'").collect()
    monkeypatch.setattr(keyed_table, "HELD_ROWS", 10)
    monkeypatch.setattr(keyed_table, "RANGE_ROWS", 100)
    assert len(result(orders, capsys, "orders", code=5)["differences"]) == 202
    monkeypatch.setattr(keyed_table, "MOST_DIFFERENCES", 20)
    capsys.readouterr()
    assert orders.command("check", "--json") == 5
    shown = capsys.readouterr()
    (found,) = json.loads(shown.out)["tables"]
    assert 20 < len(found["differences"]) < 202
    assert [note for note in found["notes"] if "rows differ and the rest was not compared" in note]
    assert "orders (rows) (100 of 202 done)" in shown.err


def test_a_keyless_table_is_compared_while_the_source_moves(place: Place, capsys: pytest.CaptureFixture[str]):
    place.create("orders", "id int NULL, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
    place.settle()
    assert place.catch_up() == 0
    with moving(place):
        found = result(place, capsys, "orders", code=0)
    assert found["result"] == "equal"


def test_rows_that_are_held_under_a_lock_are_not_kept_in_memory(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Review: a table of 50 million rows took 25 GB, while its writers waited."""
    place.create("orders", "id int NULL, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.orders SELECT value, N'row' FROM GENERATE_SERIES(1, 20000)")
    place.settle()
    assert place.catch_up() == 0
    alive, most = 0, 0

    class Counted(tuple[str | None, ...]):
        __slots__ = ()

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    held = SqlServerCheckSession.held

    @contextmanager
    def watched(*arguments: Any) -> Iterator[Iterator[tuple[str | None, ...]]]:
        def counted(rows: Iterator[tuple[str | None, ...]]) -> Iterator[tuple[str | None, ...]]:
            nonlocal alive, most
            for row in rows:
                alive, most = alive + 1, max(most, alive + 1)
                yield Counted(row)

        with held(*arguments) as rows:
            yield counted(rows)

    monkeypatch.setattr(SqlServerCheckSession, "held", watched)
    with moving(place):
        assert result(place, capsys, "orders", code=0)["result"] == "equal"
    assert 0 < most < 10_000


def test_a_keyless_table_is_compared_but_for_the_columns_that_its_images_lack(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """CDC delivers no ntext of a deleted row: what its images add up to differed for ever."""
    place.create("notes", "id int NULL, body ntext NULL")
    place.sql("INSERT INTO dbo.notes VALUES (1, N'one'), (2, N'two'), (3, N'three')")
    place.settle()
    assert place.catch_up() == 0
    assert result(place, capsys, "notes", code=0)["not_compared"] == []
    place.sql("DELETE FROM dbo.notes WHERE id = 1", "UPDATE dbo.notes SET body = N'zwei' WHERE id = 2")
    found = result(place, capsys, "notes", code=0)
    assert (found["result"], found["source_rows"], found["lake_rows"]) == ("equal", 2, 2)
    assert found["not_compared"] == ["body (CDC does not deliver it with every change)"]
    place.sql("INSERT INTO dbo.notes VALUES (4, N'four')")
    place.settle()
    place.sql("DELETE FROM cdc.dbo_notes_CT WHERE id = 4")
    assert place.catch_up() == 0
    found = result(place, capsys, "notes", code=5)
    assert found["differences"] == ["key (no key): missing in the lake"]


def test_bytes_of_every_type_are_made_again_so_that_equal_rows_stay_at_the_source(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    columns = [column for column in COLUMNS if column[1] != "sql_variant"]
    declared = ", ".join(f"{name} {kind} NULL" for name, kind, _, _ in columns)
    place.create("everything", f"id int NOT NULL PRIMARY KEY, v rowversion, {declared}")
    for key in (1, 2):
        names = ", ".join(column[0] for column in columns)
        values = ", ".join(column[1 + key] for column in columns)
        place.sql(f"INSERT INTO dbo.everything (id, {names}) VALUES ({key}, {values})")
    place.sql("INSERT INTO dbo.everything (id) VALUES (3)")
    place.settle()
    assert place.catch_up() == 0
    found = result(place, capsys, "everything", code=0)
    assert (found["result"], found["source_rows"], found["fetched_rows"]) == ("equal", 3, 0)


def test_repair_reads_only_the_rows_that_differ(orders: Place, capsys: pytest.CaptureFixture[str], spark: Any):
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 200)")
    orders.settle()
    assert orders.catch_up() == 0
    table = f"delta.`{orders.uri('orders')}`"
    spark.sql(f"UPDATE {table} SET name = 'wrong' WHERE id = 77").collect()
    spark.sql(f"DELETE FROM {table} WHERE id = 78").collect()
    spark.sql(
        f"INSERT INTO {table} SELECT 1000000, 'extra', '7:1000000', _pos, _batch, _exact, _unavailable "
        f"FROM {table} WHERE id = 79"
    ).collect()
    before = len(orders.query("SELECT op FROM t", "orders", "changes"))
    assert orders.check() == 5
    capsys.readouterr()
    with moving(orders):
        assert orders.command("check", "--repair", "--json") == 0
    found = json.loads(capsys.readouterr().out)["tables"][0]
    assert (found["result"], found["repaired_rows"]) == ("equal", 3)
    assert orders.catch_up() == 0
    mended = orders.query(
        "SELECT op, _key AS key, _snapshot AS mark FROM t WHERE _snapshot LIKE '%:%' ORDER BY _key", "orders", "changes"
    )
    assert [(row["op"], row["key"], row["mark"].split(":")[0]) for row in mended] == [
        ("r", "2:77", "repair"),
        ("r", "2:78", "repair"),
        ("d", "7:1000000", "sweep"),
    ]
    assert before > 200
    assert orders.command("check", "--repair") == 0
    assert len(orders.query("SELECT op FROM t WHERE _snapshot LIKE '%:%'", "orders", "changes")) == 3
    output = orders.folder / "records.jsonl"
    assert orders.command("records", "--output", str(output)) == 0
    records = [json.loads(line)["value"] for line in output.read_text(encoding="utf-8").splitlines()]
    assert not [value for value in records if value and (value.get("before") or {}).get("id") == 1000000]
    again = [value for value in records if value and value.get("source", {}).get("snapshot") == "incremental"]
    assert sorted((value["op"], value["after"]["id"]) for value in again) == [("r", 77), ("r", 78)]


def test_chunks_of_a_repair_wait_for_the_change_log_together(
    orders: Place, capsys: pytest.CaptureFixture[str], spark: Any
):
    """Each wait takes until capture has scanned again; three times fifty locked rows need one."""
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 200)")
    orders.settle()
    assert orders.catch_up() == 0
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong' WHERE id BETWEEN 21 AND 150").collect()
    capsys.readouterr()
    with moving(orders):
        assert orders.command("check", "--repair", "--json") == 0
    found = json.loads(capsys.readouterr().out)["tables"][0]
    assert (found["result"], found["repaired_rows"]) == ("equal", 130)
    rows = orders.query("SELECT _batch AS batch FROM t WHERE _snapshot LIKE 'repair:%'", "orders", "changes")
    assert len(rows) == 130
    assert len({row["batch"] for row in rows}) == 1
    assert orders.catch_up() == 0
    assert orders.check() == 0


def test_rows_that_a_repair_deletes_have_positions_of_their_own(
    orders: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Fifty at a time they were counted from 0, at the position where a quiet source's stream stands."""
    monkeypatch.setattr(repair, "STAGED_CHUNKS", 2)
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 130)")
    orders.settle()
    assert orders.catch_up() == 0
    orders.sql("DELETE FROM dbo.orders WHERE id > 10")
    orders.settle()
    orders.sql("DELETE FROM cdc.dbo_orders_CT WHERE [__$operation] = 1")
    capsys.readouterr()
    assert orders.command("check", "--repair", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["tables"]
    assert (found["result"], found["lake_rows"], found["repaired_rows"]) == ("equal", 2, 130)
    swept = orders.query("SELECT _pos AS position FROM t WHERE _snapshot LIKE 'sweep:%'", "orders", "changes")
    assert (len(swept), len({row["position"] for row in swept})) == (130, 130)


def test_a_repair_brings_back_no_row_that_went_since_it_was_read(
    orders: Place, capsys: pytest.CaptureFixture[str], spark: Any
):
    """The current table has forgotten its deletion when the repair's older row comes: that would be the only one."""
    orders.sql("INSERT INTO dbo.orders SELECT value + 10, N'row' FROM GENERATE_SERIES(1, 5)")
    orders.settle()
    assert orders.catch_up() == 0
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong' WHERE id > 10").collect()

    def meanwhile() -> None:
        orders.sql("DELETE FROM dbo.orders WHERE id = 11", "UPDATE dbo.orders SET id = 99 WHERE id = 12")
        orders.sql("UPDATE dbo.orders SET name = N'newer' WHERE id = 13")
        orders.settle()
        assert orders.catch_up() == 0

    with happening_at("mssql_cdc.check.repair._stage", 1, meanwhile, after=True):
        orders.command("check", "--repair")
    mended = orders.query(
        "SELECT _key AS key FROM t WHERE _snapshot LIKE 'repair:%' ORDER BY _key", "orders", "changes"
    )
    assert [row["key"] for row in mended] == ["2:14", "2:15"]
    assert orders.check() == 0


@pytest.mark.sandbox
def test_a_repair_writes_no_row_of_a_history_that_a_restore_took_back(orders: Place, spark: Any):
    """Nothing that was captured is lost, so that no position tells of it later."""
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong' WHERE id = 1").collect()
    orders.sql("EXEC sandbox.restore_point")
    behind = "mssql_cdc.check.repair.prepared"  # The second time, when the change log has come behind the rows.
    with happening_at(behind, 2, lambda: orders.sql("EXEC sandbox.restore_database")):
        assert orders.command("check", "--repair") == 5
    assert orders.query("SELECT _key AS key FROM t WHERE _snapshot LIKE 'repair:%'", "orders", "changes") == []


def test_a_repair_shows_no_change_before_a_complete_cut_has_it(
    orders: Place, capsys: pytest.CaptureFixture[str], spark: Any
):
    """Its rows are merged with all that was read before them, which another table may not have reached yet (A1)."""
    orders.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    orders.sql("INSERT INTO dbo.orders VALUES (11, N'row')")
    orders.settle()
    assert orders.catch_up() == 0
    spark.sql(f"UPDATE delta.`{orders.uri('orders')}` SET name = 'wrong' WHERE id = 11").collect()
    orders.sql("INSERT INTO dbo.orders VALUES (12, N'newer')")
    orders.settle()
    waits_for_cut, asked = repair.waits_for_cut, list[bool]()

    def counted(*arguments: Any) -> bool:
        asked.append(waits_for_cut(*arguments) or len(asked) < 2)
        assert not (asked[-1] and orders.query("SELECT id FROM t WHERE id = 12", "orders"))
        return asked[-1]

    with patch.object(repair, "waits_for_cut", counted):
        assert orders.command("check", "--repair") == 0
    assert asked == [True, True, False]
    assert orders.query("SELECT name FROM t WHERE id = 11", "orders") == [{"name": "row"}]
    assert orders.check() == 0


def test_rows_with_a_masked_key_are_not_repaired_one_by_one(
    place: Place, capsys: pytest.CaptureFixture[str], spark: Any
):
    mask = {"column_mask_hash_SHA-256_with_salt_abc": "dbo.people.mail", "delta_key_secret": "pepper"}
    place.configure(**mask)
    place.create("people", "mail nvarchar(40) NOT NULL PRIMARY KEY, note nvarchar(20) NULL")
    place.sql("INSERT INTO dbo.people VALUES (N'a', N'one'), (N'b', N'two')")
    place.settle()
    assert place.catch_up() == 0
    spark.sql(f"UPDATE delta.`{place.uri('people')}` SET note = 'wrong' WHERE note = 'two'").collect()
    capsys.readouterr()
    assert place.command("check", "--repair", "--json") == 5
    (found,) = json.loads(capsys.readouterr().out)["tables"]
    assert [note for note in found["notes"] if "take a blocking snapshot" in note]
    assert found["repaired_rows"] == 0


def test_rows_with_a_masked_key_are_compared_but_for_the_cells_that_each_of_them_lacks(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """One unknown cell hid its column in every row: no key told the rows apart."""
    mask = {"column_mask_hash_SHA-256_with_salt_abc": "dbo.people.mail", "delta_key_secret": "pepper"}
    place.configure(snapshot_mode="no_data", **mask)
    place.create("people", "mail nvarchar(40) NOT NULL PRIMARY KEY, n int NULL, body ntext NULL")
    place.sql("INSERT INTO dbo.people VALUES (N'a', 1, N'one'), (N'b', 1, N'two')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("UPDATE dbo.people SET n = 9 WHERE mail = N'a'", "UPDATE dbo.people SET n = 9, body = N'2' WHERE n = 1")
    place.sql("INSERT INTO dbo.people VALUES (N'c', 9, N'three')")
    place.settle()
    place.sql("UPDATE cdc.dbo_people_CT SET body = NULL WHERE [__$operation] = 4 AND mail = N'a'")
    assert place.catch_up() == 0
    found = result(place, capsys, "people", code=0)
    lacking = "cells of body in 1 rows (never delivered by CDC)"
    assert found["not_compared"] == ["mail (masked)", lacking]
    place.sql("UPDATE dbo.people SET body = N'missed' WHERE mail = N'b'")
    place.settle()
    place.sql(
        "DELETE FROM cdc.dbo_people_CT WHERE [__$start_lsn] = (SELECT MAX([__$start_lsn]) FROM cdc.dbo_people_CT)"
    )
    assert place.catch_up() == 0
    found = result(place, capsys, "people", code=5)
    assert (found["differences"], found["change_log"]) == (["key (no key): differs in body"], [])
    assert found["not_compared"] == ["mail (masked)", lacking]


def test_a_table_that_the_source_does_not_show_has_a_result_of_its_own(orders: Place):
    """It was dropped, or hidden from the login, after the look at the capture instances."""
    with (
        open_databases(load_connector(orders.config), warehouse=str(orders.warehouse)) as (database,),
        open_check_source(database.connector).check_session(database.catalog) as session,
    ):
        looked = replace(look_at(database, session), structures={})
        (member,) = looked.members.values()
        found = check_table(looked, member)
    assert (found.status, type(found.error)) == ("error", SourceError)
    assert "SELECT" in str(found.error)


def test_a_table_that_lost_its_key_is_not_equal_because_its_log_is(place: Place, capsys: pytest.CaptureFixture[str]):
    """Review, bug 6: the change log was compared instead of the frozen current table, and the result was equal."""
    place.sql("CREATE TABLE dbo.orders (id int NOT NULL, name nvarchar(50))")
    place.sql("CREATE UNIQUE INDEX one ON dbo.orders (id)")
    place.enable("orders")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("DROP INDEX one ON dbo.orders", "INSERT INTO dbo.orders VALUES (3, N'three')")
    place.settle()
    assert place.catch_up() == 0
    found = result(place, capsys, "orders", code=5)
    assert found["differences"] == []
    assert "no longer has a key" in found["change_log"][0]


@pytest.mark.sandbox
def test_nothing_is_called_a_difference_while_capture_stands_still(
    orders: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mssql_cdc.check.fence.PATIENCE", 2.0)
    orders.sql("EXEC sandbox.capture_pause", "INSERT INTO dbo.orders VALUES (3, N'three')")
    found = result(orders, capsys, "orders", code=3)
    assert (found["result"], found["differences"]) == ("error", [])
    assert "check that the capture job is running" in found["error"]
    orders.sql("EXEC sandbox.capture_resume")
    assert result(orders, capsys, "orders", code=0)["result"] == "equal"


def moving(place: Place) -> AbstractContextManager[None]:
    """An application that changes rows 1 and 2, adds rows and deletes them, as long as the block lasts."""

    def changes(number: int) -> list[str]:
        return [
            f"UPDATE dbo.orders SET name = N'{number}' WHERE id = {1 + number % 2}",
            f"INSERT INTO dbo.orders VALUES ({1000 + number}, N'new')",
            f"DELETE FROM dbo.orders WHERE id = {997 + number}",
        ]

    return writing(place, changes, at_least=10)
