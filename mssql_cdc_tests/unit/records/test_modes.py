# ruff: noqa: DTZ001 - SQL Server's values have no zone
"""Values in every mode of times, decimals and bytes; old dates and missing values."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from mssql_cdc.config import MaskRule, Secret
from mssql_cdc.config.patterns import PatternList
from mssql_cdc.records.converters import null_text
from mssql_cdc.records.encodings import unscaled_text
from mssql_cdc.schema import Column
from mssql_cdc_tests.conformance.driver_bugs import spoiled
from mssql_cdc_tests.lake_kit import column
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.records.printing import printed


def truncated(length: int) -> MaskRule:
    return MaskRule(kind="truncate", columns=PatternList(), length=length)


def hashed(salt: str) -> MaskRule:
    return MaskRule(kind="hash", columns=PatternList(), algorithm="sha256", salt=Secret(salt))


MODES = ("adaptive", "adaptive_time_microseconds", "connect", "microseconds", "nanoseconds", "isostring")


MOMENT = datetime(2019, 7, 9, 2, 28, 57)  # 1562639337 seconds since 1970


IN_MODES: list[tuple[Column, Any, str | None, tuple[Any, ...]]] = [
    (column("date", "date"), date(2018, 7, 13), None, (17725,) * 5 + ("2018-07-13Z",)),
    (
        column("time(0)", "time", scale=0), "00:00:45", None,
        (45_000, 45_000_000, 45_000, 45_000_000, 45_000_000_000, "00:00:45Z"),
    ),
    (
        column("time(4)", "time", scale=4), "00:00:45.6789", None,
        (45_678_900, 45_678_900, 45_678, 45_678_900, 45_678_900_000, "00:00:45.6789Z"),
    ),
    (
        column("time(7)", "time", scale=7), "00:00:45.6789012", None,
        (45_678_901_200, 45_678_901, 45_678, 45_678_901, 45_678_901_200, "00:00:45.6789012Z"),
    ),
    (
        column("datetime", "datetime"), MOMENT.replace(microsecond=120_000), None,
        (*(1562639337120,) * 3, 1562639337120000, 1562639337120000000, "2019-07-09T02:28:57.12Z"),
    ),
    (
        column("smalldatetime", "smalldatetime"), MOMENT.replace(second=0), None,
        (*(1562639280000,) * 3, 1562639280000000, 1562639280000000000, "2019-07-09T02:28:00Z"),
    ),
    (
        column("datetime2(5)", "datetime2", scale=5), MOMENT.replace(microsecond=123_450), None,
        (
            *(1562639337123450,) * 2, 1562639337123, 1562639337123450, 1562639337123450000,
            "2019-07-09T02:28:57.12345Z",
        ),
    ),
    (
        column("datetime2(7)", "datetime2", scale=7), MOMENT.replace(microsecond=123_456),
        "2019-07-09 02:28:57.1234567",
        (
            *(1562639337123456700,) * 2, 1562639337123, 1562639337123456, 1562639337123456700,
            "2019-07-09T02:28:57.1234567Z",
        ),
    ),
]  # fmt: skip


@pytest.mark.feature("TYP-02")
@pytest.mark.parametrize(("kind", "value", "exact", "expected"), IN_MODES, ids=[one[0].name for one in IN_MODES])
def test_times_are_printed_in_the_unit_of_the_mode(kind: Column, value: Any, exact: str | None, expected: Any):
    found = tuple(printed(kind, value, exact, time__precision__mode=mode) for mode in MODES)
    assert found == expected


@pytest.mark.feature("TYP-02")
@pytest.mark.parametrize("mode", MODES)
def test_datetimeoffset_is_the_same_text_in_every_mode(mode: str):
    kind = column("c", "datetimeoffset", scale=3)
    at = datetime(2018, 7, 13, 1, 23, 45, 450_000, tzinfo=UTC)
    shown = printed(kind, at, "2018-07-13 12:23:45.450 +11:00", time__precision__mode=mode)
    assert shown == "2018-07-13T12:23:45.45+11:00"
    assert printed(kind, at, time__precision__mode=mode) == "2018-07-13T01:23:45.45Z"


@pytest.mark.feature("TYP-02")
@pytest.mark.parametrize(("mode", "expected"), [("precise", "AvrwgA=="), ("double", 500000.0), ("string", "500000.00")])
def test_decimals_follow_their_mode(mode: str, expected: Any):
    kind = column("c", "decimal", precision=10, scale=2)
    assert printed(kind, Decimal("500000.00"), decimal__handling__mode=mode) == expected


def test_decimals_as_text_never_have_an_exponent():
    kind = column("c", "decimal", precision=38, scale=20)
    assert printed(kind, Decimal("1E-20"), decimal__handling__mode="string") == "0.00000000000000000001"


@pytest.mark.feature("TYP-02")
@pytest.mark.parametrize(
    ("mode", "expected"), [("bytes", "+/8B"), ("base64", "+/8B"), ("base64-url-safe", "-_8B"), ("hex", "fbff01")]
)
def test_bytes_follow_their_mode(mode: str, expected: str):
    assert printed(column("c", "varbinary", length=8), b"\xfb\xff\1", binary__handling__mode=mode) == expected


@pytest.mark.feature("TYP-02", "FLT-06")
@pytest.mark.parametrize(
    ("mode", "expected"), [("bytes", "AQIDBA=="), ("base64", "AQID"), ("base64-url-safe", "AQID"), ("hex", "0102")]
)
def test_bytes_are_truncated_as_the_texts_they_become(mode: str, expected: str):
    """Twice as much of a value was shown as Debezium shows; the lake has as many bytes as the text has characters."""
    kind, mask = column("c", "varbinary", length=8), truncated(4)
    assert printed(kind, b"\1\2\3\4", mask=mask, binary__handling__mode=mode) == expected
    assert printed(kind, None, mask=mask, binary__handling__mode=mode) is None
    assert printed(kind, b"\1\2", mask=mask, binary__handling__mode="hex") == "0102"
    short = column("c", "binary", length=4)
    assert printed(short, b"\1\2\3\4", mask=mask, binary__handling__mode="hex") == "01020304", "as long as the column"


@pytest.mark.feature("FLT-06", "FLT-09", "EVT-20")
@pytest.mark.parametrize(
    ("kind", "default", "mask", "expected"),
    [
        ("nvarchar", "('abcdef')", truncated(3), "abc"),
        ("nvarchar", None, truncated(3), ""),
        ("nvarchar", None, hashed("s"), hashlib.sha256(b"s").hexdigest()),
        ("ntext", "('abc')", hashed("s"), hashlib.sha256(b"sabc").hexdigest()),
        ("varbinary", "(0x01020304)", truncated(3), "010"),
    ],
)
def test_what_replaces_a_value_that_was_not_delivered_is_masked(
    kind: str, default: str | None, mask: MaskRule, expected: str
):
    settings = connector_with({"binary.handling.mode": "hex"}).records
    one = column("c", kind, length=-1, nullable=False, default_text=default)
    assert json.loads(null_text(one, settings, mask=mask)) == expected
    assert printed(one, None, mask=mask, binary__handling__mode="hex") == expected
    assert null_text(replace(one, nullable=True), settings, mask=mask) == "null"


@pytest.mark.feature("TYP-02")
@pytest.mark.parametrize(
    ("day", "debezium"),
    [
        (date(1582, 10, 4), date(1582, 10, 4)),
        (date(1582, 10, 5), date(1582, 10, 15)),
        (date(1582, 10, 14), date(1582, 10, 24)),
        (date(1582, 10, 15), date(1582, 10, 15)),
    ],
)
def test_days_that_javas_calendar_lacks_are_those_of_the_source_and_not_those_of_debezium(day: date, debezium: date):
    midnight = datetime(day.year, day.month, day.day)
    since, theirs = ((one - date(1970, 1, 1)).days for one in (day, debezium))
    exact = f"{day} 00:00:00.0000001"
    shown = {
        printed(column("c", "date"), day): (since, theirs),
        printed(column("c", "date"), day, time__precision__mode="isostring"): (f"{day}Z", f"{debezium}Z"),
        printed(column("c", "datetime2", scale=0), midnight): (since * 86_400_000, theirs * 86_400_000),
        printed(column("c", "datetime2", scale=7), midnight, exact, time__precision__mode="isostring"): (
            f"{day}T00:00:00.0000001Z",
            f"{debezium}T00:00:00.0000001Z",
        ),
    }
    for value, (true, other) in shown.items():
        assert value == true
        assert other in (spoiled(value) if day != debezium else [value])


@pytest.mark.feature("TYP-02")
@pytest.mark.parametrize(
    ("exact", "debezium"),
    [
        ("1500-02-28 01:02:03.4567891 -02:00", "1500-03-09T01:02:04.4567891-02:00"),
        ("1582-10-15 00:30:00.0000000 +01:00", "1582-10-25T00:30:00+01:00"),
        ("1582-10-15 00:30:00.0000000 -01:00", "1582-10-15T00:30:00-01:00"),
        ("1969-12-31 23:59:58.5000000 +00:00", "1969-12-31T23:59:59.5Z"),
        ("1969-12-31 23:59:58.0009999 +00:00", "1969-12-31T23:59:58.0009999Z"),
        ("1970-01-01 00:00:00.5000000 +00:00", "1970-01-01T00:00:00.5Z"),
    ],
)
def test_old_zoned_timestamps_are_those_of_the_source_and_not_those_of_debezium(exact: str, debezium: str):
    at = datetime.fromisoformat(f"{exact[:26]}{exact[-6:]}")
    shown = printed(column("c", "datetimeoffset", scale=7), at, exact)
    assert datetime.fromisoformat(f"{shown[:26].rstrip('Z')}{exact[-6:]}" if "." in shown else shown) == at
    assert debezium in spoiled(shown)


@pytest.mark.feature("EVT-20")
@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("int", None, 0),
        ("int", "((7))", 7),
        ("bigint", "((-5.))", -5),
        ("bit", "((1))", True),
        ("bit", None, False),
        ("float", "((1.5))", 1.5),
        ("money", "((2.5))", unscaled_text(25_000)),
        ("nvarchar", "(N'abc')", "abc"),
        ("varchar", "('it''s')", "it''s"),
        ("varchar", "(getdate())", ""),
        ("varbinary", "(0x0102)", "AQI="),
        ("datetime", "(getdate())", 0),
        ("datetimeoffset", None, "1970-01-01T00:00:00Z"),
        ("int", "(NULL)", 0),
    ],
)
def test_an_undelivered_value_of_a_not_null_column_is_its_default_or_zero(
    kind: str, default: str | None, expected: Any
):
    settings = connector_with({}).records
    found = json.loads(null_text(column("c", kind, nullable=False, default_text=default), settings))
    assert found == expected
    assert type(found) is type(expected)
