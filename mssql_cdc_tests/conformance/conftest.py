"""The place of tests that run both connectors over one database, `both`; servers and JVM are those of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mssql_cdc_tests.conformance.debezium import DebeziumMachine, OracleUnavailableError
from mssql_cdc_tests.end_to_end.kit import Place, open_place
from mssql_cdc_tests.servers import Server, open_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with open_server(tmp_path_factory.mktemp("sandbox")) as found:
        yield found


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebeziumMachine]:
    """A JVM for the real Debezium: starting one takes longer than what a test does with it."""
    try:
        with DebeziumMachine(tmp_path_factory.mktemp("machine")) as found:
            yield found
    except OracleUnavailableError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def place(server: Server, spark: object, tmp_path: Path) -> Iterator[Place]:
    with open_place(server, tmp_path, "both") as opened:
        yield opened
