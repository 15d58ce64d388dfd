"""Operators, LIKE and aggregates: values, result types, errors."""

from decimal import Decimal

import pytest

from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.functions import AGGREGATES, Call, binary_operator
from mssql_sandbox.engine.functions.patterns import like
from mssql_sandbox.engine.text import to_text
from mssql_sandbox.errors import SqlError
from tests.engine.typed import COLLATION, typed


@pytest.mark.parametrize(
    ("name", "kind", "values", "type_", "result"),
    [
        ("COUNT", "int", [1, None, 3], "int", 2),
        ("SUM", "tinyint", [200, 200], "int", 400),
        ("AVG", "int", [1, 2, None], "int", 1),
        ("AVG", "int", [-1, -2], "int", -1),
        ("SUM", "decimal(5,2)", [Decimal("1.10"), Decimal("2.20")], "decimal(38,2)", Decimal("3.30")),
        ("AVG", "decimal(5,2)", [Decimal(1), Decimal(0), Decimal(0)], "decimal(38,6)", Decimal("0.333333")),
        ("SUM", "real", [0.5, 0.25], "float", 0.75),
        ("MIN", "varchar(5)", ["b", "A", None], "varchar(5)", "A"),
        ("MAX", "int", [], "int", None),
        ("VAR", "int", [1, 2, 3], "float", 1.0),
        ("STDEVP", "int", [2, 4], "float", 1.0),
        ("STDEV", "int", [2], "float", None),
        ("SUM", "money", [Decimal("1.0000")], "money", Decimal("1.0000")),
    ],
)
def test_aggregates(name, kind, values, type_, result) -> None:
    bound = Call((typed(kind),), (), COLLATION)
    aggregate = AGGREGATES[name]
    state = aggregate.accumulator(bound)()
    for value in values:
        state.add(value)
    assert (str(aggregate.result(bound)), state.result(), state.saw_null) == (type_, result, None in values)


def test_sums_overflow_and_text_is_no_number() -> None:
    state = AGGREGATES["SUM"].accumulator(Call((typed("int"),)))()
    state.add(2**31 - 1)
    state.add(1)
    with pytest.raises(SqlError, match="Arithmetic overflow error converting expression to data type int"):
        state.result()
    with pytest.raises(SqlError, match="Operand data type varchar is invalid for sum operator"):
        AGGREGATES["SUM"].result(Call((typed("varchar(3)"),)))


def test_string_agg_joins_in_the_order_of_rows() -> None:
    state = AGGREGATES["STRING_AGG"].accumulator(Call((typed("int"), typed("varchar(1)")), (), COLLATION))()
    for value in (3, None, 1):
        state.add((value, "-"))
    assert state.result() == "3-1"


@pytest.mark.parametrize(
    ("operator", "left", "right", "a", "b", "result"),
    [
        ("/", "int", "int", -7, 2, "-3"),
        ("%", "int", "int", -7, 2, "-1"),
        ("/", "decimal(5,2)", "decimal(5,2)", "1", "3", "0.33333333"),
        ("+", "datetime", "int", "2020-01-31", 1, "Feb  1 2020 12:00AM"),
        ("*", "money", "decimal(5,2)", "1.5", "2", "3.000000"),
        ("+", "varchar(3)", "nvarchar(3)", "a", "b", "ab"),
        ("&", "tinyint", "int", 6, 3, "2"),
        ("+", "varchar(3)", "int", "4", 3, "7"),
    ],
)
def test_operators(operator, left, right, a, b, result) -> None:
    types = typed(left), typed(right)
    values = [
        convert(value, typed("varchar(30)"), type_) if isinstance(value, str) else value
        for value, type_ in zip((a, b), types, strict=True)
    ]
    type_, apply = binary_operator(operator, *types)
    assert to_text(apply(*values), type_) == result


def test_division_by_zero_is_error_8134_in_every_type() -> None:
    for name, zero, one in (
        ("int", 0, 1),
        ("float", 0.0, 1.0),
        ("decimal(5,2)", Decimal(0), Decimal(1)),
        ("money", Decimal(0), Decimal(1)),
    ):
        with pytest.raises(SqlError, match="Divide by zero error encountered"):
            binary_operator("/", typed(name), typed(name))[1](one, zero)


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("abc", "A%", True),
        ("abc", "a_c", True),
        ("a%c", "a[%]c", True),
        ("abc", "[^a]%", False),
        ("ab  ", "ab", True),
        ("ab", "ab ", False),
        ("x-y", "x[-]y", True),
        ("5", "[0-9]", True),
    ],
)
def test_like(text, pattern, matches) -> None:
    assert like(text, pattern, COLLATION) is matches
    assert like("50%", "50!%", COLLATION, "!")
