# ruff: noqa: DTZ001 - SQL Server's values have no zone
"""Every SQL Server type as the real Debezium 3.3.1 prints it, and every mode (TYP-01, TYP-02)."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.events import to_change_log
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.records.encodings import unscaled_text, unscaled_texts
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.rows import changes_of
from mssql_cdc.records.schema_changes import table_structure
from mssql_cdc.records.shapes import Shapes
from mssql_cdc.records.temporal import timestamps, zoned_timestamps
from mssql_cdc.schema import Column, TableSchema
from mssql_cdc_tests.conformance.driver_bugs import spoiled
from mssql_cdc_tests.lake_kit import Change, column, neutral
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.records.kit import RECORDED, table
from mssql_cdc_tests.unit.records.printing import printed

TWO_HOURS = timezone(timedelta(hours=2))
COLUMNS: dict[str, Column] = {
    name: column(name, kind, **more)
    for name, kind, more in [
        ("id", "int", {"nullable": False}),
        ("c_bit", "bit", {}),
        ("c_tinyint", "tinyint", {}),
        ("c_smallint", "smallint", {}),
        ("c_int", "int", {}),
        ("c_bigint", "bigint", {}),
        ("c_dec", "decimal", {"precision": 18, "scale": 4}),
        ("c_dec38", "decimal", {"precision": 38, "scale": 10}),
        ("c_num", "numeric", {"precision": 9, "scale": 0}),
        ("c_money", "money", {}),
        ("c_smallmoney", "smallmoney", {}),
        ("c_float", "float", {}),
        ("c_real", "real", {}),
        ("c_char", "char", {"length": 5}),
        ("c_varchar", "varchar", {"length": 20}),
        ("c_varcharmax", "varchar", {"length": -1}),
        ("c_vc_utf8", "varchar", {"length": 40}),
        ("c_nchar", "nchar", {"length": 4}),
        ("c_nvarchar", "nvarchar", {"length": 30}),
        ("c_nvmax", "nvarchar", {"length": -1}),
        ("c_binary", "binary", {"length": 10}),
        ("c_varbinary", "varbinary", {"length": 20}),
        ("c_vbmax", "varbinary", {"length": -1}),
        ("c_rv", "timestamp", {}),
        ("c_guid", "uniqueidentifier", {}),
        ("c_date", "date", {}),
        ("c_time0", "time", {"scale": 0}),
        ("c_time7", "time", {"scale": 7}),
        ("c_datetime", "datetime", {}),
        ("c_smalldt", "smalldatetime", {}),
        ("c_dt2_0", "datetime2", {"scale": 0}),
        ("c_dt2_3", "datetime2", {"scale": 3}),
        ("c_dt2_7", "datetime2", {"scale": 7}),
        ("c_dto3", "datetimeoffset", {"scale": 3}),
        ("c_dto7", "datetimeoffset", {"scale": 7}),
        ("c_xml", "xml", {}),
        ("c_text", "text", {}),
        ("c_ntext", "ntext", {}),
        ("c_image", "image", {}),
    ]
}
NOON = datetime(2024, 2, 29, 12, 34, 56)
USUAL: dict[str, Any] = {
    "id": 1,
    "c_bit": True,
    "c_tinyint": 200,
    "c_smallint": -5,
    "c_int": 123456,
    "c_bigint": 1 << 40,
    "c_dec": Decimal("12345.6789"),
    "c_dec38": Decimal("1.5000000000"),
    "c_num": Decimal(42),
    "c_money": Decimal("1234.5678"),
    "c_smallmoney": Decimal("12.3400"),
    "c_float": 1.5,
    "c_real": 0.25,
    "c_char": "ab   ",
    "c_varchar": "Zürich",
    "c_vc_utf8": "Zürich",
    "c_nchar": "né  ",
    "c_nvarchar": "Zürich 日本 😀",
    "c_binary": bytes(range(10)),
    "c_varbinary": b"\1\2",
    "c_rv": bytes([0, 0, 0, 0, 0, 0, 0, 7]),
    "c_guid": "01234567-89AB-CDEF-0123-456789ABCDEF",
    "c_date": date(2024, 2, 29),
    "c_time0": "23:59:59",
    "c_time7": "12:34:56.1234567",
    "c_datetime": NOON.replace(microsecond=997000),
    "c_smalldt": datetime(2024, 2, 29, 12, 35),
    "c_dt2_0": NOON,
    "c_dt2_3": NOON.replace(microsecond=123000),
    "c_dt2_7": NOON.replace(microsecond=123456),
    "c_dto3": NOON.replace(microsecond=123000, tzinfo=TWO_HOURS).astimezone(UTC),
    "c_dto7": NOON.replace(microsecond=123456, tzinfo=timezone(timedelta(hours=-5, minutes=-30))).astimezone(UTC),
    "c_xml": "<a>é</a>",
    "c_text": "plain",
    "c_ntext": "日本",
    "c_image": b"\0\1",
}
USUAL_EXACT = {
    "c_dt2_7": "2024-02-29 12:34:56.1234567",
    "c_dto3": "2024-02-29 12:34:56.123 +02:00",
    "c_dto7": "2024-02-29 12:34:56.1234567 -05:30",
}
YEAR_9999 = datetime(9999, 12, 31, 23, 59, 59)
EXTREME: dict[str, Any] = {
    "id": 2,
    "c_bit": False,
    "c_tinyint": 255,
    "c_smallint": -(1 << 15),
    "c_int": -(1 << 31),
    "c_bigint": -(1 << 63),
    "c_dec": Decimal("-99999999999999.9999"),
    "c_dec38": Decimal("-9999999999999999999999999999.9999999999"),
    "c_num": Decimal(-999999999),
    "c_money": Decimal("-922337203685477.5808"),
    "c_smallmoney": Decimal("-214748.3648"),
    "c_float": -1.7976931348623157e308,
    "c_real": -3.4028234663852886e38,
    "c_char": "abcde",
    "c_varchar": "",
    "c_varcharmax": "",
    "c_vc_utf8": "€",
    "c_nchar": "日本語文",
    "c_nvarchar": "",
    "c_nvmax": "",
    "c_binary": b"\xff" * 10,
    "c_varbinary": b"",
    "c_vbmax": b"",
    "c_rv": b"\xff" * 8,
    "c_guid": "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "c_date": date(1, 1, 1),
    "c_time0": "00:00:00",
    "c_time7": "23:59:59.9999999",
    "c_datetime": datetime(1753, 1, 1),
    "c_smalldt": datetime(1900, 1, 1),
    "c_dt2_0": datetime(1, 1, 1),
    "c_dt2_3": YEAR_9999.replace(microsecond=999000),
    "c_dt2_7": YEAR_9999.replace(microsecond=999999),
    "c_dto3": datetime(1, 1, 1, 0, 0, tzinfo=UTC),
    "c_dto7": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "c_xml": "",
    "c_text": "",
    "c_ntext": "",
    "c_image": b"",
}
EXTREME_EXACT = {
    "c_dt2_7": "9999-12-31 23:59:59.9999999",
    "c_dto3": "0001-01-01 14:00:00.000 +14:00",
    "c_dto7": "9999-12-31 09:59:59.9999999 -14:00",
}


def rendered(schema: TableSchema, *changes: Change, **properties: object) -> list[tuple[Any, Any]]:
    """The keys and after images of these changes."""
    connector = connector_with({name.replace("__", "."): value for name, value in properties.items()})
    history = SchemaHistory({schema.table_id.text: (schema,)})
    batch = to_change_log(neutral(schema, *changes), table_schema=schema, batch_number=1, snapshot="1")
    (found,) = changes_of(batch, schema.table_id, Shapes(history, connector, Extensions.of(connector)))
    assert found.key_after is not None
    pairs = zip(found.key_after.to_pylist(), found.after.to_pylist(), strict=True)
    return [(json.loads(key), json.loads(after)) for key, after in pairs]


@pytest.mark.feature("TYP-01", "TYP-02")
@pytest.mark.parametrize(
    ("values", "exact", "recorded"), [(USUAL, USUAL_EXACT, 0), (EXTREME, EXTREME_EXACT, 1)], ids=["usual", "extreme"]
)
def test_every_type_prints_what_debezium_printed(values: dict[str, Any], exact: dict[str, str], recorded: int):
    schema = table("alltypes", *COLUMNS.values())
    ((key, after),) = rendered(schema, Change(1, "r", after=values, exact={"after": exact}))
    expected = RECORDED["rows"][recorded]
    spoilt = {name for name in expected if after[name] != expected[name] and expected[name] in spoiled(after[name])}
    assert spoilt == ({"c_dto3"} if recorded else set())
    assert {name: after[name] for name in expected} == expected | {name: after[name] for name in spoilt}
    assert key == {"id": values["id"]}


def test_null_stays_null_in_every_nullable_column():
    ((_, after),) = rendered(table("alltypes", *COLUMNS.values()), Change(1, "r", after={"id": 3}))
    assert after == dict.fromkeys(COLUMNS) | {"id": 3}


@pytest.mark.feature("SCH-08")
def test_the_structure_of_a_table_is_what_the_driver_reports_to_debezium():
    assert table_structure(table("alltypes", *COLUMNS.values())) == RECORDED["alltypes"]


@pytest.mark.feature("SCH-12", "EVT-20")
def test_the_structure_contains_identity_and_defaults():
    orders = table(
        "orders",
        column("id", "int", nullable=False, identity=True),
        column("name", "nvarchar", length=50, nullable=False),
        column("qty", "int", default_text="((1))"),
    )
    found = table_structure(orders)["columns"]
    assert found == RECORDED["orders"]["columns"][:3]


def test_a_lone_surrogate_is_restored_from_its_exact_text():
    assert printed(column("c", "nvarchar", length=8), "a\ufffd", "utf16:0061d800") == "a\ud800"


def test_sql_variant_is_omitted():
    schema = table("variants", column("id", "int", nullable=False), column("v", "sql_variant"))
    ((_, after),) = rendered(schema, Change(1, "c", after={"id": 1, "v": "x"}))
    assert after == {"id": 1}


# -- algebra ---------------------------------------------------------------------------------------------------


@given(st.integers(1 - 10**38, 10**38 - 1) | st.integers(-300, 300))
def test_precise_decimals_use_the_fewest_bytes_that_represent_the_number(number: int):
    (text,) = unscaled_texts(pa.array([Decimal(number)], pa.decimal128(38, 0))).to_pylist()
    assert text == unscaled_text(number)
    raw = base64.b64decode(text)
    assert int.from_bytes(raw, "big", signed=True) == number
    if len(raw) > 1:
        with pytest.raises(OverflowError):
            number.to_bytes(len(raw) - 1, "big", signed=True)


@given(st.datetimes(datetime(1582, 10, 15), datetime(9999, 12, 31)), st.integers(0, 9))
def test_nanoseconds_are_exact_modulo_64_bits(moment: datetime, digit: int):
    exact = pa.array([f"{moment:%Y-%m-%d %H:%M:%S.%f}"[-26:].zfill(26) + str(digit)])
    values = pa.array([moment], pa.timestamp("us"))
    true = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000 + digit * 100
    found = timestamps(values, exact, 1)[0].as_py()
    assert found is not None
    assert (found - true) % (1 << 64) == 0


@given(
    st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC)),
    st.integers(-14 * 60, 14 * 60),
)
def test_a_zoned_timestamp_contains_the_instant_and_the_offset(moment: datetime, minutes: int):
    local = moment + timedelta(minutes=minutes)
    sign, size = ("-" if minutes < 0 else "+"), abs(minutes)
    exact = f"{local:%Y-%m-%d %H:%M:%S.%f}0 {sign}{size // 60:02}:{size % 60:02}"
    texts = pa.array([exact if minutes else None], pa.string())
    (shown,) = zoned_timestamps(pa.array([moment], pa.timestamp("us", tz="UTC")), texts).to_pylist()
    assert shown is not None
    parsed = datetime.fromisoformat(shown)
    assert parsed == moment
    assert parsed.utcoffset() == timedelta(minutes=minutes)
