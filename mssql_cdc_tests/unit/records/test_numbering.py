"""Serial numbers and transaction counts, which need all tables in one order (EVT-15, TXN-07, rule E28)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.records.names import (
    data_topic,
    field_name,
    java_order,
    sanitized,
    schema_change_topic,
    transaction_topic,
)
from mssql_cdc.records.numbering import SerialNumbers, Transaction
from mssql_cdc.schema import TableId
from mssql_cdc_tests.unit.config.samples import connector_with


@pytest.mark.feature("EVT-15")
def test_an_update_takes_two_numbers_and_a_new_position_restarts_them():
    serial = SerialNumbers()
    assert serial.next("c1", "p1", 1) == 1
    assert serial.next("c1", "p1", 1) == 2
    assert serial.next("c1", "p2", 2) == 2
    assert serial.next("c1", "p2", 2) == 4
    assert serial.next("c2", "p2", 1) == 1


@pytest.mark.feature("TXN-06", "TXN-07")
@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1))
def test_orders_count_all_events_and_the_events_of_the_table(collections: list[str]):
    transaction = Transaction()
    transaction.begin("t")
    for place, name in enumerate(collections, start=1):
        block = transaction.count(name)
        assert block == {"id": "t", "total_order": place, "data_collection_order": collections[:place].count(name)}
    assert sum(one["event_count"] for one in transaction.collections()) == len(collections)
    assert transaction.total == len(collections)


@pytest.mark.feature("TXN-08")
def test_the_offset_contains_the_progress_of_each_table_in_the_open_transaction():
    transaction = Transaction()
    assert transaction.offset() == {"transaction_id": None}
    transaction.begin("t")
    transaction.count("db.dbo.a")
    assert transaction.offset() == {"transaction_id": "t", "transaction_data_collection_order_db.dbo.a": 1}


def test_collections_are_in_the_order_of_a_java_map():
    names = ["testDB1.dbo.nokey", "testDB1.dbo.debezium_signal", "testDB1.dbo.orders"]
    assert java_order(names, 16) == ["testDB1.dbo.orders", "testDB1.dbo.debezium_signal", "testDB1.dbo.nokey"]


@pytest.mark.feature("TOP-01", "TOP-02", "TOP-03")
def test_topics_are_named_after_prefix_database_schema_and_table():
    connector = connector_with({})
    assert data_topic(connector, TableId("testDB", "dbo", "my orders")) == "server1.testDB.dbo.my_orders"
    assert schema_change_topic(connector) == "server1"
    assert transaction_topic(connector) == "server1.transaction"


@pytest.mark.feature("TOP-05", "TOP-06")
def test_topics_contain_only_characters_that_kafka_accepts():
    delimited = connector_with({"topic.delimiter": "_", "topic.transaction": "tx"})
    assert data_topic(delimited, TableId("testDB", "dbo", "t")) == "server1_testDB_dbo_t"
    assert transaction_topic(delimited) == "server1_tx"
    assert sanitized("é" * 300) == "_" * 249


@pytest.mark.feature("TOP-08")
@pytest.mark.parametrize(
    ("mode", "name", "expected"),
    [
        ("none", "2 é", "2 é"),
        ("avro", "2 é", "_2__"),
        ("avro_unicode", "a_é", "a_u005F_u00E9"),
        ("avro_unicode", "2a", "_u0032a"),
    ],
)
def test_field_names_follow_their_adjustment(mode: str, name: str, expected: str):
    assert field_name(name, mode) == expected  # type: ignore[arg-type]
