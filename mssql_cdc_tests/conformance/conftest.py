"""The place of tests that run both connectors over one database, `both`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mssql_cdc_tests.conformance.debezium import OracleUnavailableError, debezium_jars
from mssql_cdc_tests.end_to_end.kit import Place, open_place
from mssql_cdc_tests.servers import open_server


@pytest.fixture
def place(spark: object, tmp_path: Path) -> Iterator[Place]:
    try:
        debezium_jars()
    except OracleUnavailableError as missing:
        pytest.skip(str(missing))
    with open_server(tmp_path) as server, open_place(server, tmp_path, "both") as opened:
        yield opened
