"""A lake as Debezium records: order, snapshots, key changes, transactions, schema changes, switches."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.lake.read import read_table
from mssql_cdc.records.capture_times import microseconds
from mssql_cdc_tests.lake_kit import AT, Change, column, excluding, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, RECORDED, Lake, masked, table
from mssql_cdc_tests.unit.records.orders import NOKEY, ORDERS, SIGNAL, change, number, old_order, order


@pytest.mark.feature("EVT-06", "TXN-04", "EVT-15")
def test_the_lake_reproduces_a_recorded_stream_of_the_real_debezium(tmp_path: Path):
    """Inserts, updates, deletes, a native key change and three tables in one transaction, with transaction metadata."""
    lake = Lake(tmp_path)
    orders, nokey, signal = lake.add(ORDERS), lake.add(NOKEY), lake.add(SIGNAL)
    new, touched = order(100), order(100, "changed")
    all_columns = [c.name for c in ORDERS.columns if c.name not in {"id", "note"}]
    lake.append(
        orders,
        change("5b0:10", "5a8:2", "c", new),
        change("5b0:10", "5a8:3", "u", new, touched, changed=["name"]),
        change("5b0:10", "5a8:4", "d", touched),
        change("5c0:10", "5b8:2", "u", old_order(1), order(1, "one", note="note 1"), changed=all_columns),
        change("5d0:10", "5c8:2", "d", old_order(2)),
        change("5d0:10", "5c8:2", "c", order(202, "pk change")),
        change("5e0:10", "5d8:2", "c", order(101)),
        change("5f0:10", "5e8:2", "d", old_order(3)),
        change("5f0:10", "5e8:3", "d", old_order(4)),
    )
    lake.append(nokey, change("5e0:10", "5d8:3", "c", {"a": 5, "b": "x"}))
    message = {"id": "ad-hoc", "type": "log", "data": '{"message": "hi"}'}
    # One more transaction, so that the recorded ones get their END.
    lake.append(
        signal, change("5e0:10", "5d8:4", "c", message), change("600:10", "5f8:2", "c", message | {"id": "next"})
    )
    lake.cut(number("2d:600:10"))
    found = lake.records(provide__transaction__metadata=True, include__schema__changes=False)
    expected = [masked(record) for record in RECORDED["stream"]]
    assert [masked(record) for record in found][: len(expected)] == expected
    assert [r["value"]["op"] for r in found[len(expected) :] if "op" in r["value"]] == ["c"]


@pytest.mark.feature("EVT-10", "EVT-11")
def test_before_images_and_tombstones(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    old, new = {"id": 1, "name": "x", "note": "n"}, {"id": 1, "name": "y", "note": "n"}
    lake.append(schema, Change(1, "u", old, new, changed=["name"]), Change(2, "d", new))
    lake.cut(2)
    update, delete, tombstone = lake.records(include__schema__changes=False)
    assert update["value"]["before"] == old | {"note": None}
    assert update["value"]["after"] == new
    assert delete["value"]["before"] == new
    assert delete["value"]["after"] is None
    assert (tombstone["topic"], tombstone["key"], tombstone["value"]) == (delete["topic"], {"id": 1}, None)
    assert tombstone["headers"] == delete["headers"]


@pytest.mark.feature("EVT-12")
def test_no_tombstones_if_they_are_turned_off(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "d", {"id": 1}))
    lake.cut(1)
    records = lake.records(tombstones__on__delete=False, include__schema__changes=False)
    assert [record["value"]["op"] for record in records] == ["d"]


@pytest.mark.feature("TYP-05", "EVT-20")
def test_an_unchanged_large_value_of_a_not_null_column_is_empty_in_the_before_image(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(
        table("a", column("id", "int", nullable=False), column("t", "varchar", length=-1, nullable=False))
    )
    lake.append(schema, Change(1, "u", {"id": 1, "t": "long"}, {"id": 1, "t": "long"}, changed=[]))
    lake.cut(1)
    (record,) = lake.records(include__schema__changes=False)
    assert record["value"]["before"] == {"id": 1, "t": ""}
    assert record["value"]["after"] == {"id": 1, "t": "long"}


@pytest.mark.feature("TYP-05")
@pytest.mark.parametrize("type_", ["geometry", "geography"])
def test_an_unchanged_spatial_value_is_shown_in_the_before_image(tmp_path: Path, type_: str):
    """As Debezium shows one that was delivered: SQL Server documents only other types as left out."""
    lake = Lake(tmp_path)
    schema = lake.add(table("a", column("id", "int", nullable=False), column("place", type_, nullable=False)))
    lake.append(schema, Change(1, "u", {"id": 1, "place": b"here"}, {"id": 1, "place": b"here"}, changed=[]))
    lake.cut(1)
    (record,) = lake.records(include__schema__changes=False)
    assert record["value"]["before"] == record["value"]["after"] == {"id": 1, "place": "aGVyZQ=="}


@pytest.mark.feature("FLT-07")
def test_a_mask_of_stars_replaces_a_value_that_was_not_delivered(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    row = {"id": 1, "note": "****"}
    lake.append(schema, Change(1, "u", row, row, changed=[]))
    lake.cut(1)
    masks = {"column.mask.with.4.chars": "dbo.a.note", "include.schema.changes": False}
    (record,) = Lake(tmp_path, masks).records()
    assert record["value"]["before"]["note"] == "****"


# -- omitted rows ----------------------------------------------------------------------------------------------


@pytest.mark.feature("STR-11", "FLT-13")
def test_skipped_operations_are_not_counted_at_all(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "d", {"id": 1}), Change(1, "c", after={"id": 2}))
    lake.cut(1)
    (record,) = lake.records(skipped__operations="d", include__schema__changes=False)
    assert (record["value"]["op"], record["value"]["source"]["event_serial_no"]) == ("c", 1)
    # Debezium does not read them; here the change log has them all the same.
    assert read_table(lake.layout.home(table("a").table_id).changes).num_rows == 2


@pytest.mark.feature("FLT-13")
def test_rows_of_an_incremental_snapshot_are_no_operations_to_skip(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "c", after={"id": 1}))
    lake.append(schema, Change(1, "r", after={"id": 2}, snapshot=5), snapshot="incremental:5")
    lake.cut(1)
    found = lake.records(skipped__operations="c,r", include__schema__changes=False)
    assert [(one["value"]["op"], one["value"]["after"]["id"]) for one in found] == [("r", 2)]


@pytest.mark.feature("EVT-22")
def test_an_update_without_a_visible_change_is_dropped_if_configured(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(excluding(table("a"), {"name"}))
    old, new = {"id": 1, "name": "x", "note": None}, {"id": 1, "name": "y", "note": None}
    lake.append(schema, Change(1, "u", old, new, changed=["name"]))
    lake.cut(1)
    assert len(lake.records(include__schema__changes=False)) == 1
    assert lake.records(skip__messages__without__change=True, include__schema__changes=False) == []


@pytest.mark.feature("EVT-22", "EVT-20")
def test_an_update_between_null_and_the_default_that_hides_it_is_a_change(tmp_path: Path):
    """Kafka Connect compares what is there; only its JSON converter shows the default instead of NULL."""
    columns = (
        column("id", "int", nullable=False),
        column("status", "varchar", length=10, default_text="('new')"),
        column("large", "varchar", length=-1, default_text="('new')"),
    )
    lake = Lake(tmp_path, {"include.schema.changes": False, "skip.messages.without.change": True})
    schema = lake.add(table("a", *columns))
    none, new = {"id": 1, "status": None, "large": None}, {"id": 1, "status": "new", "large": None}
    large = {"id": 1, "status": None, "large": "new"}
    lake.append(
        schema,
        Change(1, "u", new, none, changed=["status"]),
        Change(2, "u", none, none, changed=["status"]),
        Change(3, "u", large, large, changed=[]),
    )
    lake.cut(3)
    found = lake.records(value__converter__schemas__enable=True)
    assert [one["sourceOffset"]["commit_lsn"] for one in found] == [lsn(1).text, lsn(3).text], "what is large is NULL"
    assert found[0]["value"]["payload"]["after"] == found[0]["value"]["payload"]["before"]
    assert len(lake.records()) == 2, "as where NULL is shown"


def test_rows_after_the_cut_or_of_a_later_batch_are_not_rendered(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "c", after={"id": 1}), Change(3, "c", after={"id": 3}))
    lake.cut(2)
    lake.append(schema, Change(2, "c", after={"id": 2}))
    lake.cut(2, complete=False)
    assert [r["key"]["id"] for r in lake.records(include__schema__changes=False)] == [1]


def test_nothing_is_written_before_the_first_complete_cut(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "c", after={"id": 1}))
    lake.cut(1, complete=False)
    assert lake.records() == []


# -- order, times, offsets, headers ----------------------------------------------------------------------------


def test_tables_are_merged_in_commit_order(tmp_path: Path):
    lake = Lake(tmp_path)
    a, b = lake.add(table("a")), lake.add(table("b"))
    lake.append(a, *(Change(at, "c", after={"id": at}) for at in (1, 4, 5)))
    lake.append(b, *(Change(at, "c", after={"id": at}) for at in (2, 3, 6)))
    lake.cut(6)
    assert [r["key"]["id"] for r in lake.records(include__schema__changes=False)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.feature("EVT-16")
def test_the_source_block_has_the_commit_time_and_the_envelope_the_capture_time(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "c", after={"id": 1}))
    lake.cut(1, minutes=1)
    lake.append(schema, Change(2, "c", after={"id": 2}))
    lake.cut(2, minutes=2)
    first, second = lake.records(include__schema__changes=False)
    committed = microseconds(AT)
    assert first["value"]["source"]["ts_us"] == committed
    assert first["value"]["source"]["ts_ms"] == committed // 1000
    assert first["value"]["source"]["ts_ns"] == committed * 1000
    assert first["value"]["ts_us"] == committed + 60_000_000
    assert second["value"]["ts_us"] == committed + 120_000_000


@pytest.mark.feature("EVT-24", "OL-01")
def test_every_record_has_context_headers_unless_they_are_turned_off(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "c", after={"id": 1}))
    lake.cut(1)
    (record,) = lake.records(include__schema__changes=False)
    assert record["headers"] == {
        "__debezium.context.connectorLogicalName": "server1",
        "__debezium.context.taskId": "0",
        "__debezium.context.connectorName": "sqlserver",
    }
    (bare,) = lake.records(extended__headers__enabled=False, include__schema__changes=False)
    assert bare["headers"] == {}


def test_partition_and_offset_identify_the_position_in_the_source(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "c", after={"id": 1}))
    lake.cut(1)
    (record,) = lake.records(include__schema__changes=False)
    assert record["sourcePartition"] == {"server": "server1", "database": DATABASE}
    assert record["sourceOffset"] == {
        "commit_lsn": lsn(1).text,
        "change_lsn": lsn(1).text,
        "event_serial_no": 1,
    }
