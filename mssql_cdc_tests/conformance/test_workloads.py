"""The workloads as data: they are many, each is its own, and every deliberate difference is documented."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import mssql_cdc
from mssql_cdc.schema import TYPES
from mssql_cdc_tests.conformance.compare import differences
from mssql_cdc_tests.conformance.courses import COURSES
from mssql_cdc_tests.conformance.courses.types import NOT_COMPARED, SAMPLES, WITHOUT_SAMPLES
from mssql_cdc_tests.conformance.differences import DIFFERENCES, document

WORKLOADS = [workload for course in COURSES.values() for workload in course.workloads()]
RECORDS = Path(mssql_cdc.__file__).parents[1] / "docs" / "records.md"


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
    assert {key for one in WORKLOADS for key in one.expected} <= {k for k, d in DIFFERENCES.items() if d.adapt}


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
