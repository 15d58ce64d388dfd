"""Java's expressions and replacements give what Java gives, or an error that names the part."""

from __future__ import annotations

import pytest

from mssql_cdc.config.java_regex import JavaReplacement, java_pattern
from mssql_cdc_tests.conformance.java_cases import REFUSED, REPLACED


@pytest.mark.feature("TOP-11")
@pytest.mark.parametrize(("expression", "replacement", "text", "expected"), REPLACED)
def test_replacement_gives_what_java_gives(expression: str, replacement: str, text: str, expected: str | None):
    one = JavaReplacement(expression, replacement)
    one.check()
    assert one.apply(text) == expected


@pytest.mark.parametrize(("expression", "replacement", "part"), REFUSED)
def test_what_is_not_valid_or_would_mean_something_else_is_refused(expression: str, replacement: str, part: str):
    with pytest.raises(ValueError, match=r"valid|supported|group|ends in") as found:
        JavaReplacement(expression, replacement).check()
    assert part in str(found.value)


@pytest.mark.parametrize("expression", ["a{99999999999}", f"a{{{'9' * 5000}}}", "(" * 600 + ")" * 600])
def test_what_python_cannot_compile_is_a_value_error_too(expression: str):
    """`re` raises OverflowError and RecursionError for these."""
    with pytest.raises(ValueError, match="is not a valid regular expression"):
        java_pattern(expression)
