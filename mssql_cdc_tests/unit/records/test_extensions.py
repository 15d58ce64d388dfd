"""Converters, post-processors and transaction factories of users: the documented ones, and what is refused (SPI)."""

from __future__ import annotations

import base64
import importlib
import re
import sys
import traceback
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mssql_cdc.errors import ConfigurationError, ConversionError
from mssql_cdc.records.custom_converters import source_values
from mssql_cdc.schema import Column
from mssql_cdc_tests.lake_kit import Change, column
from mssql_cdc_tests.unit.documented_extensions import installed as install_documented
from mssql_cdc_tests.unit.extension_kit import install
from mssql_cdc_tests.unit.records.kit import Lake, table

MONEY = {"converters": "money", "money.type": "cents", "money.columns": "price"}
UPPER = {"post.processors": "upper", "upper.type": "upper", "upper.field": "name"}
CLOUDY = {"value.converter": "io.debezium.converters.CloudEventsConverter"}
ORDERS = table(
    "orders",
    column("id", "int", nullable=False),
    column("name", "nvarchar", length=50),
    column("price", "decimal", precision=9, scale=2, default_text="((1.5))"),
    column("note", "nvarchar", length=-1),
)
OWN = """
from mssql_cdc.records.transaction_structs import DefaultTransactionStructMaker


class Converter:
    def configure(self, properties):
        self.properties = properties

    def converter_for(self, column, registration):
        if column.name == self.properties.get("column", "price"):
            registration.register(eval(self.properties["schema"]), lambda value: eval(self.properties["value"]))


class Processor:
    def configure(self, properties):
        self.code = properties["code"]
        self.secret = properties.get("password")

    def apply(self, key, value):
        exec(self.code)

    def close(self):
        closed.append(self.code)
        if self.secret:
            raise ConnectionError("cannot close with " + self.secret)


closed = []


class Turned(DefaultTransactionStructMaker):
    def configure(self, properties):
        pass

    def transaction_struct_maker(self):
        return self

    def block_schema(self):
        names = {"whose": "string", "first": "int64", "second": "int64", "more": "boolean"}
        fields = [{"type": type, "field": name} for name, type in names.items()]
        return {"type": "struct", "fields": fields, "name": "turned"}

    def transaction_block(self, transaction, total_order, data_collection_order):
        return {"more": True, "second": total_order * 10, "first": data_collection_order, "whose": f"own-{transaction}"}
"""


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake with a table of prices, and the extensions of the document beside two that do what they are told."""
    install_documented(tmp_path / "site", monkeypatch)
    points = {"mssql_cdc.converters": {"own": "own_extensions:Converter"}}
    points |= {"mssql_cdc.post_processors": {"own": "own_extensions:Processor"}}
    points |= {"mssql_cdc.transaction_metadata_factories": {"turned": "own_extensions:Turned"}}
    install(tmp_path / "site", "own", points, {"own_extensions": OWN})
    monkeypatch.delitem(sys.modules, "own_extensions", raising=False)
    lake = Lake(tmp_path / "lake")
    lake.add(ORDERS)
    return lake


def play(lake: Lake) -> None:
    """An insert, an update that changes the key, a delete."""
    first = {"id": 1, "name": "one", "price": Decimal("9.99")}
    moved = {"id": 2, "name": "two", "price": None}
    lake.append(
        ORDERS,
        Change(5, "c", after=first),
        Change(6, "u", before=first, after=moved, changed=["id", "name", "price"]),
        Change(7, "d", before=moved),
    )
    lake.cut(7)


def rows(lake: Lake, **properties: object) -> list[dict[str, Any]]:
    found = lake.records(**properties)
    return [one for one in found if one["value"] is not None and one["topic"].endswith("orders")]


def own(**options: str) -> dict[str, str]:
    return {"converters": "c", "c.type": "own", **{f"c.{name}": value for name, value in options.items()}}


@pytest.mark.feature("SPI-05")
def test_converter_makes_values_schema_and_default(extended: Lake) -> None:
    play(extended)
    extended.properties = MONEY
    found = rows(
        extended, value__converter__schemas__enable="true", value__converter__replace__null__with__default=False
    )
    assert [one["value"]["payload"]["after"] and one["value"]["payload"]["after"]["price"] for one in found] == [
        999, None, None, None,
    ]  # fmt: skip
    assert found[1]["value"]["payload"]["before"]["price"] == 999
    before = found[0]["value"]["schema"]["fields"][0]
    assert before["fields"][2] == {
        "type": "int64", "optional": True, "name": "shop.Cents", "version": 1, "default": 150, "field": "price",
    }  # fmt: skip


@pytest.mark.feature("SPI-05")
def test_null_of_a_converted_column_becomes_the_converted_default(extended: Lake) -> None:
    play(extended)
    extended.properties = MONEY
    found = rows(extended, value__converter__schemas__enable="false")
    assert found[2]["value"]["after"]["price"] == 150


@pytest.mark.feature("SPI-05")
def test_converter_applies_to_keys(extended: Lake) -> None:
    play(extended)
    options = own(column="id", schema="{'type': 'string'}", value="f'#{value}'")
    extended.properties = {**options, "message.key.columns": "dbo.orders:id,name"}
    found = extended.records()
    keys = [one["key"] for one in found if one["topic"].endswith("orders")]
    assert keys[0] == {"id": "#1", "name": "one"}
    assert found[1]["value"]["after"]["id"] == "#1"


@pytest.mark.feature("SPI-05")
@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        (
            {"schema": "{'type': 'int8'}", "value": "200 if value is None else 1"},
            ConversionError,
            "makes a value that its schema does not allow",
        ),
        (
            {"schema": "{'type': 'int8'}", "value": "1 / 0 if value is None else 1"},
            ConversionError,
            "ZeroDivisionError",
        ),
        ({"schema": "{'type': 'int8'}", "value": "1 / 0"}, ConfigurationError, "'price' of testDB1.dbo.orders: Zero"),
        ({"schema": "{'type': 'money'}", "value": "1"}, ConfigurationError, "the schema has the type 'money'"),
        ({"schema": "7", "value": "1"}, ConfigurationError, "the schema has the type None, expected one of array"),
    ],
)
def test_converter_that_fails_is_an_error_with_its_name(
    extended: Lake, options: dict[str, str], error: type[Exception], expected: str
) -> None:
    play(extended)
    extended.properties = own(**options)
    with pytest.raises(error, match=expected) as caught:
        extended.records()
    assert "c.type" in str(caught.value) or "converter 'c'" in str(caught.value)


@pytest.mark.feature("ERR-01", "SPI-05")
def test_change_that_a_converter_fails_for_can_be_left_out(extended: Lake) -> None:
    play(extended)
    extended.properties = own(schema="{'type': 'int8'}", value="1 / 0 if value is None else 1")
    found = rows(extended, event__processing__failure__handling__mode="warn")
    assert [one["value"]["op"] for one in found] == ["c"]


@pytest.mark.feature("ERR-01", "SPI-05", "SPI-10")
@pytest.mark.parametrize(
    "properties",
    [
        pytest.param(own(column="name", schema="{'type': 'int64'}", value="value and int(value)"), id="raises it"),
        pytest.param(own(column="name", schema="{'type': 'int64'}", value="value or 1"), id="returns it"),
        pytest.param(
            {"post.processors": "p", "p.type": "own", "p.code": "value['after']['id'] = value['after']['name']"},
            id="shows it as another field",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["fail", "warn"])
def test_no_value_of_a_row_is_told_where_an_extension_fails(
    extended: Lake, caplog: pytest.LogCaptureFixture, properties: dict[str, str], mode: str
) -> None:
    first = {"id": 1, "name": "Ada Lovelace", "price": None}
    extended.append(ORDERS, Change(5, "c", after=first))
    extended.cut(5)
    extended.properties = properties
    told = ""
    try:
        rows(extended, event__processing__failure__handling__mode=mode)
    except ConversionError as error:
        told = "".join(traceback.format_exception(error))
    assert told or "its records are left out" in caplog.text
    assert "Ada" not in told + caplog.text


@pytest.mark.feature("SPI-05")
def test_masked_column_cannot_be_registered(extended: Lake) -> None:
    play(extended)
    extended.properties = own(column="name", schema="{'type': 'string'}", value="value")
    with pytest.raises(ConfigurationError, match="which is masked: the lake has only its masked values"):
        extended.records(column__mask__with__3__chars="dbo.orders.name")


def decimal_of(scale: int) -> str:
    parameters = {"scale": str(scale)}
    return repr({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters})


def base64_of(unscaled: int) -> str:
    return base64.b64encode(unscaled.to_bytes(16, "big", signed=True)).decode()


@pytest.mark.feature("SPI-05")
@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("{'type': 'bytes'}", "b'ab'", "YWI="),
        ("{'type': 'array', 'items': {'type': 'int32'}}", "[1, 2]", [1, 2]),
        ("{'type': 'map', 'values': {'type': 'boolean'}}", "{'a': True}", {"a": True}),
        ("{'type': 'struct', 'fields': [{'type': 'double', 'field': 'x'}]}", "{'x': 1}", {"x": 1.0}),
        (
            "{'type': 'bytes', 'name': 'org.apache.kafka.connect.data.Decimal', 'parameters': {'scale': '2'}}",
            "__import__('decimal').Decimal('2.5')", "APo=",
        ),
        *((decimal_of(scale), f"__import__('decimal').Decimal('{number}')", base64_of(whole))
          for scale, number, whole in (
            (2, "123456789012345678901234567890123456.12", 12345678901234567890123456789012345612),
            (38, "-0.99999999999999999999999999999999999999", -(10**38 - 1)),
            (0, "9" * 38, 10**38 - 1),
        )),
    ],
)  # fmt: skip
def test_converted_values_can_have_every_type_of_kafka_connect(
    extended: Lake, schema: str, value: str, expected: Any
) -> None:
    play(extended)
    extended.properties = own(schema=schema, value=value)
    assert rows(extended)[0]["value"]["after"]["price"] == expected


@pytest.mark.feature("SPI-05")
@pytest.mark.parametrize(
    ("kind", "value", "exact", "expected"),
    [
        (column("c", "date"), date(2026, 1, 2), None, date(2026, 1, 2)),
        (column("c", "time", scale=7), "01:02:03.4567891", None, "01:02:03.4567891"),
        (column("c", "datetime2", scale=6), datetime(2026, 1, 2), None, datetime(2026, 1, 2)),  # noqa: DTZ001
        (column("c", "datetime2", scale=7), datetime(2026, 1, 2), None, "2026-01-02T00:00:00.0000000"),  # noqa: DTZ001
        (
            column("c", "datetime2", scale=7), datetime(2026, 1, 2), "2026-01-02 00:00:00.0000007",  # noqa: DTZ001
            "2026-01-02T00:00:00.0000007",
        ),
        (
            column("c", "datetimeoffset", scale=7), None, "2026-01-02 00:00:00.0000007 +02:00",
            None,
        ),
        (column("c", "nvarchar", length=5), "\ufffd", "utf16:d800", "\ud800"),
        (column("c", "varbinary", length=5), b"a", None, b"a"),
        (column("c", "bit"), True, None, True),
    ],
)  # fmt: skip
def test_converters_get_values_that_lose_nothing(kind: Column, value: Any, exact: str | None, expected: Any) -> None:
    texts = None if exact is None else pa.array([exact])
    assert source_values(kind, pa.array([value], kind.type.arrow), texts) == [expected]


@pytest.mark.feature("SPI-10")
def test_post_processor_changes_every_record_of_a_change_and_nothing_else(extended: Lake) -> None:
    play(extended)
    extended.properties = UPPER
    found = extended.records()
    assert [one["value"]["after"]["name"] for one in found[1:] if one["value"] and one["value"]["after"]] == [
        "ONE", "TWO",
    ]  # fmt: skip
    plain = Lake(extended.folder).records()
    assert [one["key"] for one in found] == [one["key"] for one in plain]
    assert [one["sourceOffset"] for one in found] == [one["sourceOffset"] for one in plain]
    assert found[0] == plain[0]


@pytest.mark.feature("SPI-10")
def test_post_processor_is_closed_once_after_all_records(extended: Lake) -> None:
    play(extended)
    extended.properties = {"post.processors": "p", "p.type": "own", "p.code": "pass"}
    extended.records()
    closed = importlib.import_module("own_extensions").closed
    assert closed == ["pass"]
    extended.properties = {**extended.properties, "p.code": "1 / 0"}
    with pytest.raises(ConversionError):
        extended.records()
    assert closed == ["pass", "1 / 0"]


def test_post_processor_that_cannot_be_closed_is_named_without_its_secret(
    extended: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    play(extended)
    own_secret = {"p.password": "sesame"}
    extended.properties = {"post.processors": "p", "p.type": "own", "p.code": "pass", **own_secret}
    extended.records()
    assert [line for line in caplog.messages if "cannot close" in line] == [
        "The post-processor p cannot be closed: ConnectionError: cannot close with ***"
    ]


@pytest.mark.feature("EVT-26", "SPI-10")
def test_post_processor_changes_the_images_of_cloud_events(extended: Lake) -> None:
    play(extended)
    extended.properties = {**UPPER, **CLOUDY}
    (first, *_) = rows(extended)
    assert first["value"]["data"]["payload"]["after"]["name"] == "ONE"
    extended.properties = {**CLOUDY, "post.processors": "p", "p.type": "own", "p.code": "value['op'] = 'r'"}
    with pytest.raises(ConversionError, match=r"changes op of the change at .*; with CloudEvents, only"):
        extended.records()


@pytest.mark.feature("SPI-10")
def test_post_processor_can_change_a_key_and_keeps_the_digits_of_numbers(extended: Lake) -> None:
    play(extended)
    code = "key['id'] += 100; value['after'] and value['after'].update(name='x')"
    extended.properties = {"post.processors": "p", "p.type": "own", "p.code": code}
    found = rows(extended, value__converter__decimal__format="NUMERIC", value__converter__schemas__enable="false")
    assert (found[0]["key"], found[0]["value"]["after"]["price"]) == ({"id": 101}, 9.99)


@pytest.mark.feature("SPI-10")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("value['after']['id'] = 'x'", r"after.id: found a str, expected int32"),
        ("del value['after']['id']", r"after: has the fields .*expected"),
        ("value['before'] = 7", r"before: found an int of 3 bits, expected struct"),
        ("key['id'] = None", r"id: found None for a value that cannot be null"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_post_processor_that_breaks_the_schema_is_an_error(extended: Lake, code: str, expected: str) -> None:
    play(extended)
    extended.properties = {"post.processors": "p", "p.type": "own", "p.code": code}
    with pytest.raises(ConversionError, match=f"The post-processor 'p' fails for the change at .*({expected})"):
        extended.records()


@pytest.mark.feature("SPI-11")
def test_transaction_factory_shows_blocks_and_transactions_in_its_way(extended: Lake) -> None:
    play(extended)
    extended.properties = {"transaction.metadata.factory": "numbered", "provide.transaction.metadata": "true"}
    found = extended.records(value__converter__schemas__enable="true")
    blocks = [
        one["value"]["payload"]["transaction"] for one in found if "op" in (one["value"] or {}).get("payload", {})
    ]
    assert blocks == [{"number": 1}, {"number": 1}, {"number": 2}, {"number": 1}]
    boundaries = [one for one in found if one["topic"].endswith("transaction")]
    assert [one["value"]["payload"]["status"] for one in boundaries] == ["BEGIN", "END"] * 2 + ["BEGIN"]
    assert boundaries[3]["value"]["payload"]["data_collections"] == [
        {"data_collection": "testDB1.dbo.orders", "event_count": 2}
    ]
    schema = next(one for one in found if one["topic"].endswith("orders"))["value"]["schema"]
    assert schema["fields"][3] == {
        "type": "struct", "fields": [{"type": "int64", "field": "number"}], "name": "shop.Number", "version": 1,
        "optional": True, "field": "transaction",
    }  # fmt: skip


@pytest.mark.feature("EVT-26", "SPI-11")
def test_cloud_events_show_the_first_three_fields_of_a_block_whatever_their_names(extended: Lake) -> None:
    play(extended)
    numbered = {"transaction.metadata.factory": "turned", "provide.transaction.metadata": "true"}
    extended.properties = numbered | CLOUDY
    shown = ("iodebeziumtxid", "iodebeziumtxtotalorder", "iodebeziumtxdatacollectionorder")
    found = [tuple(one["value"][name] for name in shown) for one in rows(extended) if one["value"]]
    assert [(order, place) for _, order, place in found] == [("1", "10"), ("1", "10"), ("2", "20"), ("1", "10")]
    assert all(re.fullmatch(r"own-[0-9a-f:]+", id_) for id_, _, _ in found)


@pytest.mark.feature("EVT-26")
def test_block_that_debezium_could_not_show_in_cloud_events_is_an_error(extended: Lake) -> None:
    play(extended)
    numbered = {"transaction.metadata.factory": "numbered", "provide.transaction.metadata": "true"}
    extended.properties = numbered | CLOUDY
    with pytest.raises(ConfigurationError, match=r"first three fields .* string, int64, int64 .* of numbered begin"):
        extended.records()
    assert extended.records(value__converter__extension__attributes__enable="false")
