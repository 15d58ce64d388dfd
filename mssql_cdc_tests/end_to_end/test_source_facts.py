"""What change data capture of SQL Server is, and refuses: where changes come from, and how names and jobs change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mssql_cdc.config import load_connector
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ALL = "SELECT op, after.id AS id FROM t ORDER BY _pos"


def records(place: Place, name: str = "records.jsonl") -> list[dict[str, Any]]:
    """The records of tables."""
    path = place.folder / name
    assert place.command("records", "--output", str(path)) == 0
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [one for one in found if one["value"] and "op" in one["value"]]


@pytest.mark.sandbox
@pytest.mark.feature("PRE-01")
def test_changes_come_from_change_tables_alone_and_nothing_is_written_to_the_source(orders: Place):
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')", "UPDATE dbo.orders SET name = N'x' WHERE id = 1")
    orders.settle()
    orders.sql("EXEC sandbox.statement_log")
    assert orders.catch_up() == 0
    rows = orders.control.rows("SELECT text FROM sandbox.statements", doing="reading the log of statements")
    texts = [row[0].strip() for row in rows if row[0] and "sandbox" not in row[0]]
    assert len(texts) > 5
    assert [text for text in texts if "[dbo_orders_CT]" in text]
    first_words = {text.split(maxsplit=1)[0].upper() for text in texts}
    assert not first_words & {"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE"}
    assert not [text for text in texts if "fn_dblog" in text or "fn_dump_dblog" in text]
    assert not [text for text in texts if "FROM [dbo].[orders]" in text], "the table itself was read for changes"
    assert orders.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]


@pytest.mark.feature("PRE-06")
def test_capture_job_that_reads_little_at_a_time_loses_nothing(orders: Place):
    orders.sql(
        "EXEC sys.sp_cdc_change_job @job_type = N'capture', @maxtrans = 1, @maxscans = 2, @pollinginterval = 1",
        "EXEC sys.sp_cdc_stop_job @job_type = N'capture'",
        "EXEC sys.sp_cdc_start_job @job_type = N'capture'",
    )
    orders.sql(*(f"INSERT INTO dbo.orders VALUES ({number}, N'x')" for number in range(3, 9)))
    orders.settle()
    assert orders.catch_up() == 0
    found = [row["id"] for row in orders.query(ALL, "orders", "changes") if row["op"] == "c"]
    assert found == [*range(3, 9)]
    assert orders.check() == 0


@pytest.mark.feature("PRE-08")
def test_view_cannot_be_captured_and_its_base_table_is(orders: Place):
    orders.sql("CREATE VIEW dbo.names AS SELECT id, name FROM dbo.orders")
    with pytest.raises(MssqlCdcError):
        orders.enable("names")
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    assert orders.catch_up() == 0
    assert {one["topic"] for one in records(orders)} == {f"shop.{orders.database}.dbo.orders"}


@pytest.mark.feature("STR-21")
def test_renamed_table_goes_on_under_its_new_name(orders: Place):
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    assert orders.catch_up() == 0
    before = records(orders)
    orders.sql("EXEC sp_rename N'dbo.orders', N'purchases'", "INSERT INTO dbo.purchases VALUES (4, N'four')")
    orders.settle()
    assert orders.catch_up() == 0
    found = records(orders)
    assert found[: len(before)] == before
    (later,) = found[len(before) :]
    assert (later["topic"], later["key"]) == (f"shop.{orders.database}.dbo.purchases", {"id": 4})
    assert later["value"]["source"]["table"] == "purchases"
    assert {one["topic"] for one in before} == {f"shop.{orders.database}.dbo.orders"}


@pytest.mark.feature("EVO-08")
def test_column_of_a_captured_table_cannot_be_renamed_and_can_after_its_instance_is_dropped(orders: Place):
    with pytest.raises(MssqlCdcError, match=r"4928|Cannot alter column"):
        orders.sql("EXEC sp_rename N'dbo.orders.name', N'title', N'COLUMN'")
    orders.configure(snapshot_mode="when_needed")
    orders.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'orders', @capture_instance = N'all'",
        "EXEC sp_rename N'dbo.orders.name', N'title', N'COLUMN'",
    )
    orders.enable("orders")
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    assert orders.catch_up() == 0
    assert orders.check() == 0
    assert orders.query("SELECT title FROM t WHERE id = 3", "orders") == [{"title": "three"}]


@pytest.mark.feature("STR-20")
def test_captured_columns_are_matched_by_name_whatever_their_order(place: Place):
    place.sql("CREATE TABLE dbo.wide (a int NOT NULL, id int NOT NULL PRIMARY KEY, b nvarchar(9), c nvarchar(9))")
    place.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'wide', @role_name = NULL,"
        " @captured_column_list = N'c, id, a'"
    )
    place.sql("INSERT INTO dbo.wide VALUES (10, 1, N'hidden', N'see')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("UPDATE dbo.wide SET a = 20, b = N'x', c = N'seen' WHERE id = 1")
    place.settle()
    assert place.catch_up() == 0
    images = [one["value"]["after"] for one in records(place)]
    assert images == [{"a": 10, "id": 1, "c": "see"}, {"a": 20, "id": 1, "c": "seen"}]


@pytest.mark.feature("HA-05")
def test_several_databases_take_incremental_snapshots_on_signals_of_their_own(signalled: Place):
    other = f"{signalled.database}_b"
    signalled.sql(f"CREATE DATABASE {other}")
    signal = "INSERT INTO dbo.signals VALUES ('{0}', 'execute-snapshot', '{{\"data-collections\": [\"{1}.dbo.{2}\"]}}')"
    with control(load_connector(signalled.config).connection, other) as opened:
        for statement in (
            "EXEC sys.sp_cdc_enable_db",
            "CREATE TABLE dbo.signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL)",
            "CREATE TABLE dbo.people (id int NOT NULL PRIMARY KEY)",
            *(
                "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @source_name = N'"
                + name
                + "'"
                for name in ("signals", "people")
            ),
            "INSERT INTO dbo.people VALUES (7), (8)",
        ):
            opened.execute(statement, doing="preparing a test")
        signalled.configure(
            database_names=f"{other},{signalled.database}",
            signal_data_collection=f"{signalled.database}.dbo.signals,{other}.dbo.signals",
        )
        assert signalled.catch_up() == 0
        opened.execute(signal.format("s1", other, "people"), doing="preparing a test")
        signalled.sql(signal.format("s2", signalled.database, "orders"))
        signalled.settle()
        assert signalled.catch_up() == 0
        assert signalled.catch_up() == 0
    found = [one for one in records(signalled) if one["value"]["source"]["snapshot"] == "incremental"]
    read = {(one["sourcePartition"]["database"], *one["key"].values()) for one in found}
    assert read == {(other, 7), (other, 8), (signalled.database, 1), (signalled.database, 2)}
    assert len(found) == 4
