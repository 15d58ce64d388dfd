"""Our records are the genuine Debezium's, record by record, for the same changes of the same source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mssql_cdc_tests.conformance.bench import Bench
from mssql_cdc_tests.conformance.compare import differences
from mssql_cdc_tests.conformance.debezium import OracleUnavailableError, debezium_jars
from mssql_cdc_tests.sandbox.processes import sandbox_process

CONFIGURATIONS: dict[str, Mapping[str, str]] = {
    "defaults": {},
    "texts": {
        "time.precision.mode": "isostring",
        "decimal.handling.mode": "string",
        "binary.handling.mode": "hex",
        "tombstones.on.delete": "false",
        "message.key.columns": "dbo.orders:name;dbo.nokey:a",
        "field.name.adjustment.mode": "avro",
        "column.mask.with.4.chars": "dbo.orders.note",
        "column.truncate.to.3.chars": "dbo.alltypes.c_varchar",
        "column.mask.hash.v2.SHA-256.with.salt.pepper": "dbo.alltypes.c_nvarchar",
    },
    "numbers": {
        "time.precision.mode": "connect",
        "decimal.handling.mode": "double",
        "binary.handling.mode": "base64-url-safe",
        "column.exclude.list": "dbo.orders.price",
        "skipped.operations": "d",
        "skip.messages.without.change": "true",
    },
}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.feature("EVT-06", "TXN-04", "SCH-08")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_records_equal_the_genuine_debeziums(configuration: str, tmp_path: Path):
    try:
        debezium_jars()
    except OracleUnavailableError as missing:
        pytest.skip(str(missing))
    with sandbox_process(tmp_path, "--capture-interval", "0.1") as server:
        ours, theirs = Bench(server, tmp_path, CONFIGURATIONS[configuration]).run()
    assert differences(ours, theirs) == []
