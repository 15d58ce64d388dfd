"""The workloads as data: they are many, each is its own, and every deliberate difference is documented."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import mssql_cdc
from mssql_cdc.config.signal_settings import FILE_CHANNEL, KAFKA_CHANNEL, SOURCE_CHANNEL
from mssql_cdc.schema import TYPES
from mssql_cdc_tests.conformance.compare import differences
from mssql_cdc_tests.conformance.courses import COURSES
from mssql_cdc_tests.conformance.courses.types import NOT_COMPARED, SAMPLES, WITHOUT_SAMPLES
from mssql_cdc_tests.conformance.debezium_tests import REASONS, SHOWN
from mssql_cdc_tests.conformance.debezium_tests import TESTS as DEBEZIUM_TESTS
from mssql_cdc_tests.conformance.differences import DIFFERENCES, document

WORKLOADS = [workload for course in COURSES.values() for workload in course.workloads()]
TESTS = Path(__file__).parents[1]
RECORDS = Path(mssql_cdc.__file__).parents[1] / "docs" / "records.md"
CONTRADICTIONS = RECORDS.with_name("debezium-contradictions.md")


def test_at_least_120_workloads_have_names_of_their_own():
    names = Counter(one.name for one in WORKLOADS)
    assert len(names) >= 120
    assert names.total() == len(names)


@pytest.mark.parametrize("course", COURSES.values(), ids=lambda one: one.name)
def test_a_script_has_tables_of_its_own_and_readings_of_its_course(course):
    tables = Counter((script.database, table) for script in course.scripts for table in script.tables)
    assert tables.total() == len(tables)
    readings = {reading.name for reading in course.readings if reading.is_ours}
    for script in course.scripts:
        assert script.restates
        assert {*script.readings, *script.silent, *script.expected} - {"*"} <= readings
        assert all(
            table.split(".", 1)[1] in " ".join(map(str, (*script.setup, *script.changes))) for table in script.tables
        )


def test_every_listed_difference_is_one_of_the_table():
    assert {key for one in WORKLOADS for key in one.expected} == {k for k, d in DIFFERENCES.items() if d.adapt}


def test_no_difference_says_that_a_channel_of_signals_is_left_out_that_is_built():
    """The row of the channel `kafka` stayed when the channel was built."""
    built = (SOURCE_CHANNEL, FILE_CHANNEL, KAFKA_CHANNEL)
    assert not [one for one in DIFFERENCES.values() if any(f"channel `{name}`" in one.about for name in built)]


def test_the_documentation_shows_the_table_of_differences():
    assert document() in RECORDS.read_text(encoding="utf-8"), (
        "run: python -m mssql_cdc_tests.conformance.differences, and put its output into docs/records.md"
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"key": {"id": 1}}, {"key": {"id": 2}}),
        ({"key": {"id": 1}}, {"key": {"id": 1.0}}),
        ({"value": None}, {"value": {"op": "d"}}),
        ({"headers": {}}, {"headers": {"a": "b"}}),
        ({"sourceOffset": {"event_serial_no": 1}}, {"sourceOffset": {"event_serial_no": 2}}),
        (
            {"value": {"schema": {"fields": [{"field": "a", "default": 1}]}, "payload": {}}},
            {"value": {"schema": {"fields": [{"field": "a"}]}, "payload": {}}},
        ),
    ],
)
def test_any_part_of_a_record_can_differ(ours, theirs):
    blank = {"topic": "t", "key": None, "value": None, "headers": {}, "sourceOffset": {}}
    assert differences([blank | ours], [blank | ours]) == []
    assert len(differences([blank | ours], [blank | theirs])) == 1
    assert differences([blank | ours], []) != []


def test_every_type_is_compared():
    shown = {sample.declaration.partition("(")[0] for sample in SAMPLES} | {*WITHOUT_SAMPLES, *NOT_COMPARED}
    # `sysname` is another name of `nvarchar(128)`.
    assert shown - {"sysname"} == set(TYPES)


@pytest.mark.parametrize("name", sorted({one.name for one in TYPES.values() if one.arguments == "scale"}))
def test_a_type_with_fractions_of_a_second_is_compared_with_each_number_of_digits(name: str):
    assert {f"{name}({digits})" for digits in range(8)} <= {sample.declaration for sample in SAMPLES}


RESTATED = {script.restates for course in COURSES.values() for script in course.scripts}


def test_a_script_restates_a_test_of_debezium():
    assert set() == RESTATED - DEBEZIUM_TESTS


def test_each_test_of_debezium_is_in_a_workload_or_in_a_test_or_has_a_reason():
    assert DEBEZIUM_TESTS - RESTATED - set(SHOWN) == set(REASONS) - RESTATED
    assert set(SHOWN) | set(REASONS) <= DEBEZIUM_TESTS
    assert set(SHOWN).isdisjoint(REASONS)


def test_what_shows_a_test_of_debezium_exists():
    assert [place for place in SHOWN.values() if not exists(place)] == []


def test_what_shows_that_debezium_is_wrong_exists():
    rows = CONTRADICTIONS.read_text(encoding="utf-8").partition("# Where Debezium is wrong")[2]
    cells = [row.rsplit("|", 2)[1] for row in rows.splitlines() if row.startswith("| ")][1:]
    places = [re.findall("`([^`]+)`", cell) for cell in cells]
    assert len(places) > 30
    assert all(places)
    assert [place for found in places for place in found if not exists(place)] == []


def exists(place: str) -> bool:
    """Whether there is such a workload, or such a test in a file."""
    path, _, test = place.partition("::")
    if not test:
        return place in {one.name for one in WORKLOADS}
    return (TESTS / path).is_file() and f"def {test}(" in (TESTS / path).read_text(encoding="utf-8")
