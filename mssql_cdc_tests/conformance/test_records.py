"""The records equal those of the real Debezium, one by one, for the same changes of the same source.

The real Debezium in other versions and modes reads the stand-in server like 3.3.1 does through CDC's functions.
"""

from __future__ import annotations

import re
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


@pytest.mark.feature("EVT-01", "EVT-06", "TYP-03")
@pytest.mark.parametrize("workload", FAST.workloads(), ids=lambda one: f"{one.script.name}-{one.reading.name}")
def test_a_workload_shows_no_difference_that_is_not_listed(workload: Workload, fast: Seen):
    assert judged(workload, fast).differences == ()


BOTH = pytest.mark.parametrize("connector", ["theirs", "ours"])
"""The documented shape of both connectors' records: equal records could be wrong alike."""


def _rows(fast: Seen, connector: str, reading: str) -> Records:
    """The records of row changes, with their schemas."""
    records = getattr(fast, connector)[reading].records
    found = [record for record in records if "op" in (payload(record["value"]) or {})]
    assert found
    return found


@BOTH
@pytest.mark.feature("EVT-18", "EVT-19")
def test_a_change_names_its_lsns_as_text_and_no_sequence(connector: str, fast: Seen):
    for record in _rows(fast, connector, "schemas"):
        value = payload(record["value"])
        source = value["source"]
        assert re.fullmatch("[0-9a-f]{8}:[0-9a-f]{8}:[0-9a-f]{4}", source["commit_lsn"])
        assert (source["change_lsn"] is None) == (value["op"] == "r")
        assert source["sequence"] is None


@BOTH
@pytest.mark.feature("EVT-08", "EVT-09")
def test_an_operation_has_the_images_that_it_needs(connector: str, fast: Seen):
    images = {(True, True): set[str](), (True, False): set[str](), (False, True): set[str]()}
    for record in _rows(fast, connector, "schemas"):
        value = payload(record["value"])
        images[value["before"] is not None, value["after"] is not None].add(value["op"])
    assert images == {(True, True): {"u"}, (True, False): {"d"}, (False, True): {"c", "r"}}


@BOTH
@pytest.mark.feature("EVT-07", "EVT-21")
def test_a_record_carries_its_schemas_under_the_names_of_its_table(connector: str, fast: Seen):
    for record in _rows(fast, connector, "schemas"):
        source, schema = payload(record["value"])["source"], record["value"]["schema"]
        # The odd names are adjusted in topics and in schemas, each in its own way.
        if not re.fullmatch(r"\w+", source["table"]):
            continue
        name = f"{source['name']}.{source['db']}.{source['schema']}.{source['table']}"
        assert schema["name"] == f"{name}.Envelope"
        assert {field["name"] for field in schema["fields"] if field["field"] in {"before", "after"}} == {
            f"{name}.Value"
        }
        assert record["key"] is None or record["key"]["schema"]["name"] == f"{name}.Key"


@BOTH
@pytest.mark.feature("EVT-17")
def test_only_a_read_row_is_marked_as_one_of_a_snapshot(connector: str, fast: Seen):
    for record in _rows(fast, connector, "schemas"):
        value = payload(record["value"])
        assert (value["source"]["snapshot"] == "false") == (value["op"] != "r")


@BOTH
@pytest.mark.feature("TXN-01", "TXN-02", "TXN-03")
def test_transactions_are_told_on_a_topic_of_their_own_if_wanted(connector: str, fast: Seen):
    streams = getattr(fast, connector)
    assert not [record for record in streams["schemas"].records if record["topic"].endswith(".transaction")]
    told = [record for record in streams["transactions"].records if record["topic"].endswith(".transaction")]
    assert {payload(record["value"])["status"] for record in told} == {"BEGIN", "END"}
    assert all(payload(record["key"]) == {"id": payload(record["value"])["id"]} for record in told)
    rows = [payload(record["value"]) for record in _rows(fast, connector, "transactions")]
    streamed = {value["source"]["commit_lsn"] for value in rows if value["op"] != "r"}
    assert {payload(record["value"])["id"] for record in told} == streamed
    assert all(value["transaction"]["id"] == value["source"]["commit_lsn"] for value in rows if value["op"] != "r")


@BOTH
@pytest.mark.feature("FLT-11")
def test_source_types_are_parameters_of_a_column(connector: str, fast: Seen):
    for record in _rows(fast, connector, "source types"):
        (after,) = (field for field in record["value"]["schema"]["fields"] if field["field"] == "after")
        for column in after["fields"]:
            assert column["parameters"]["__debezium.source.column.type"].isupper()
            assert column["parameters"]["__debezium.source.column.name"]


@pytest.fixture(scope="module")
def seen(bench: Bench) -> Seen:
    """One run of the course that all its workloads share, because it is by far most of the work."""
    return bench.run(CLASSIC)


@pytest.mark.feature("EVT-06", "TXN-04", "SCH-08")
@pytest.mark.parametrize("workload", CLASSIC.workloads(), ids=lambda one: one.reading.name)
def test_records_equal_those_of_the_real_debezium(workload: Workload, seen: Seen):
    assert judged(workload, seen).differences == ()


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
