"""mssql-jdbc, the driver of Debezium, against scripted sessions."""

import decimal
from collections.abc import AsyncIterator

import pytest

from mssql_sandbox.engine import types
from mssql_sandbox.engine.events import Columns, Done, Event, Rows
from mssql_sandbox.engine.types import MAX, ResultColumn, SqlType
from mssql_sandbox.tds.decoders import TICKS_PER_DAY
from tests.tds import test_drivers
from tests.tds.jdbc import probe
from tests.tds.scripted import PASSWORD, serving

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def port():
    with serving(test_drivers.script) as (port, _):
        yield port


@pytest.mark.parametrize(("mode", "encrypt"), [("off", "false"), ("login", "false"), ("login", "true"), ("on", "true")])
def test_jdbc_logs_in_under_every_encryption_mode(mode: str, encrypt: str) -> None:
    with serving(encrypt=mode) as (port, _):  # type: ignore[arg-type]
        assert probe("version", port, PASSWORD, encrypt=encrypt) == ["16.00.4149"]


def test_jdbc_reads_every_type(port: int) -> None:
    lines = probe("query", port, PASSWORD, "types")
    shown = dict(line.split("=", 1) for line in lines[: len(test_drivers.SHOWN)])
    assert [line.split("=", 1)[1] for line in lines[len(test_drivers.SHOWN) :]] == ["null"] * len(test_drivers.SHOWN)
    assert shown["bigint"] == str(2**63 - 1)
    assert shown["money"] == "-922337203685477.5808"
    assert shown["decimal"] == "-1234567890123456789012345678.0123456789"
    assert shown["datetime2"] == "2024-02-29 12:00:00.000001"
    assert shown["uniqueidentifier"] == "00000010-0000-0000-0000-000000000000"
    assert shown["timestamp"] == "00000000000007d1"
    assert shown["xml"] == "<a>\u4e2d</a>"
    assert shown["ntext"] == "old \u4e2d"
    assert shown["image"] == "0001"


VARIANTS: list[tuple[SqlType, object, str]] = [
    (types.INT, -5, "-5"),
    (types.TINYINT, 200, "200"),
    (types.BIT, 1, "true"),
    (types.BIGINT, 2**40, str(2**40)),
    (types.FLOAT, 0.1, "0.1"),
    (types.REAL, 0.5, "0.5"),
    (types.decimal(10, 2), decimal.Decimal("-1.50"), "-1.50"),
    (types.MONEY_TYPE, decimal.Decimal("1.0001"), "1.0001"),
    (types.nvarchar(10), "\u4e2d", "\u4e2d"),
    (types.varchar(10), "\u20ac", "\u20ac"),
    (types.varbinary(4), b"\1\2", "0102"),
    (types.DATE, 738_000, "2021-07-30"),
    (types.DATETIME, 25_920_003, "1900-01-02 00:00:00.01"),
    (types.datetime2(3), 738_000 * TICKS_PER_DAY, "2021-07-30 00:00:00.0"),
]


async def variants(_: str) -> AsyncIterator[Event]:
    yield Columns(tuple(ResultColumn(f"c{n}", types.SQL_VARIANT) for n in range(len(VARIANTS))))
    yield Rows([tuple((type_, value) for type_, value, _ in VARIANTS)])
    yield Done(1)


def test_jdbc_reads_variants_of_every_base() -> None:
    with serving(variants) as (port, _):
        lines = probe("query", port, PASSWORD, "variants")
    assert lines == [f"sql_variant={shown}" for _, _, shown in VARIANTS]


CLR = bytes.fromhex("e6100000010c00000000000000400000000000000840")
OFFSET = (738_000 * TICKS_PER_DAY + 36_000_000_000, -90)


async def clr_and_offset(_: str) -> AsyncIterator[Event]:
    columns = (SqlType("hierarchyid", 892), SqlType("varbinary", MAX), types.datetimeoffset(7))
    yield Columns(tuple(ResultColumn(f"c{n}", type_) for n, type_ in enumerate(columns)))
    yield Rows([(b"\x58", CLR, OFFSET), (None, None, None)])
    yield Done(2)


def test_jdbc_reads_clr_types_and_offsets() -> None:
    with serving(clr_and_offset) as (port, _):
        lines = probe("query", port, PASSWORD, "clr")
    assert lines == [
        "hierarchyid=58",
        f"varbinary={CLR.hex()}",
        "datetimeoffset=2021-07-29 23:30:00 -01:30",
        "hierarchyid=null",
        "varbinary=null",
        "datetimeoffset=null",
    ]


def test_jdbc_parameters_come_back_through_all_three_ways_of_executing() -> None:
    with serving(test_drivers.script) as (port, log):
        lines = probe("echo", port, PASSWORD, "select ?, ?, ?, ?, ?, ?, ?")
        names = [name for name, _ in log.calls]
    assert lines == [f"{n}|text \u4e2d {n}|12.50|0001{n:02x}|2024-02-29 12:30:15.1234567|5000|null" for n in range(5)]
    assert names[:4] == ["sp_executesql", "sp_prepexec", "sp_execute", "sp_execute"]


def test_jdbc_query_timeout_ends_a_wait_and_the_connection_lives(port: int) -> None:
    assert probe("timeout", port, PASSWORD) == ["HY008", "int=1"]


def test_jdbc_reads_a_large_result(port: int) -> None:
    assert probe("count", port, PASSWORD, "big") == [str(test_drivers.BIG)]


def test_jdbc_sees_error_numbers_and_the_connection_lives(port: int) -> None:
    assert probe("error", port, PASSWORD, "error 208") == ["208 S0002", "int=1"]
