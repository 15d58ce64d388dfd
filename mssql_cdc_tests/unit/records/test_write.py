# ruff: noqa: DTZ001 - SQL Server's values have no zone
"""A lake as Debezium records: order, snapshots, key changes, transactions, schema changes, switches."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.lsn import Lsn
from mssql_cdc.records.times import microseconds
from mssql_cdc_tests.lake_kit import AT, Change, column, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, RECORDED, Lake, masked, table

ORDERS = table(
    "orders",
    column("id", "int", nullable=False, identity=True),
    column("name", "nvarchar", length=50, nullable=False),
    column("qty", "int", default_text="((1))"),
    column("price", "decimal", precision=18, scale=2),
    column("created", "datetime2", scale=3),
    column("flag", "bit"),
    column("note", "nvarchar", length=-1),
    column("city", "nvarchar", length=40),
    column("weight", "float"),
    column("ref", "bigint"),
)
NOKEY = table("nokey", column("a", "int"), column("b", "varchar", length=10), keys=())
SIGNAL = table(
    "debezium_signal",
    column("id", "varchar", length=64, nullable=False),
    column("type", "varchar", length=32),
    column("data", "varchar", length=2048),
)


SNAPSHOT = "snapshot-20260102T030405"


def number(text: str) -> int:
    return int.from_bytes(Lsn.parse(text).raw, "big")


def order(key: int, name: str = "n", **more: Any) -> dict[str, Any]:
    """A row as the recorded scenario inserts it."""
    return {
        "id": key,
        "name": name,
        "qty": 1,
        "price": Decimal("1.25"),
        "created": datetime(2024, 3, 1, 1, 2, 3, 456000),
        "flag": True,
        "note": "note",
        "city": "C",
        "weight": 0.5,
        "ref": 7,
    } | more


def old_order(key: int) -> dict[str, Any]:
    """A row as the recorded scenario found it."""
    return {
        "id": key,
        "name": f"name {key}",
        "qty": key,
        "price": Decimal("0.25") * key,
        "created": datetime(2024, 1, 1, 1, 2, 3, 456000) + timedelta(days=key - 1),
        "flag": key % 2 == 0,
        "note": f"note {key}",
        "city": "Zürich",
        "weight": 0.125 * key,
        "ref": 10 * key,
    }


def change(commit: str, change: str, op: str, *images: Any, **more: Any) -> Change:
    """A change at these LSNs of log block 2d; a delete has one image, its before image."""
    if op in {"c", "r"}:
        images = (None, *images)
    return Change(number(f"2d:{commit}"), op, *images, sequence=number(f"2d:{change}"), **more)


@pytest.mark.feature("EVT-06", "TXN-04", "EVT-15")
def test_a_recorded_stream_of_the_genuine_debezium_comes_out_of_the_lake(tmp_path: Path):
    """Inserts, updates, deletes, a native key change and three tables in one transaction, with metadata on."""
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
    # One more transaction, so that the recorded ones end.
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
def test_no_tombstones_when_they_are_switched_off(tmp_path: Path):
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


@pytest.mark.feature("FLT-07")
def test_a_mask_of_stars_covers_a_value_that_was_not_delivered(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    row = {"id": 1, "note": "****"}
    lake.append(schema, Change(1, "u", row, row, changed=[]))
    lake.cut(1)
    masks = {"column.mask.with.4.chars": "dbo.a.note", "include.schema.changes": False}
    (record,) = Lake(tmp_path, masks).records()
    assert record["value"]["before"]["note"] == "****"


# -- key changes -----------------------------------------------------------------------------------------------


@pytest.mark.feature("EVT-14", "TXN-07")
def test_a_key_change_of_one_update_is_delete_tombstone_create_with_both_keys(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    old, new = {"id": 1, "name": "x", "note": "n"}, {"id": 2, "name": "x", "note": "n"}
    lake.append(schema, Change(1, "u", old, new, changed=["id"]), Change(1, "c", after=old, sequence=2))
    lake.cut(1)
    records = lake.records(provide__transaction__metadata=True, include__schema__changes=False)
    _, delete, tombstone, create, next_event = records
    assert delete["key"] == tombstone["key"] == {"id": 1}
    assert create["key"] == {"id": 2}
    assert delete["headers"]["__debezium.newkey"] == tombstone["headers"]["__debezium.newkey"] == {"id": 2}
    assert create["headers"]["__debezium.oldkey"] == {"id": 1}
    assert delete["value"]["before"] == old | {"note": None}
    assert create["value"]["after"] == new
    assert [r["value"]["source"]["event_serial_no"] for r in (delete, create)] == [2, 2]
    orders = [r["value"]["transaction"]["total_order"] for r in (delete, create, next_event)]
    assert orders == [1, 2, 3]


@pytest.mark.feature("EVT-13")
def test_a_native_key_change_has_no_key_headers_and_counts_on(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "d", {"id": 1}), Change(1, "c", after={"id": 2}))
    lake.cut(1)
    delete, _, create = lake.records(include__schema__changes=False)
    assert [r["value"]["source"]["event_serial_no"] for r in (delete, create)] == [1, 2]
    assert not any("key" in name for r in (delete, create) for name in r["headers"])


@pytest.mark.feature("EVT-05")
def test_message_key_columns_decide_what_a_key_change_is(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(
        schema,
        Change(1, "u", {"id": 1, "name": "x"}, {"id": 2, "name": "x"}, changed=["id"]),
        Change(2, "u", {"id": 2, "name": "x"}, {"id": 2, "name": "y"}, changed=["name"]),
    )
    lake.cut(2)
    records = lake.records(message__key__columns="dbo.a:name", include__schema__changes=False)
    assert [(r["key"], r["value"] and r["value"]["op"]) for r in records] == [
        ({"name": "x"}, "u"),
        ({"name": "x"}, "d"),
        ({"name": "x"}, None),
        ({"name": "y"}, "c"),
    ]


@pytest.mark.feature("EVT-01")
def test_a_table_without_a_key_has_null_keys_and_plain_updates(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(NOKEY)
    lake.append(schema, Change(1, "u", {"a": 1, "b": "x"}, {"a": 2, "b": "x"}, changed=["a"]))
    lake.cut(1)
    (record,) = lake.records(include__schema__changes=False)
    assert (record["key"], record["value"]["op"]) == (None, "u")


@pytest.mark.feature("EVT-03")
def test_an_excluded_key_column_stays_in_the_key(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a").excluding({"id"}))
    lake.append(schema, Change(1, "c", after={"id": 1, "name": "x"}))
    lake.cut(1)
    (record,) = lake.records(include__schema__changes=False)
    assert record["key"] == {"id": 1}
    assert "id" not in record["value"]["after"]


# -- what is left out ------------------------------------------------------------------------------------------


@pytest.mark.feature("STR-11", "FLT-13")
def test_skipped_operations_are_not_counted_at_all(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "d", {"id": 1}), Change(1, "c", after={"id": 2}))
    lake.cut(1)
    (record,) = lake.records(skipped__operations="d", include__schema__changes=False)
    assert (record["value"]["op"], record["value"]["source"]["event_serial_no"]) == ("c", 1)


@pytest.mark.feature("EVT-22")
def test_an_update_without_a_visible_change_is_dropped_when_asked(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a").excluding({"name"}))
    old, new = {"id": 1, "name": "x", "note": None}, {"id": 1, "name": "y", "note": None}
    lake.append(schema, Change(1, "u", old, new, changed=["name"]))
    lake.cut(1)
    assert len(lake.records(include__schema__changes=False)) == 1
    assert lake.records(skip__messages__without__change=True, include__schema__changes=False) == []


def test_rows_behind_the_cut_or_of_a_later_batch_are_not_rendered(tmp_path: Path):
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
def test_the_source_tells_the_commits_time_and_the_envelope_the_captures(tmp_path: Path):
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


@pytest.mark.feature("EVT-24")
def test_context_headers_stand_on_every_record_unless_switched_off(tmp_path: Path):
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


def test_partition_and_offset_name_the_place_in_the_source(tmp_path: Path):
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
        "transaction_id": None,
    }


# -- snapshots and schema changes ------------------------------------------------------------------------------


def snapshotted(tmp_path: Path) -> Lake:
    """Tables a (three rows), b (one row), c (none) after an initial snapshot."""
    lake = Lake(tmp_path)
    a, b = lake.add(table("a")), lake.add(table("b"))
    lake.add(table("c"))
    lake.append(a, *(Change(7, "r", after={"id": key}, sequence=key) for key in (1, 2, 3)))
    lake.append(b, Change(7, "r", after={"id": 1}))
    lake.cut(7, kind="snapshot", partition=SNAPSHOT, facts='{"number": 1}')
    return lake


@pytest.mark.feature("SCH-05", "SCH-09")
def test_a_snapshot_creates_every_table_and_then_reads_them_with_markers(tmp_path: Path):
    creates, reads = [], []
    for record in snapshotted(tmp_path).records():
        (creates if record["topic"] == "server1" else reads).append(record)
    assert [r["value"]["source"]["table"] for r in creates] == ["a", "b", "c"]
    assert all(r["value"]["tableChanges"][0]["type"] == "CREATE" for r in creates)
    assert all(r["value"]["source"]["snapshot"] == "true" and r["value"]["ddl"] is None for r in creates)
    assert creates[0]["key"] == {"databaseName": DATABASE}
    assert creates[0]["partition"] == 0
    markers = [(r["value"]["source"]["table"], r["value"]["source"]["snapshot"]) for r in reads]
    assert markers == [("a", "first"), ("a", "true"), ("a", "last_in_data_collection"), ("b", "last")]
    assert [r["sourceOffset"]["snapshot_completed"] for r in reads] == [False, False, False, True]
    assert {r["value"]["source"]["commit_lsn"] for r in creates + reads} == {lsn(7).text}


@pytest.mark.feature("SCH-07", "EVO-05")
def test_a_new_instance_is_announced_before_the_first_event_behind_its_start(tmp_path: Path):
    lake = snapshotted(tmp_path)
    b = lake.add(table("b"))
    lake.append(b, Change(9, "c", after={"id": 2}), Change(12, "c", after={"id": 3}))
    wider = table(
        "a",
        *table("a").columns,
        column("extra", "int"),
        instance="dbo_a_v2",
        capture_object_id=2,
        from_lsn=lsn(10).text,
    )
    assert lake.add(wider).version == 2
    lake.cut(12)
    records = lake.records()[7:]
    assert [r["value"].get("op", "schema") for r in records] == ["c", "schema", "c"]
    change_value = records[1]["value"]
    assert change_value["ddl"] == "N/A"
    assert change_value["tableChanges"][0]["type"] == "ALTER"
    names = [c["name"] for c in change_value["tableChanges"][0]["table"]["columns"]]
    assert names == ["id", "name", "note", "extra"]


@pytest.mark.feature("SCH-10")
def test_a_new_instance_with_the_same_structure_is_not_announced(tmp_path: Path):
    lake = snapshotted(tmp_path)
    same = table("a", instance="dbo_a_v2", capture_object_id=2, from_lsn=lsn(8).text)
    assert lake.add(same).version == 2
    lake.cut(9)
    assert len(lake.records()) == 7


@pytest.mark.feature("SCH-05")
def test_schema_changes_can_be_switched_off(tmp_path: Path):
    records = snapshotted(tmp_path).records(include__schema__changes=False)
    assert {record["topic"] for record in records} == {f"server1.{DATABASE}.dbo.a", f"server1.{DATABASE}.dbo.b"}


def test_an_open_snapshot_holds_back_what_would_come_behind_it(tmp_path: Path):
    lake = snapshotted(tmp_path)
    a, b = lake.add(table("a")), lake.add(table("b"))
    lake.append(a, Change(8, "c", after={"id": 8}))
    lake.cut(8)
    before = lake.records()
    assert before[-1]["key"] == {"id": 8}
    again = {"kind": "snapshot", "partition": "snapshot-20260103T030405", "facts": '{"number": 2}'}
    lake.cut(8, complete=False, only=["b"], status="snapshot", **again)
    lake.append(a, Change(9, "c", after={"id": 9}))
    lake.cut(9, only=["a"])
    assert lake.records() == before
    lake.append(b, Change(8, "r", after={"id": 1}, snapshot=2), snapshot="2")
    lake.cut(8, complete=False, only=["b"], **again)
    lake.cut(10)
    after = lake.records()
    assert after[: len(before)] == before
    kinds = [r["value"].get("op", "schema") for r in after[len(before) :]]
    assert kinds == ["schema", "r", "c"]
    assert after[len(before)]["sourceOffset"]["snapshot"] == "BLOCKING"


def test_tables_without_a_snapshot_of_rows_are_created_all_the_same(tmp_path: Path):
    lake = Lake(tmp_path)
    a = lake.add(table("a"))
    lake.cut(3, complete=False, kind="snapshot", partition=SNAPSHOT, facts='{"data": false}')
    lake.append(a, Change(4, "c", after={"id": 1}))
    lake.cut(4)
    create, event = lake.records()
    assert create["value"]["source"]["snapshot"] == "last"
    assert create["value"]["source"]["commit_lsn"] == lsn(3).text
    assert event["value"]["op"] == "c"


@pytest.mark.feature("SCH-05", "SCH-07")
def test_a_table_that_never_was_in_a_snapshot_is_created_in_the_stream(tmp_path: Path):
    lake = snapshotted(tmp_path)
    late = lake.add(table("late", from_lsn=lsn(8).text))
    lake.append(late, Change(9, "c", after={"id": 1}))
    lake.cut(9)
    create, event = lake.records()[7:]
    assert create["value"]["tableChanges"][0]["type"] == "CREATE"
    assert create["value"]["ddl"] == "N/A"
    assert event["value"]["op"] == "c"
