"""The workloads as data: courses by name, in the order in which they run."""

from __future__ import annotations

from mssql_cdc_tests.conformance.courses.classic import CLASSIC
from mssql_cdc_tests.conformance.courses.databases import DATABASES, STRUCTURE
from mssql_cdc_tests.conformance.courses.evolution import EVOLUTION
from mssql_cdc_tests.conformance.courses.filters import FILTERS
from mssql_cdc_tests.conformance.courses.streaming import STREAM
from mssql_cdc_tests.conformance.courses.types import TYPES
from mssql_cdc_tests.conformance.workload import Course

COURSES: dict[str, Course] = {
    course.name: course for course in (CLASSIC, STREAM, EVOLUTION, DATABASES, STRUCTURE, FILTERS, TYPES)
}
