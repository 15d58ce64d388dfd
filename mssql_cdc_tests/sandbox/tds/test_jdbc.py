"""mssql-jdbc, the driver of Debezium, against scripted sessions."""

import pytest

from mssql_cdc_tests.sandbox.tds import test_drivers
from mssql_cdc_tests.sandbox.tds.jdbc import probe
from mssql_cdc_tests.sandbox.tds.scripted import PASSWORD, serving

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
