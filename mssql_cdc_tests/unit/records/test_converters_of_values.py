"""CloudEvents, and headers as Kafka Connect's JSON converter writes them; the real converters are in conformance/."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.config.java_texts import java_double
from mssql_cdc.config.json_forms import CLOUD_EVENTS, JSON, SIMPLE_HEADERS
from mssql_cdc_tests.lake_kit import Change, column, lsn
from mssql_cdc_tests.unit.config.samples import connector
from mssql_cdc_tests.unit.records.kit import Lake, table

CLOUD = {"value__converter": CLOUD_EVENTS}
KEY_SCHEMA = {
    "type": "struct",
    "fields": [{"type": "int32", "optional": False, "field": "id"}],
    "optional": False,
    "name": "server1.testDB1.dbo.a.Key",
}


def changed(tmp_path: Path) -> Lake:
    """A row that is created, gets another key, and is deleted."""
    lake = Lake(tmp_path)
    schema = lake.add(table("a", column("id", "int", nullable=False), column("name", "nvarchar", length=50)))
    lake.append(
        schema,
        Change(1, "c", after={"id": 1, "name": "x"}),
        Change(2, "u", {"id": 1, "name": "x"}, {"id": 2, "name": "x"}, changed=["id"]),
        Change(3, "d", {"id": 2, "name": "x"}),
    )
    lake.cut(3)
    return lake


@pytest.mark.feature("EVT-26")
def test_a_cloud_event_has_the_attributes_of_the_change_and_its_images_as_data(tmp_path: Path):
    value = changed(tmp_path).records(**CLOUD, value__converter__json__schemas__enable=False)[1]["value"]
    at = lsn(1).text
    assert list(value)[:6] == ["id", "source", "specversion", "type", "time", "datacontenttype"]
    assert value["id"] == f"name:server1;change_lsn:{at};commit_lsn:{at};event_serial_no:1"
    assert (value["source"], value["specversion"]) == ("/debezium/sqlserver/server1", "1.0")
    assert value["type"] == "io.debezium.connector.sqlserver.DataChangeEvent"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value["time"])
    assert (value["iodebeziumop"], value["iodebeziumsnapshot"], value["iodebeziumeventserialno"]) == ("c", "false", "1")
    assert (value["iodebeziumcommitlsn"], value["iodebeziumtxid"]) == (at, None)
    assert value["data"] == {"before": None, "after": {"id": 1, "name": "x"}}


@pytest.mark.feature("EVT-26")
def test_only_the_data_of_a_cloud_event_has_a_schema_and_what_is_no_row_change_has_no_value(tmp_path: Path):
    records = changed(tmp_path).records(**CLOUD, provide__transaction__metadata=True)
    rows = [one for one in records if one["topic"] == "server1.testDB1.dbo.a"]
    assert {one["topic"] for one in records if one["value"] is not None} == {"server1.testDB1.dbo.a"}
    assert [one["value"] is None for one in rows] == [False, False, True, False, False, True]
    data = rows[0]["value"]["data"]
    assert data["schema"]["name"] == "io.debezium.connector.sqlserver.Data"
    assert [field["field"] for field in data["schema"]["fields"]] == ["before", "after"]
    assert data["payload"]["after"] == {"id": 1, "name": "x"}
    assert (rows[0]["value"]["iodebeziumtxid"], rows[0]["value"]["iodebeziumtxtotalorder"]) == (lsn(1).text, "1")


@pytest.mark.feature("EVT-26")
def test_the_extension_attributes_of_cloud_events_can_be_left_out(tmp_path: Path):
    records = changed(tmp_path).records(**CLOUD, value__converter__extension__attributes__enable=False)
    assert list(records[1]["value"]) == ["id", "source", "specversion", "type", "time", "datacontenttype", "data"]


@pytest.mark.feature("EVT-26")
@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"value.converter.serializer.type": "avro"}, "value.converter.serializer.type=avro"),
        ({"value.converter.data.serializer.type": "avro"}, "value.converter.data.serializer.type=avro"),
        ({"value.converter.metadata.source": "header"}, "value.converter.metadata.source=header"),
        ({"value.converter.metadata.source": "value"}, "value.converter.metadata.source=value"),
        (
            {"value.converter.opentelemetry.tracing.attributes.enable": "true"},
            "value.converter.opentelemetry.tracing.attributes.enable",
        ),
        (
            {"value.converter.schema.data.name.source.header.enable": "true"},
            "value.converter.schema.data.name.source.header.enable",
        ),
        ({"key.converter": CLOUD_EVENTS}, "key.converter"),
        ({"value.converter": "org.apache.kafka.connect.storage.StringConverter"}, "value.converter"),
    ],
)
def test_what_is_not_built_of_converters_refuses_records_by_name(properties: dict[str, Any], named: str):
    assert connector(**{"value.converter": CLOUD_EVENTS} | properties).unrendered == (named,)


def test_options_that_the_converter_of_values_does_not_read_are_named():
    told = connector(**{"value.converter": CLOUD_EVENTS, "value.converter.schemas.enable": "true"}).notices
    assert any("value.converter.json" in line for line in told)
    told = connector(**{"value.converter": JSON, "value.converter.json.schemas.enable": "false"}).notices
    assert any(CLOUD_EVENTS in line for line in told)


@pytest.mark.feature("DEP-02")
def test_headers_have_schemas_where_their_converter_adds_them(tmp_path: Path):
    records = changed(tmp_path).records(header__converter__schemas__enable=True, include__schema__changes=False)
    delete, tombstone, create = records[1:4]
    expected = {"schema": {"type": "string", "optional": False}, "payload": "server1"}
    assert all(one["headers"]["__debezium.context.connectorLogicalName"] == expected for one in records)
    assert delete["headers"]["__debezium.newkey"] == {"schema": KEY_SCHEMA, "payload": {"id": 2}}
    assert tombstone["headers"] == delete["headers"]
    assert create["headers"]["__debezium.oldkey"] == {"schema": KEY_SCHEMA, "payload": {"id": 1}}
    assert delete["key"] == {"id": 1}


@pytest.mark.feature("DEP-02")
def test_a_key_in_a_header_follows_the_header_converter_and_not_that_of_keys(tmp_path: Path):
    lake = Lake(tmp_path)
    price = column("price", "decimal", precision=9, scale=2, nullable=False)
    schema = lake.add(table("a", price, keys=("price",)))
    lake.append(schema, Change(1, "u", {"price": Decimal("1.50")}, {"price": Decimal("2.50")}, changed=["price"]))
    lake.cut(1)
    delete, _, create = lake.records(
        header__converter=JSON,
        header__converter__schemas__enable=False,
        header__converter__decimal__format="NUMERIC",
        include__schema__changes=False,
    )
    assert (delete["key"], delete["headers"]["__debezium.newkey"]) == ({"price": "AJY="}, {"price": 2.5})
    assert create["headers"]["__debezium.oldkey"] == {"price": 1.5}


@pytest.mark.feature("DEP-02")
def test_the_simple_header_converter_writes_texts_and_escapes_only_quotes_and_backslashes(tmp_path: Path):
    lake = Lake(tmp_path)
    price = column("price", "decimal", precision=12, scale=9, nullable=False)
    schema = lake.add(table("a", price, column("name", "nvarchar", length=50), keys=("price", "name")))
    old = {"price": Decimal("0.000000100"), "name": 'a "b" \\ \n'}
    lake.append(schema, Change(1, "u", old, old | {"price": Decimal("2.500000000")}, changed=["price"]))
    lake.cut(1)
    delete, _, create = lake.records(header__converter=SIMPLE_HEADERS, include__schema__changes=False)
    name = '"name":"a \\"b\\" \\\\ \n"'
    assert delete["headers"]["__debezium.newkey"] == f'{{"price":2.500000000,{name}}}'
    assert create["headers"]["__debezium.oldkey"] == f'{{"price":1.00E-7,{name}}}'
    assert delete["headers"]["__debezium.context.taskId"] == "0"


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("0", "0.0"), ("-0.0", "-0.0"), ("1", "1.0"), ("0.1", "0.1"), ("-12.5", "-12.5"), ("0.001", "0.001"),
        ("0.0009", "9.0E-4"), ("9999999", "9999999.0"), ("10000000", "1.0E7"), ("15000000000.0", "1.5E10"),
        ("1.25e-300", "1.25E-300"), ("1200", "1200.0"), ("0.0123", "0.0123"),
    ],
)  # fmt: skip
def test_a_double_is_written_as_java_does(number: str, shown: str):
    assert java_double(number) == shown
