"""Lists of expressions behave like Debezium's."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.config.patterns import PatternList, split_list
from mssql_cdc_tests.unit.config.samples import sent

NAMES = st.text(alphabet=st.characters(codec="utf-8", exclude_characters=",\\"), min_size=1).filter(
    lambda text: text == text.strip() and bool(text)
)


@pytest.mark.feature("FLT-01")
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        (" , ,", ()),
        ("a,b", ("a", "b")),
        (" a , b ", ("a", "b")),
        (r"a{1\,3},b", ("a{1,3}", "b")),
        (r"a\.b,c\\d", (r"a\.b", r"c\\d")),
    ],
)
def test_list_is_split_at_unescaped_commas(text: str, parts: tuple[str, ...]) -> None:
    assert split_list(text) == parts


@pytest.mark.feature("FLT-01")
@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("dbo.customers", "dbo.customers", True),
        ("dbo.customers", "DBO.Customers", True),
        ("dbo.customers", "dbo.customers2", False),
        ("dbo.customers", "xdbo.customers", False),
        (r"dbo\.(a|b)", "dbo.b", True),
        (r"\Qdbo.a(b)\E", "dbo.a(b)", True),
        (r"dbo\.(?i)CUSTOMERS", "dbo.customers", True),
        (r"(?<x>d)bo\.a", "dbo.a", True),
        (r"\p{Alpha}+\.\p{Digit}+", "dbo.12", True),
        (r"dbo\.t\d", "dbo.t\u0661", False),
        ("dbo.straße", "dbo.STRAßE", True),
        ("dbo.ärger", "dbo.ÄRGER", False),
    ],
)
def test_expression_matches_the_whole_name_whatever_its_case(text: str, name: str, expected: bool) -> None:  # noqa: FBT001
    assert PatternList(text).matches(name) is expected


@given(st.lists(NAMES, max_size=5), NAMES)
def test_list_of_escaped_names_matches_exactly_these_names(names: list[str], other: str) -> None:
    patterns = PatternList(",".join(re.escape(name).replace(",", "\\,") for name in names))
    for index, name in enumerate(names):
        found = patterns.first_match(name)
        assert found is not None
        assert found <= index
    if patterns.matches(other):
        assert any(re.fullmatch(re.escape(name), other, re.IGNORECASE) for name in names)


@pytest.mark.parametrize("bad", ["(", "a**", r"\p{Greek}+", r"dbo\.[a-z&&[^x]]+", "dbo.{name}"])
def test_invalid_expression_is_a_value_error_with_the_expression(bad: str) -> None:
    """Java has some of them, in which Python would see something else: a filter would choose other tables."""
    with pytest.raises(ValueError, match=re.escape(repr(bad))):
        PatternList.parse(bad)


def test_patterns_are_pickled_without_their_compiled_form() -> None:
    patterns = PatternList("a,b", 2, long_form=True)
    assert patterns.matches("a")
    assert sent(patterns) == patterns
