"""The expected results of Java's expressions and replacements are those of Java."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from mssql_cdc_tests.conformance.debezium import DebeziumMachine
from mssql_cdc_tests.conformance.java_cases import NOT_JAVA, REFUSED, REPLACED

pytestmark = pytest.mark.slow


@pytest.mark.feature("TOP-11")
def test_java_gives_what_the_cases_expect(machine: DebeziumMachine):
    pattern = machine.java.java.util.regex.Pattern
    for expression, replacement, text, expected in REPLACED:
        matcher = pattern.compile(expression).matcher(text)
        found = matcher.replaceFirst(replacement) if matcher.matches() else None
        assert found == expected, (expression, replacement, text)
    for place, (expression, replacement, _) in enumerate(REFUSED):
        if place < NOT_JAVA:
            with pytest.raises(Py4JError):  # PySpark, in the same process, may fail to read what Java throws.
                pattern.compile(expression).matcher("x").replaceFirst(replacement)
        else:
            pattern.compile(expression)
