"""The records equal those of the real Debezium, one by one, for the same changes of the same source.

The real Debezium in other versions and modes reads the stand-in server like 3.3.1 does through CDC's functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc_tests.conformance.bench import Bench, Reader, Seen
from mssql_cdc_tests.conformance.compare import differences
from mssql_cdc_tests.conformance.debezium import NEWEST, OracleUnavailableError, Record, debezium_jars
from mssql_cdc_tests.conformance.scenario import CHANGES

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
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
_ISO = {"time.precision.mode": "isostring"}
_DIRECT = {"data.query.mode": "direct"}
REFERENCE = "functions"
OTHERS: dict[str, Reader] = {
    "direct": Reader(_ISO | _DIRECT),
    "newest functions": Reader(_ISO, NEWEST),
    "newest direct": Reader(_ISO | _DIRECT, NEWEST),
}
UNKNOWN = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")
"""The placeholder of 3.6 where 3.3.1 has null: large values that the change table lacks."""


@pytest.fixture(scope="module")
def readers() -> dict[str, Reader]:
    """Every real Debezium that takes part."""
    found = {name: Reader(properties) for name, properties in CONFIGURATIONS.items()}
    found |= {REFERENCE: Reader(_ISO), **OTHERS}
    try:
        for version in {reader.version for reader in found.values()}:
            debezium_jars(version)
    except OracleUnavailableError as missing:
        pytest.skip(str(missing))
    return found


@pytest.fixture(scope="module")
def seen(readers: dict[str, Reader], spark: object, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """One run of the scenario that all readers share, because it is by far most of the work."""
    folder = tmp_path_factory.mktemp("conformance")
    with sandbox_process(folder, "--capture-interval", "0.1") as server:
        return Bench(server, folder).walk(readers, CONFIGURATIONS)


@pytest.mark.feature("EVT-06", "TXN-04", "SCH-08")
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_records_equal_those_of_the_real_debezium(configuration: str, seen: Seen):
    assert differences(seen.ours[configuration], seen.plain(configuration)) == []


@pytest.mark.feature("STR-02", "STR-03")
@pytest.mark.parametrize("reader", OTHERS)
def test_debezium_reads_the_same_changes_in_every_version_and_query_mode(reader: str, seen: Seen):
    wanted = _changes(seen.theirs[REFERENCE])
    assert len(wanted) > len(CHANGES)
    assert differences(_changes(seen.theirs[reader]), wanted) == []


def _changes(records: list[Record]) -> list[dict[str, Any]]:
    """The row changes with their positions in the source's log."""
    found = [record for record in records if isinstance(record.value, dict) and record.value.get("op") in {*"cud"}]
    return [
        {
            "topic": record.topic,
            "key": record.key,
            "value": {
                "op": record.value["op"],
                **{image: _known(record.value[image]) for image in ("before", "after")},
                **{name: record.value["source"][name] for name in ("commit_lsn", "change_lsn", "event_serial_no")},
            },
        }
        for record in found
    ]


def _known(image: dict[str, Any] | None) -> dict[str, Any] | None:
    return image and {name: None if value in UNKNOWN else value for name, value in image.items()}
