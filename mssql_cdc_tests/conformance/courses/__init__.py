"""The workloads as data: courses by name, in the order in which they run."""

from __future__ import annotations

from dataclasses import replace

from mssql_cdc_tests.conformance.courses.classic import CLASSIC
from mssql_cdc_tests.conformance.courses.converters import CONVERTERS
from mssql_cdc_tests.conformance.courses.databases import DATABASES, ONCE, STRUCTURE
from mssql_cdc_tests.conformance.courses.evolution import EVOLUTION
from mssql_cdc_tests.conformance.courses.filters import FILTERS
from mssql_cdc_tests.conformance.courses.moving import DROPPED, FAILING, MOVED
from mssql_cdc_tests.conformance.courses.naming import NAMING
from mssql_cdc_tests.conformance.courses.reading_again import AGAIN, CASES, SKIPPED
from mssql_cdc_tests.conformance.courses.streaming import STREAM
from mssql_cdc_tests.conformance.courses.types import TYPES
from mssql_cdc_tests.conformance.workload import Course

COURSES: dict[str, Course] = {
    course.name: course
    for course in (
        CLASSIC,
        STREAM,
        EVOLUTION,
        MOVED,
        DROPPED,
        FAILING,
        DATABASES,
        STRUCTURE,
        ONCE,
        FILTERS,
        TYPES,
        CONVERTERS,
        NAMING,
        AGAIN,
        SKIPPED,
        *CASES,
    )
}

_FAST_READINGS = {"schemas", "transactions", "source types", "avro"}
_FAST_SCRIPTS = {"update", "key update", "no key", "large values", "defaults", "odd names", "rows that come and go"}
FAST = replace(
    STREAM,
    name="fast",
    databases=("conf_fast",),
    scripts=tuple(script for script in STREAM.scripts if script.name in _FAST_SCRIPTS),
    readings=tuple(reading for reading in STREAM.readings if reading.name in _FAST_READINGS),
)
"""A part of a course that `make test` runs."""
