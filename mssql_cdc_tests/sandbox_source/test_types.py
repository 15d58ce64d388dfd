"""Every type is read exactly with both fetch methods, from change tables and from tables (TYP-*, rule E26)."""

# ruff: noqa: DTZ001 - SQL Server's datetime2 has no zone

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc_tests.sandbox_source.kit import Shop, rows

LONG = "x" * 9000
# column type, T-SQL literal, value, exact text
CASES: list[tuple[str, str, Any, str | None]] = [
    ("bit", "1", True, None),
    ("tinyint", "255", 255, None),
    ("smallint", "-32768", -32768, None),
    ("int", "-2147483648", -(2**31), None),
    ("bigint", "9223372036854775807", 2**63 - 1, None),
    ("decimal(38, 10)", "-1234567890123456789012345678.0123456789",
     Decimal("-1234567890123456789012345678.0123456789"), None),
    ("numeric(5, 0)", "99999", Decimal(99999), None),
    ("money", "-922337203685477.5808", Decimal("-922337203685477.5808"), None),
    ("smallmoney", "214748.3647", Decimal("214748.3647"), None),
    ("real", "1.5", 1.5, None),
    ("float", "1.7976931348623157e308", 1.7976931348623157e308, None),
    ("float", "0.1", 0.1, None),
    ("char(5)", "'ab'", "ab   ", None),
    ("varchar(50)", "'caf\u00e9'", "caf\u00e9", None),
    ("varchar(8000)", "REPLICATE('ab', 4000)", "ab" * 4000, None),
    ("nchar(3)", "N'\u017c'", "\u017c  ", None),
    ("nvarchar(50)", "N'za\u017c\u00f3\u0142\u0107 \U0001f600'", "za\u017c\u00f3\u0142\u0107 \U0001f600", None),
    ("nvarchar(4000)", "REPLICATE(N'\u017c', 4000)", "\u017c" * 4000, None),
    ("nvarchar(10)", "N'a' + NCHAR(55296) + N'b'", "a\ufffdb", "utf16:0061d8000062"),
    ("nvarchar(10)", "N''", "", None),
    ("uniqueidentifier", "'0e984725-c51c-4bf4-9960-e1c80e27aba0'", "0E984725-C51C-4BF4-9960-E1C80E27ABA0", None),
    ("binary(4)", "0x00FF", b"\x00\xff\x00\x00", None),
    ("varbinary(10)", "0x", b"", None),
    ("varbinary(10)", "0x0001FF", b"\x00\x01\xff", None),
    ("date", "'0001-01-01'", date(1, 1, 1), None),
    ("date", "'9999-12-31'", date(9999, 12, 31), None),
    ("smalldatetime", "'2079-06-06T23:59:00'", datetime(2079, 6, 6, 23, 59), None),
    ("datetime", "'1753-01-01T00:00:00.003'", datetime(1753, 1, 1, 0, 0, 0, 3000), None),
    ("datetime", "'9999-12-31T23:59:59.997'", datetime(9999, 12, 31, 23, 59, 59, 997000), None),
    ("datetime2(0)", "'0001-01-01T00:00:00'", datetime(1, 1, 1), None),
    ("datetime2(3)", "'2024-02-29T12:34:56.789'", datetime(2024, 2, 29, 12, 34, 56, 789000), None),
    ("datetime2(6)", "'9999-12-31T23:59:59.999999'", datetime(9999, 12, 31, 23, 59, 59, 999999), None),
    ("datetime2(7)", "'9999-12-31T23:59:59.9999999'", datetime(9999, 12, 31, 23, 59, 59, 999999),
     "9999-12-31 23:59:59.9999999"),
    ("datetime2(7)", "'0001-01-01T00:00:00.0000001'", datetime(1, 1, 1), "0001-01-01 00:00:00.0000001"),
    ("datetimeoffset(3)", "'2024-05-06T07:08:09.123+02:00'", "2024-05-06T05:08:09.123000+00:00",
     "2024-05-06 07:08:09.123 +02:00"),
    ("datetimeoffset(7)", "'2024-05-06T07:08:09.1234560+00:00'", "2024-05-06T07:08:09.123456+00:00", None),
    ("datetimeoffset(0)", "'2024-05-06T07:08:09-11:30'", "2024-05-06T18:38:09+00:00", "2024-05-06 07:08:09 -11:30"),
    ("time(0)", "'23:59:59'", "23:59:59", None),
    ("time(7)", "'00:00:00.0000001'", "00:00:00.0000001", None),
    ("rowversion", "DEFAULT", None, None),
]  # fmt: skip
LARGE: list[tuple[str, str, Any, str | None]] = [
    ("varchar(max)", f"'{LONG}'", LONG, None),
    ("nvarchar(max)", f"N'{LONG}\U0001f600'", LONG + "\U0001f600", None),
    ("varbinary(max)", f"0x{'ab' * 9000}", b"\xab" * 9000, None),
    ("xml", "N'<a>\u017c</a>'", "<a>\u017c</a>", None),
    ("text", f"'{LONG}'", LONG, None),
    ("ntext", f"N'{LONG}'", LONG, None),
    ("image", "0x0102", b"\x01\x02", None),
]


def table(shop: Shop, name: str, cases: list[tuple[str, str, Any, str | None]]) -> None:
    columns = ", ".join(
        f"c{i} {kind} {'NOT NULL' if kind == 'rowversion' else 'NULL'}" for i, (kind, *_) in enumerate(cases)
    )
    shop.create(name, f"id int NOT NULL PRIMARY KEY, {columns}")
    given = [(i, literal) for i, (kind, literal, *_) in enumerate(cases) if kind != "rowversion"]
    names = ", ".join(f"c{i}" for i, _ in given)
    shop.run(
        f"INSERT dbo.{name} (id, {names}) VALUES (1, {', '.join(literal for _, literal in given)})",
        f"INSERT dbo.{name} (id) VALUES (2)",
    )


def check(found: dict[str, Any], cases: list[tuple[str, str, Any, str | None]]) -> None:
    exacts = dict(found["exact"]["after"] or [])
    for i, (kind, literal, value, exact) in enumerate(cases):
        shown = found["after"][f"c{i}"]
        if kind == "rowversion":
            assert len(shown) == 8
            continue
        if kind.startswith("datetimeoffset"):
            shown = shown.isoformat()
        assert (kind, literal, shown, exacts.get(f"c{i}")) == (kind, literal, value, exact)


@pytest.mark.feature("TYP-01", "TYP-02")
def test_values_arrive_exactly_on_the_arrow_path(shop: Shop) -> None:
    table(shop, "t", CASES)
    reader = shop.changes("t")
    assert not RowPlan.of(reader.instance.schema.columns).by_rows
    values, nulls = rows(reader)

    check(values, CASES)
    assert {c: v for c, v in nulls["after"].items() if v is not None and c != f"c{len(CASES) - 1}"} == {"id": 2}


@pytest.mark.feature("TYP-05")
def test_values_arrive_exactly_row_by_row(shop: Shop) -> None:
    cases = [*LARGE, *CASES]
    table(shop, "t", cases)
    values, nulls = rows(shop.changes("t"))

    check(values, cases)
    assert nulls["after"]["c0"] is None


def test_a_chunk_yields_the_same_rows_as_the_changes(shop: Shop) -> None:
    for name, cases in (("small", CASES), ("large", [*LARGE, *CASES])):
        table(shop, name, cases)
        changes = rows(shop.changes(name))
        chunk = rows(shop.chunk(name))

        assert [row["after"] for row in chunk] == [row["after"] for row in changes]
        assert [row["exact"] for row in chunk] == [row["exact"] for row in changes]


def test_a_sql_variant_keeps_its_base_type(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, v sql_variant")
    values = (
        "CAST(1.50 AS decimal(5, 2))",
        "N'text'",
        "CAST(0x01FF AS varbinary(5))",
        "NULL",
        "CAST('2024-05-06' AS date)",
    )
    # One statement each: the rows of one VALUES share a type, like those of UNION ALL.
    shop.run(*(f"INSERT dbo.t VALUES ({number}, {value})" for number, value in enumerate(values, 1)))
    found = rows(shop.changes("t"))
    texts = [row["after"]["v"] for row in found]
    exacts = [dict(row["exact"]["after"] or []).get("v") for row in found]

    assert texts == ["1.50", "text", "01FF", None, "2024-05-06"]
    assert '"base": "decimal"' in str(exacts[0])
    assert '"scale": 2' in str(exacts[0])
    assert '"base": "nvarchar"' in str(exacts[1])
    assert exacts[3] is None
