"""Values at the ends of their types: as literals into columns, and out again through each driver."""
# ruff: noqa: DTZ001 - the server's dates and times carry no zone

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pyodbc
import pytest
from arrow_odbc.read_arrow_batches_from_odbc import read_arrow_batches_from_odbc

from mssql_sandbox.server import SandboxServer
from tests.tds.drivers import DRIVERS, driver

NINES = "9" * 38
# type, literal, value in pyodbc
ENDS: list[tuple[str, str, object]] = [
    ("decimal(38,0)", NINES, Decimal(NINES)),
    ("decimal(38,0)", f"-{NINES}", Decimal(f"-{NINES}")),
    ("decimal(38,38)", f"0.{NINES}", Decimal(f"0.{NINES}")),
    ("decimal(38,38)", f"-0.{'0' * 37}1", Decimal(f"-0.{'0' * 37}1")),
    ("decimal(19,10)", "-123456789.0123456789", Decimal("-123456789.0123456789")),
    ("numeric(1,0)", "9", Decimal(9)),
    ("money", "922337203685477.5807", Decimal("922337203685477.5807")),
    ("money", "-922337203685477.5808", Decimal("-922337203685477.5808")),
    ("smallmoney", "-214748.3648", Decimal("-214748.3648")),
    ("smallmoney", "214748.3647", Decimal("214748.3647")),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("int", "2147483647", 2**31 - 1),
    ("tinyint", "255", 255),
    ("real", "3.4028235e38", 3.4028234663852886e38),
    ("real", "1.17549435e-38", 1.1754943508222875e-38),
    ("float", "1.7976931348623157e308", 1.7976931348623157e308),
    ("float", "-2.2250738585072014e-308", -2.2250738585072014e-308),
    ("float", "0.1", 0.1),
    ("datetime", "'1753-01-01'", dt.datetime(1753, 1, 1)),
    ("datetime", "'9999-12-31 23:59:59.998'", dt.datetime(9999, 12, 31, 23, 59, 59, 997000)),
    ("datetime", "'2024-02-29 12:34:56.786'", dt.datetime(2024, 2, 29, 12, 34, 56, 787000)),
    ("smalldatetime", "'1900-01-01'", dt.datetime(1900, 1, 1)),
    ("smalldatetime", "'2079-06-06 23:59:29.998'", dt.datetime(2079, 6, 6, 23, 59)),
    ("date", "'0001-01-01'", dt.date(1, 1, 1)),
    ("date", "'9999-12-31'", dt.date(9999, 12, 31)),
    ("datetime2(0)", "'0001-01-01 00:00:00.4999999'", dt.datetime(1, 1, 1)),
    ("datetime2(3)", "'2024-12-31 23:59:59.9995'", dt.datetime(2025, 1, 1)),
    ("datetime2(6)", "'9999-12-31 23:59:59.999999'", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("time(6)", "'23:59:59.999999'", dt.time(23, 59, 59, 999999)),
    ("time(3)", "'12:00:00.0005'", dt.time(12, 0, 0, 1000)),
    ("uniqueidentifier", "'ffffffff-ffff-ffff-ffff-fffffffffffe'", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFE"),
    ("bit", "1", True),
    ("char(3)", "'a'", "a  "),
    ("varchar(10)", "''", ""),
    ("varchar(10)", "'\u20ac\u0160'", "\u20ac\u0160"),
    ("varchar(10) COLLATE Polish_CI_AS", "N'za\u017c\u00f3\u0142\u0107'", "za\u017c\u00f3\u0142\u0107"),
    ("varchar(10) COLLATE Cyrillic_General_CI_AS", "N'\u0416\u0443\u043a'", "\u0416\u0443\u043a"),
    ("varchar(10) COLLATE Japanese_CI_AS", "N'\u65e5\u672c'", "\u65e5\u672c"),
    ("varchar(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8", "N'\U0001f40d\u20ac'", "\U0001f40d\u20ac"),
    ("nvarchar(10)", "N'\U0001f40d'", "\U0001f40d"),
    ("nvarchar(max)", "REPLICATE(CAST(N'\u017c' AS nvarchar(max)), 100000)", "\u017c" * 100_000),
    ("varchar(max)", "REPLICATE(CAST('x' AS varchar(max)), 100000)", "x" * 100_000),
    ("varbinary(max)", "CAST(REPLICATE(CAST('x' AS varchar(max)), 100000) AS varbinary(max))", b"x" * 100_000),
    ("binary(4)", "0x01", b"\x01\0\0\0"),
    ("varbinary(10)", "0x", b""),
    ("text", "'old'", "old"),
    ("ntext", "N'\u017c'", "\u017c"),
    ("image", "0x0102", b"\x01\x02"),
    ("xml", "'<a b=\"1\"></a>'", '<a b="1"/>'),
]


@pytest.fixture(scope="module", params=DRIVERS)
def connection(request: pytest.FixtureRequest, sandbox: SandboxServer) -> Iterator[pyodbc.Connection]:
    text = driver(request.param).connection_string(sandbox.port, password=sandbox.password)
    made = pyodbc.connect(text, autocommit=True, timeout=10)
    yield made
    made.close()


@pytest.mark.parametrize(("type_", "literal", "expected"), ENDS)
def test_a_value_comes_out_as_it_went_in(
    connection: pyodbc.Connection, type_: str, literal: str, expected: object
) -> None:
    connection.execute(
        f"DROP TABLE IF EXISTS #t; CREATE TABLE #t (v {type_} NULL); INSERT #t VALUES ({literal}), (NULL)"
    )
    assert [row[0] for row in connection.execute("SELECT v FROM #t")] == [expected, None]


# what Arrow shows of a column, where it is another type than pyodbc's
IN_ARROW = {
    "CAST(-9.99 AS decimal(38, 2))": Decimal("-9.99"),
    "CAST(922337203685477.5807 AS money)": Decimal("922337203685477.5807"),
    f"CAST({NINES} AS decimal(38, 0))": Decimal(NINES),
    "CAST('2024-01-02 03:04:05.1234567' AS datetime2(7))": 1704164645123456700,
    "CAST('12:34:56.7654321' AS time(7))": 45296765432100,
    "CAST('2024-01-02 03:04:05.997' AS datetime)": 1704164645997,
    "CAST('2024-01-02 03:04' AS smalldatetime)": 1704164640,
    "CAST('2024-01-02 03:04:05.1234567 +05:30' AS datetimeoffset)": "2024-01-02 03:04:05.1234567 +05:30",
    "CAST(255 AS tinyint)": 255,
    "CAST(0x0102 AS varbinary(10))": b"\x01\x02",
}


@pytest.mark.parametrize("name", DRIVERS)
def test_arrow_sees_every_digit(sandbox: SandboxServer, name: str) -> None:
    reader = read_arrow_batches_from_odbc(
        "SELECT " + ", ".join(f"{literal} AS c{place}" for place, literal in enumerate(IN_ARROW)),
        connection_string=driver(name).connection_string(sandbox.port, password=sandbox.password),
    )
    (batch,) = reader
    found = [
        value.value if hasattr(value, "value") and isinstance(expected, int) else value.as_py()
        for value, expected in zip((column[0] for column in batch.columns), IN_ARROW.values(), strict=True)
    ]
    assert found == list(IN_ARROW.values())
