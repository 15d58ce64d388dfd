"""Key updates as records, native or defined by properties; tables without a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.lake_kit import Change, excluding
from mssql_cdc_tests.unit.records.kit import Lake, table
from mssql_cdc_tests.unit.records.orders import NOKEY


@pytest.mark.feature("EVT-14", "TXN-07")
def test_a_key_change_by_one_update_is_delete_tombstone_create_with_both_keys(tmp_path: Path):
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
def test_a_native_key_change_has_no_key_headers_and_continues_the_numbering(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "d", {"id": 1}), Change(1, "c", after={"id": 2}))
    lake.cut(1)
    delete, _, create = lake.records(include__schema__changes=False)
    assert [r["value"]["source"]["event_serial_no"] for r in (delete, create)] == [1, 2]
    assert not any("key" in name for r in (delete, create) for name in r["headers"])


@pytest.mark.feature("EVT-05")
def test_message_key_columns_define_what_a_key_change_is(tmp_path: Path):
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


@pytest.mark.feature("EVT-14", "FLT-13")
@pytest.mark.parametrize("skipped", ["c", "d", "c,d"])
@pytest.mark.parametrize("own", [None, "dbo.a:name"])
def test_skipped_operations_leave_both_halves_of_a_moved_update(tmp_path: Path, skipped: str, own: str | None):
    """Debezium leaves operations out in its query: a consumer lost the row, or kept it under the old key, too."""
    lake = Lake(tmp_path, {"message.key.columns": own} if own else {})
    schema = lake.add(table("a"))
    old, new = {"id": 1, "name": "x"}, {"id": 1 if own else 2, "name": "y"}
    lake.append(
        schema,
        Change(1, "u", old, new, changed=["name"]),
        Change(2, "c", after={"id": 3, "name": "z"}),
        Change(3, "d", {"id": 3, "name": "z"}),
    )
    lake.cut(3)
    moved = [(record["key"], record["value"] and record["value"]["op"]) for record in lake.records()[1:4]]
    found = lake.records(skipped__operations=skipped, include__schema__changes=False)
    shown = [(record["key"], record["value"] and record["value"]["op"]) for record in found]
    assert shown[:3] == moved
    assert [op for _, op in moved] == ["d", None, "c"]
    assert [op for _, op in shown[3:]] == {"c": ["d", None], "d": ["c"], "c,d": []}[skipped]


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
    schema = lake.add(excluding(table("a"), {"id"}))
    lake.append(schema, Change(1, "c", after={"id": 1, "name": "x"}))
    lake.cut(1)
    (record,) = lake.records(include__schema__changes=False)
    assert record["key"] == {"id": 1}
    assert "id" not in record["value"]["after"]


@pytest.mark.feature("EVT-03", "EVT-05")
def test_a_key_of_a_column_that_the_lake_does_not_hold_is_refused(tmp_path: Path):
    """Debezium's key has it (DC-19); the lake has an excluded column only where it is part of the row's key."""
    lake = Lake(tmp_path, {"include.schema.changes": False, "column.exclude.list": "dbo.a.name"})
    schema = lake.add(excluding(table("a"), {"name"}))
    lake.append(schema, Change(1, "c", after={"id": 1, "name": "x"}))
    lake.cut(1)
    with pytest.raises(
        ConfigurationError, match=r"testDB1\.dbo\.a: message\.key\.columns.*name.*column\.exclude\.list"
    ):
        lake.records(message__key__columns="dbo.a:id,name")
    (record,) = lake.records(message__key__columns="dbo.a:id")
    assert record["key"] == {"id": 1}


@pytest.mark.feature("TXN-05")
def test_a_transaction_ends_when_the_next_one_has_an_event(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    for number in (1, 2, 3):
        lake.append(schema, Change(number, "c", after={"id": number}))
        lake.cut(number, minutes=number)
    found = lake.records(provide__transaction__metadata=True, include__schema__changes=False)
    told = [(one["value"].get("status"), one["value"].get("op")) for one in found]
    one_transaction = [("BEGIN", None), (None, "c"), ("END", None)]
    assert told == [*one_transaction, *one_transaction, ("BEGIN", None), (None, "c")]
    for end, begin in ((2, 3), (5, 6)):
        assert found[end]["value"]["id"] == found[end - 2]["value"]["id"]
        assert found[end]["value"]["ts_ms"] == found[begin]["value"]["ts_ms"]


@pytest.mark.feature("EVT-22")
def test_transaction_metadata_of_changes_that_are_no_events_is_empty(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "u", {"id": 1}, {"id": 1}, changed=[]))
    lake.append(schema, Change(1, "r", after={"id": 2}), snapshot="incremental:1")
    lake.cut(1)
    properties = {"provide__transaction__metadata": True, "include__schema__changes": False}
    (read,) = lake.records(skip__messages__without__change=True, **properties)
    assert (read["value"]["op"], read["value"]["transaction"]) == ("r", None)
    (read,) = lake.records(skipped__operations="u", **properties)
    assert (read["value"]["op"], read["value"]["transaction"]) == ("r", None)
