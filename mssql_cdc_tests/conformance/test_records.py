"""The records equal those of the real Debezium, one by one, for the same changes of the same source.

The real Debezium in other versions and modes reads the stand-in server like 3.3.1 does through CDC's functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc_tests.conformance.bench import Bench, Records, Seen
from mssql_cdc_tests.conformance.compare import differences, payload
from mssql_cdc_tests.conformance.courses import FAST
from mssql_cdc_tests.conformance.courses.classic import CHANGES, CLASSIC, OTHERS, REFERENCE
from mssql_cdc_tests.conformance.debezium import OracleUnavailableError, debezium_jars
from mssql_cdc_tests.conformance.judge import judged
from mssql_cdc_tests.conformance.workload import Workload

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
UNKNOWN = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")
"""The placeholder of 3.6 where 3.3.1 has null: large values that the change table lacks."""


@pytest.fixture(scope="module")
def bench(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One server, and one JVM for each version, for all courses."""
    try:
        for version in {reading.version for reading in CLASSIC.readings}:
            debezium_jars(version)
    except OracleUnavailableError as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("conformance")
    with sandbox_process(folder, "--capture-interval", "0.1") as server, Bench(server, folder) as found:
        yield found


@pytest.fixture(scope="module")
def fast(bench: Bench) -> Seen:
    """One run of the course that all its workloads share."""
    return bench.run(FAST)


@pytest.mark.feature("EVT-01", "EVT-06", "EVT-20", "FLT-11", "TOP-08", "TYP-03")
@pytest.mark.parametrize("workload", FAST.workloads(), ids=lambda one: f"{one.script.name}-{one.reading.name}")
def test_a_workload_shows_no_difference_that_is_not_listed(workload: Workload, fast: Seen):
    assert judged(workload, fast).differences == ()


@pytest.fixture(scope="module")
def seen(bench: Bench) -> Seen:
    """One run of the course that all its workloads share, because it is by far most of the work."""
    return bench.run(CLASSIC)


@pytest.mark.feature("EVT-06", "TXN-04", "SCH-08")
@pytest.mark.parametrize("workload", CLASSIC.workloads(), ids=lambda one: one.reading.name)
def test_records_equal_those_of_the_real_debezium(workload: Workload, seen: Seen):
    assert judged(workload, seen).differences == ()


@pytest.mark.feature("STR-02", "STR-03")
@pytest.mark.parametrize("reader", [one.name for one in OTHERS])
def test_debezium_reads_the_same_changes_in_every_version_and_query_mode(reader: str, seen: Seen):
    wanted = _changes(seen.theirs[REFERENCE].records)
    assert len(wanted) > len(CHANGES)
    assert differences(_changes(seen.theirs[reader].records), wanted) == []


def _changes(records: Records) -> Records:
    """The row changes with their positions in the source's log."""
    found = []
    for record in records:
        value = payload(record["value"])
        if isinstance(value, dict) and value.get("op") in {*"cud"}:
            place = {name: value["source"][name] for name in ("commit_lsn", "change_lsn", "event_serial_no")}
            images = {image: _known(value[image]) for image in ("before", "after")}
            found.append(
                {"topic": record["topic"], "key": record["key"], "value": {"op": value["op"], **images, **place}}
            )
    return found


def _known(image: dict[str, Any] | None) -> dict[str, Any] | None:
    return image and {name: None if value in UNKNOWN else value for name, value in image.items()}
