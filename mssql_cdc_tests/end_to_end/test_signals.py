"""Signals, transactions and notifications end to end: each request at the source is carried out once."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable, QueryBuilder

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_reading_settings import statements
from mssql_cdc_tests.storm.lake import Killed, killed_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.feature("BLK-01", "SIG-04")
def test_signal_row_takes_a_blocking_snapshot_once(signalled: Place):
    signalled.signal("s1", type="blocking", **{"data-collections": [f"{signalled.database}.dbo.orders"]})
    assert signalled.catch_up() == 0
    assert signalled.catch_up() == 0
    assert signalled.check() == 0
    ops = [row["op"] for row in signalled.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")]
    assert ops == ["r"] * 4


@pytest.mark.feature("BLK-03", "BLK-04", "SIG-09")
def test_signals_with_filters_and_with_names_that_match_nothing(signalled: Place):
    orders = f"{signalled.database}.dbo.orders"
    filters = [{"data-collection": orders, "filter": "SELECT * FROM dbo.orders WHERE name <> 'one'"}]
    wanted = [
        {"type": "blocking", "data-collections": [orders], "additional-conditions": filters},
        {"type": "blocking", "data-collections": [f"{signalled.database}.dbo.no_such_table"]},
    ]
    for number, data in enumerate(wanted):
        signalled.signal(f"s{number}", **data)
    for _ in range(2):
        assert signalled.catch_up() == 0
    assert signalled.check() == 0
    reads = signalled.query("SELECT after.id AS id FROM t WHERE op = 'r' ORDER BY _pos", "orders", "changes")
    assert [row["id"] for row in reads] == [1, 2, 2]
    signals = own_rows(signalled, "signals", "SELECT id, status, result FROM t ORDER BY id")
    assert [row["status"] for row in signals] == ["requested", "ignored"]
    assert "no_such_table" in str(signals[1]["result"])
    skipped = own_rows(signalled, "notifications", "SELECT id, type, additional_data FROM t WHERE type = 'SKIPPED'")
    assert [(row["id"], row["additional_data"]) for row in skipped] == [("s1", [("connector_name", "shop")])]


def own_rows(place: Place, name: str, sql: str) -> list[dict[str, Any]]:
    """Rows of one of the database's own tables; none of one that was not needed yet."""
    uri = f"{place.warehouse}/shop/{place.database}/_{name}"
    if not DeltaTable.is_deltatable(uri):
        return []
    found = QueryBuilder().register("t", DeltaTable(uri)).execute(sql).read_all()
    columns = {n: found[n].to_pylist() for n in found.schema.names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.feature("TXN-04", "TXN-07", "NOT-03")
def test_transactions_and_notifications_are_written_once(place: Place):
    place.configure(provide_transaction_metadata="true")
    for table in ("orders", "people"):
        place.create(table, "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one')")
    place.settle()
    assert place.catch_up() == 0
    place.sql(
        "BEGIN TRAN; INSERT INTO dbo.orders VALUES (2, N'two'), (3, N'three'); "
        "INSERT INTO dbo.people VALUES (1, N'Ann'); UPDATE dbo.orders SET id = 9 WHERE id = 1; COMMIT"
    )
    for _ in range(2):
        assert place.catch_up() == 0
    query = "SELECT status, event_count, data_collections FROM t ORDER BY _pos, status"
    begin, end = own_rows(place, "transactions", query)
    assert begin == {"status": "BEGIN", "event_count": None, "data_collections": None}
    assert (end["status"], end["event_count"]) == ("END", 5)
    assert dict(end["data_collections"]) == {f"{place.database}.dbo.orders": 4, f"{place.database}.dbo.people": 1}
    kinds = [row["type"] for row in own_rows(place, "notifications", "SELECT type FROM t")]
    assert kinds.count("STARTED") == kinds.count("COMPLETED") == 1
    assert kinds.count("TABLE_SCAN_COMPLETED") == 2


@pytest.mark.feature("BLK-06")
def test_a_requested_snapshot_that_cannot_be_read_is_given_up_and_its_table_streams(signalled: Place):
    orders = f"{signalled.database}.dbo.orders"
    filters = [{"data-collection": orders, "filter": "SELECT * FROM dbo.orders WHERE no_such_column = 1"}]
    signalled.signal("s1", type="blocking", **{"data-collections": [orders], "additional-conditions": filters})
    signalled.catch_up()
    signalled.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    for _ in range(2):
        assert signalled.catch_up() == 0
    assert signalled.check() == 0
    ops = [row["op"] for row in signalled.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")]
    assert ops == ["r", "r", "c"]
    statuses = [
        dict(row["additional_data"])["status"]
        for row in own_rows(
            signalled,
            "notifications",
            "SELECT additional_data FROM t WHERE type = 'TABLE_SCAN_COMPLETED' AND id = 's1'",
        )
    ]
    assert statuses == ["SQL_EXCEPTION"]


@pytest.mark.feature("SIG-02")
@pytest.mark.parametrize("after", [False, True])
def test_a_signal_whose_run_was_killed_after_its_range_is_taken_by_the_next_one(after: bool, signalled: Place):  # noqa: FBT001
    """On a quiet source it waited for the next change of any table."""
    signalled.signal("s1", type="blocking", **{"data-collections": [f"{signalled.database}.dbo.orders"]})
    signalled.settle()
    with killed_at("mssql_cdc.follow.signals._record", 1, after=after), pytest.raises(Killed):
        signalled.catch_up()
    for _ in range(2):
        assert signalled.catch_up() == 0
    assert own_rows(signalled, "signals", "SELECT id, status FROM t") == [{"id": "s1", "status": "requested"}]
    ops = [row["op"] for row in signalled.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")]
    assert ops == ["r"] * 4


def test_a_signal_table_that_cannot_be_read_is_the_trouble_of_that_table_alone(
    signalled: Place, capsys: pytest.CaptureFixture[str]
):
    """Behind each range, the run ended: it "is not enabled for CDC". Current tables never followed."""
    signalled.signal("s1", type="blocking", **{"data-collections": [f"{signalled.database}.dbo.orders"]})
    assert signalled.catch_up() == 0
    log = signalled.warehouse / "shop" / signalled.database / "dbo" / "signals" / "changes" / "_delta_log"
    newest = max(log.glob("*.json"))
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-20])
    signalled.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    signalled.signal("s2", type="blocking", **{"data-collections": [f"{signalled.database}.dbo.orders"]})
    signalled.settle()
    capsys.readouterr()
    assert signalled.catch_up() == 4
    assert "signals/changes cannot be opened" in capsys.readouterr().err
    assert signalled.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]

    newest.write_bytes(whole)
    for _ in range(2):
        assert signalled.catch_up() == 0
    signals = own_rows(signalled, "signals", "SELECT id, status FROM t ORDER BY id")
    assert signals == [{"id": "s1", "status": "requested"}, {"id": "s2", "status": "requested"}]


@pytest.mark.feature("SIG-08")
def test_a_log_signal_shows_the_offset_at_which_it_arrived(place: Place):
    place.configure(signal_data_collection=f"{place.database}.dbo.signals")
    place.create("signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL")
    place.create_orders()
    place.sql("INSERT INTO dbo.signals VALUES ('s1', 'log', '{\"message\": \"at {} {}\"}')")
    assert place.catch_up() == 0
    (change,) = place.query("SELECT source FROM t", "signals", "changes")
    (signal,) = own_rows(place, "signals", "SELECT result FROM t")
    commit, change_lsn = change["source"]["commit_lsn"], change["source"]["change_lsn"]
    assert signal["result"] == f"at {{event_serial_no=1, commit_lsn={commit}, change_lsn={change_lsn}}} {{}}"


@pytest.mark.feature("SIG-03")
def test_columns_of_the_signal_table_count_by_position(place: Place):
    place.configure(signal_data_collection=f"{place.database}.dbo.signals")
    place.create("signals", "a varchar(42) NOT NULL PRIMARY KEY, b varchar(32) NOT NULL, c varchar(2048) NULL")
    place.create_orders()
    place.sql("INSERT INTO dbo.signals VALUES ('s1', 'log', '{\"message\": \"hello\"}')")
    place.sql("UPDATE dbo.signals SET b = 'changed'", "DELETE FROM dbo.signals")
    assert place.catch_up() == 0
    assert own_rows(place, "signals", "SELECT id, type, result FROM t") == [
        {"id": "s1", "type": "log", "result": "hello"}
    ]


@pytest.mark.sandbox
@pytest.mark.feature("INC-15")
def test_an_incremental_snapshot_needs_no_signal_table_and_writes_nothing_to_the_source(place: Place):
    place.create_orders()
    place.sql("EXEC sandbox.statement_log")
    assert place.command("snapshot", "--table", "dbo.orders", "--incremental") == 0
    assert place.catch_up() == 0
    ops = [row["op"] for row in place.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")]
    assert ops == ["r"] * 4
    assert not [text for verb in ("INSERT", "DELETE", "UPDATE", "MERGE") for text in statements(place, f"{verb} ")]
    assert place.check() == 0


@pytest.mark.feature("SIG-03")
def test_columns_of_the_signal_table_count_by_their_place_at_the_source(place: Place):
    """The type of one has changed, so that its Delta column is the last one of the change log."""
    place.configure(signal_data_collection=f"{place.database}.dbo.signals")
    place.create("signals", "id int NOT NULL, type varchar(32) NOT NULL, data varchar(2048) NULL")
    place.create_orders()
    place.sql("INSERT INTO dbo.signals VALUES (1, 'log', '{}')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("ALTER TABLE dbo.signals ALTER COLUMN id varchar(42) NOT NULL")
    place.signal("first", type="blocking", **{"data-collections": [f"{place.database}.dbo.orders"]})
    place.settle()
    assert place.catch_up() == 0
    ops = [row["op"] for row in place.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")]
    assert ops == ["r"] * 4
    assert [row["id"] for row in own_rows(place, "signals", "SELECT id FROM t ORDER BY id")] == ["1", "first"]


@pytest.mark.feature("SIG-03", "SIG-09")
def test_a_row_that_was_captured_without_the_columns_of_a_signal_is_ignored(place: Place):
    """It raised IndexError, or the column behind was read as the data."""
    place.configure(column_exclude_list=r"dbo\.signals\.type")
    place.create(
        "signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NULL, data varchar(2048) NULL, note int NULL"
    )
    place.create_orders()
    place.sql("INSERT INTO dbo.signals VALUES ('s1', 'log', '{\"message\": \"hello\"}', 1)")
    place.settle()
    assert place.catch_up() == 0
    place.configure(signal_data_collection=f"{place.database}.dbo.signals")
    place.sql("INSERT INTO dbo.signals VALUES ('s2', 'log', '{\"message\": \"hello\"}', 1)")
    place.settle()
    assert place.catch_up() == 0
    first, second = own_rows(place, "signals", "SELECT id, status, result FROM t ORDER BY id")
    assert (first["status"], second["status"]) == ("ignored", "done")
    assert (
        first["result"] == "a column filter left out type when the row was captured; a signal needs id, type and data"
    )


@pytest.mark.feature("INC-03", "BLK-04")
def test_a_table_that_is_named_is_read_alone_whatever_its_name_means_as_an_expression(signalled: Place):
    names = ("price$", "price", "order.items", "order_items", "a[b")
    for name in names:
        signalled.create(name, "id int NOT NULL PRIMARY KEY")
        signalled.sql(f"INSERT INTO dbo.[{name}] VALUES (1), (2)")
    signalled.settle()
    assert signalled.catch_up() == 0
    signalled.signal("s1", type="blocking", **{"data-collections": ["dbo.price$"]})
    signalled.settle()
    assert signalled.command("snapshot", "--table", "dbo.order.items", "--where", "id = 1") == 0
    assert signalled.command("snapshot", "--table", "dbo.a[b", "--where", "id = 1", "--incremental") == 0
    for _ in range(2):
        assert signalled.catch_up() == 0
    assert signalled.command("snapshot", "--table", "dbo.price (EUR") == 2
    lake = signalled.warehouse / "shop" / signalled.database / "dbo"
    homes = {path.name: str(path / "changes") for path in lake.iterdir() if (path / "changes").is_dir()}
    reads = {
        home: QueryBuilder()
        .register("t", DeltaTable(uri))
        .execute("SELECT op FROM t WHERE op = 'r'")
        .read_all()
        .num_rows
        for home, uri in homes.items()
    }
    assert sorted(reads.values()) == [0, 2, 2, 2, 3, 3, 4]  # Those of `signals`, of `orders` and of the five tables.
    assert signalled.check() == 0
