"""Both canonical texts of a value are equal, and a changed value has a different one."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.check.checksums import encode
from mssql_cdc.check.sides import texts_of
from mssql_cdc.lake.canonical import lake_text
from mssql_cdc.schema import Column, SqlServerType
from mssql_cdc.source.sqlserver.check_texts import source_text

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def column(name: str, **more: Any) -> Column:
    return Column("c", SqlServerType(name, **more))


def micros(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, micro: int = 0) -> int:
    at = datetime(year, month, day, hour, minute, second, micro, tzinfo=UTC)
    return (at - EPOCH) // timedelta(microseconds=1)


# type, what T-SQL sends, what the lake holds, its exact text, another lake value
PAIRS = [
    ("bit", "1", True, None, False),
    ("tinyint", "255", 255, None, 254),
    ("bigint", "-9223372036854775808", -(2**63), None, -(2**63) + 1),
    ("decimal", "-12.3400", Decimal("-12.3400"), None, Decimal("-12.3401")),
    ("decimal", "0.0000000100", Decimal("1.00E-8"), None, Decimal("2.00E-8")),
    ("money", "922337203685477.5807", Decimal("922337203685477.5807"), None, Decimal("922337203685477.5806")),
    ("float", "1.0000000000000001e-001", 0.1, None, 0.10000000000000002),
    ("real", "1.0000000149011612e-001", struct.unpack("f", struct.pack("f", 0.1))[0], None, 0.1),
    ("nvarchar", "aé😀 ".encode("utf-16-le"), "aé😀 ", None, "aé😀"),
    ("nvarchar", b"\x00\xd8a\x00", "\ufffda", "utf16:d8000061", "a"),
    ("varchar", b"", "", None, " "),
    ("uniqueidentifier", "0E984725-c51c-4BF4-9960-E1C80E27ABA0", "0E984725-C51C-4BF4-9960-E1C80E27ABA0", None, "0"),
    ("varbinary", b"\x00\xff", b"\x00\xff", None, b"\x00"),
    ("rowversion", b"\0\0\0\0\0\0\7\xd1", b"\0\0\0\0\0\0\7\xd1", None, b"\0\0\0\0\0\0\7\xd2"),
    ("date", "0001-01-01", date(1, 1, 1).toordinal() - 719163, None, -719161),
    ("date", "9999-12-31", date(9999, 12, 31).toordinal() - 719163, None, 0),
    ("smalldatetime", "2024-02-29 23:59:00", micros(2024, 2, 29, 23, 59), None, micros(2024, 2, 29, 23, 58)),
    ("datetime", "1753-01-01 00:00:00.003", micros(1753, 1, 1, 0, 0, 0, 3000), None, micros(1753, 1, 1)),
    ("datetime2", "2024-01-01 00:00:00", micros(2024, 1, 1), None, micros(2024, 1, 1, 0, 0, 1)),
    (
        "datetime2",
        "9999-12-31 23:59:59.9999999",
        micros(9999, 12, 31, 23, 59, 59, 999999),
        "9999-12-31 23:59:59.9999999",
        micros(9999, 12, 31, 23, 59, 59, 999998),
    ),
    (
        "datetimeoffset",
        "0001-01-01 00:00:00.0000000 +14:00",
        micros(1, 1, 1) - 14 * 3600 * 1_000_000,
        "0001-01-01 00:00:00.0000000 +14:00",
        micros(1, 1, 1),
    ),
    ("datetimeoffset", "2024-05-06 07:08:09 +00:00", micros(2024, 5, 6, 7, 8, 9), None, 0),
    ("time", "23:59:59.1230000", "23:59:59.1230000", None, "23:59:59.1230001"),
    (
        "sql_variant",
        "decimal|5|2|5||12.30".encode("utf-16-le"),
        "12.30",
        '{"base": "decimal", "precision": 5, "scale": 2, "length": 5}',
        "12.31",
    ),
    (
        "sql_variant",
        "float|53|0|8||1.5000000000000000e+000".encode("utf-16-le"),
        "1.5",
        '{"base": "float", "precision": 53, "scale": 0, "length": 8}',
        "1.25",
    ),
]


@pytest.mark.parametrize(("name", "sent", "held", "exact", "other"), PAIRS)
def test_source_and_lake_match_unless_a_cell_changed(name, sent, held, exact, other):
    wanted = source_text(column(name), sent)
    assert lake_text(column(name), held, exact) == wanted
    assert lake_text(column(name), other, exact) != wanted


WIDEST = "9" * 37


@pytest.mark.parametrize(
    ("held", "name", "scale", "text"),
    [
        ("1.50", "decimal", 4, "1.5000"),
        ("1.50", "decimal", 1, "1.5"),
        ("-2.00", "decimal", 0, "-2"),
        ("1.55", "decimal", 1, "1.55"),
        ("1.50", "money", None, "1.5000"),
        (f"{WIDEST}.0", "decimal", 0, WIDEST),
        (f"0.{WIDEST}", "decimal", 38, f"0.{WIDEST}0"),
    ],
    ids=["wider", "narrower", "whole", "does not fit", "money", "longest", "longest fraction"],
)
def test_a_number_has_the_digits_of_its_column_whatever_scale_the_lake_stored_it_in(held, name, scale, text):
    of_source = column(name, precision=38, scale=scale)
    values = pa.array([Decimal(held), None], pa.decimal128(38, len(held.partition(".")[2])))
    nothing = pa.nulls(2, pa.map_(pa.string(), pa.string()))
    assert list(texts_of([of_source], [values], nothing)) == [(text,), (None,)]
    assert encode(of_source, values, [None, None]).to_pylist() == [text.encode(), None]


@pytest.mark.parametrize("name", ["int", "nvarchar", "datetime2", "sql_variant"])
def test_null_differs_from_an_empty_value(name):
    assert source_text(column(name), None) is None
    assert lake_text(column(name), None, None) is None
    assert lake_text(column("nvarchar"), "", None) == ""


@given(st.datetimes(), st.integers(-14 * 60, 14 * 60), st.integers(0, 9))
def test_instants_match_their_local_texts(local, offset, seventh):
    sign, minutes = "+-"[offset < 0], abs(offset)
    zone = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    text = f"{local:%H:%M:%S}.{local.microsecond:06d}{seventh} {zone}"
    text = f"{local.year:04d}-{local:%m-%d} {text}"
    at = (local.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) - offset * 60_000_000
    assert lake_text(column("datetimeoffset"), at, text) == source_text(column("datetimeoffset"), text)
    assert lake_text(column("datetimeoffset"), at + 1, text) != source_text(column("datetimeoffset"), text)
