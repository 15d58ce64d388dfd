"""The genuine Debezium in other versions and modes reads the stand-in server as 3.3.1 does through CDC's functions."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.conformance.bench import WAIT_SECONDS, Bench
from mssql_cdc_tests.conformance.compare import differences
from mssql_cdc_tests.conformance.debezium import (
    NEWEST,
    ORACLE,
    DebeziumEngine,
    OracleUnavailableError,
    Record,
    debezium_jars,
)
from mssql_cdc_tests.conformance.scenario import AFTER_EVOLUTION, CHANGES, DATABASE, EVOLUTION, LAST, SETUP
from mssql_cdc_tests.sandbox.processes import sandbox_process

UNKNOWN = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")
"""What 3.6 puts where 3.3.1 has null: large values that the change table does not hold."""
READERS = [(ORACLE, "function"), (ORACLE, "direct"), (NEWEST, "function"), (NEWEST, "direct")]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.feature("STR-02", "STR-03")
def test_debezium_reads_the_same_changes_in_every_version_and_query_mode(tmp_path: Path):
    try:
        for version, _ in READERS:
            debezium_jars(version)
    except OracleUnavailableError as missing:
        pytest.skip(str(missing))
    with sandbox_process(tmp_path, "--capture-interval", "0.1") as server, ExitStack() as stack:
        bench = Bench(server, tmp_path, {"time.precision.mode": "isostring"})
        bench.execute(("CREATE DATABASE " + DATABASE,), database="master")
        bench.execute(SETUP)
        bench.wait_for_capture()
        engines = {
            (version, mode): stack.enter_context(
                DebeziumEngine(
                    bench.properties | {"name": f"{mode}-{version}", "data.query.mode": mode},
                    tmp_path / f"{mode}-{version}",
                    version=version,
                )
            )
            for version, mode in READERS
        }
        for engine in engines.values():
            engine.wait_until(lambda found: len(_rows(found, "r")) >= 12, timeout=WAIT_SECONDS)
        bench.execute(CHANGES)
        bench.execute(EVOLUTION)
        bench.wait_for_capture()
        bench.execute(AFTER_EVOLUTION)
        bench.execute((LAST,))
        seen = {name: engine.wait_until(_is_over, timeout=WAIT_SECONDS) for name, engine in engines.items()}
    wanted = _rows(seen[ORACLE, "function"], "c", "u", "d")
    assert len(wanted) > len(CHANGES)
    for name, records in seen.items():
        found = differences(_rows(records, "c", "u", "d"), wanted)
        assert not found, (name, found)


def _rows(records: list[Record], *operations: str) -> list[dict[str, Any]]:
    """What happened to rows, with its place in the source's log."""
    found = [record for record in records if isinstance(record.value, dict) and record.value.get("op") in operations]
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


def _is_over(records: list[Record]) -> bool:
    return any(row["value"]["after"].get("b") == "last" for row in _rows(records[-3:], "c"))
