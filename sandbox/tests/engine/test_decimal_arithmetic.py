"""Precision and scale of decimal arithmetic: the documentation's table and its rules for more than 38 digits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_sandbox.engine.precedence import decimal_result
from mssql_sandbox.engine.types import decimal

Sides = tuple[int, int, int, int]


@st.composite
def sides(draw: st.DrawFn) -> Sides:
    """Precision and scale of two decimals."""
    p1, p2 = draw(st.integers(1, 38)), draw(st.integers(1, 38))
    return p1, draw(st.integers(0, p1)), p2, draw(st.integers(0, p2))


def documented(operator: str, p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    """The result's precision and scale, as "Precision, scale, and length (Transact-SQL)" writes them down."""
    if operator in "+-":
        scale = max(s1, s2)
        precision = scale + max(p1 - s1, p2 - s2) + 1
        if precision > 38:
            scale = min(scale, 38 - max(p1 - s1, p2 - s2))
        return min(precision, 38), scale
    if operator == "%":
        scale = max(s1, s2)
        return min(p1 - s1, p2 - s2) + scale, scale
    if operator == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    else:
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    if precision <= 38:
        return precision, scale
    whole = precision - scale
    if whole < 32:
        return 38, min(scale, 38 - whole)
    return 38, min(scale, 6)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%"])
def test_result_types_are_the_documented_ones(operator: str) -> None:
    @settings(deadline=None)
    @given(sides())
    def check(given_: Sides) -> None:
        p1, s1, p2, s2 = given_
        result = decimal_result(operator, decimal(p1, s1), decimal(p2, s2))  # type: ignore[arg-type]
        assert (result.precision, result.scale) == documented(operator, p1, s1, p2, s2)

    check()
