"""Serial numbers and transaction counts, which need all tables in one order (EVT-15, TXN-07, rule E28)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.records.names import field_name, java_hash
from mssql_cdc.records.numbering import SerialNumbers
from mssql_cdc.records.transactions import Transaction


@pytest.mark.feature("EVT-15")
@pytest.mark.parametrize("step", [1, 2, 5])
def test_an_update_takes_two_numbers_and_a_new_position_restarts_them(step: int):
    serial = SerialNumbers()
    commits, changes, counts = (
        pa.array(["c1"] * 4 + ["c2"]),
        pa.array(["p1"] * 2 + ["p2"] * 3),
        np.array([1, 1, 2, 2, 1]),
    )
    found: list[int] = []
    for start in range(0, 5, step):
        part = slice(start, start + step)
        found += serial.next(commits[part], changes[part], counts[part]).tolist()
    assert found == [1, 2, 2, 4, 1]


EVENTS = st.lists(st.tuples(st.sampled_from(["t1", "t2", "t3"]), st.sampled_from(["a", "b", "c"])), max_size=12)


@pytest.mark.feature("TXN-06", "TXN-07", "TXN-08")
@given(EVENTS, st.integers(1, 12))
def test_orders_count_all_events_and_the_events_of_the_table_however_they_are_divided(
    events: list[tuple[str, str]], step: int
):
    state, open_id, open_events = Transaction(), None, dict[str, int]()
    names = ["a", "b", "c"]
    for start in range(0, len(events), step):
        part = events[start : start + step]
        tables = np.array([names.index(name) for _, name in part])
        orders = state.next(pa.array([one for one, _ in part]), tables, names)
        places = zip(*(column.to_pylist() for column in orders.places(np.arange(len(part)))), strict=True)
        offsets = orders.offsets(np.arange(1, len(part) + 1)).to_pylist()
        ended: list[Any] = []
        for (one, name), place, offset in zip(part, places, offsets, strict=True):
            if one != open_id:
                ended.append((open_id, sum(open_events.values()), dict(open_events)))
                open_id, open_events = one, {}
            open_events[name] = open_events.get(name, 0) + 1
            assert place == (one, str(sum(open_events.values())), str(open_events[name]))
            counts = {f"transaction_data_collection_order_{table}": n for table, n in open_events.items()}
            assert list(json.loads(f"{{{offset[1:]}}}").items()) == list({"transaction_id": one, **counts}.items())
        ids, totals, collections = orders.ends
        shown = [{c["data_collection"]: c["event_count"] for c in json.loads(text)} for text in collections.to_pylist()]
        assert list(zip(ids.to_pylist(), map(int, totals.to_pylist()), shown, strict=True)) == ended
        assert (state.id, state.events) == (open_id, open_events)


@pytest.mark.feature("TXN-08")
def test_the_offset_contains_the_progress_of_each_table_in_the_open_transaction():
    transaction = Transaction()
    assert transaction.offset() == {}
    transaction.next(pa.array(["t"]), np.array([0]), ["db.dbo.a"])
    assert transaction.offset() == {"transaction_id": "t", "transaction_data_collection_order_db.dbo.a": 1}


def java_order(names: Sequence[str], buckets: int) -> list[str]:
    """The names as Java's `HashMap` with this number of buckets lists them, and Debezium its collections."""
    return sorted(names, key=lambda name: java_hash(name) & (buckets - 1))


@pytest.mark.feature("TXN-04")
def test_the_buckets_of_javas_map_grow_and_never_shrink():
    names = [f"t{number}" for number in range(13)]
    transaction = Transaction()
    orders = transaction.next(pa.array(["x"] * 13 + ["y"] * 2 + ["z"]), np.array([*range(13), 0, 1, 0]), names)
    shown = [[one["data_collection"] for one in json.loads(text)] for text in orders.ends[2].to_pylist()]
    assert shown == [[], java_order(names, 32), java_order(names[:2], 32)]
    assert transaction.buckets == 32


def test_collections_are_in_the_order_of_a_java_map():
    names = ["testDB1.dbo.nokey", "testDB1.dbo.debezium_signal", "testDB1.dbo.orders"]
    assert java_order(names, 16) == ["testDB1.dbo.orders", "testDB1.dbo.debezium_signal", "testDB1.dbo.nokey"]


@pytest.mark.feature("TOP-08")
@pytest.mark.parametrize(
    ("mode", "name", "expected"),
    [
        ("none", "2 é", "2 é"),
        ("avro", "2 é", "_2__"),
        ("avro_unicode", "a_é", "a_u005f_u00e9"),
        ("avro_unicode", "2a", "_u0032a"),
    ],
)
def test_field_names_follow_their_adjustment(mode: str, name: str, expected: str):
    assert field_name(name, mode) == expected  # type: ignore[arg-type]
