"""Conversions: rounding, truncation, error numbers, styles, round trips."""

import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.engine.collation import collation_named
from mssql_sandbox.engine.comparison import compare, sort_key
from mssql_sandbox.engine.conversion import assigner, convert
from mssql_sandbox.engine.precedence import arithmetic, promote
from mssql_sandbox.engine.text import literal, to_text
from mssql_sandbox.engine.types import UNIQUEIDENTIFIER, parse_type
from mssql_sandbox.errors import SqlError

COLLATION = collation_named("SQL_Latin1_General_CP1_CI_AS")


def typed(text: str):
    return parse_type(text, collation=COLLATION, cast=True)


def cast(value, source: str, target: str, style: int | None = None):
    return convert(value, typed(source), typed(target), style=style)


def shown(value, source: str, target: str, style: int | None = None) -> str:
    return to_text(cast(value, source, target), typed(target), style)


def failure(value, source: str, target: str) -> tuple[int, str]:
    with pytest.raises(SqlError) as raised:
        cast(value, source, target)
    return raised.value.number, raised.value.message


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2020-01-31 12:34:56.789", "56.790"),
        ("2020-01-31 12:34:56.785", "56.787"),
        ("2020-01-31 12:34:56.784", "56.783"),
        ("2020-01-31 12:34:56.991", "56.990"),
    ],
)
def test_datetime_rounds_to_a_three_hundredth_of_a_second(text, printed) -> None:
    assert shown(text, "varchar(30)", "datetime", 121) == f"2020-01-31 12:34:{printed}"


@pytest.mark.parametrize(
    ("text", "target", "result"),
    [
        ("2020-01-31 12:34:29.998", "smalldatetime", "2020-01-31 12:34:00"),
        ("2020-01-31 12:34:29.999", "smalldatetime", "2020-01-31 12:35:00"),
        ("2020-01-31 23:59:59.9999999", "datetime2(0)", "2020-02-01 00:00:00"),
        ("9999-12-31 23:59:59.9999999", "datetime2(0)", "9999-12-31 23:59:59"),
        ("23:59:59.9999999", "time(3)", "00:00:00.000"),
        ("2020-01-31 12:34:56.1234567", "datetime2(3)", "2020-01-31 12:34:56.123"),
        ("2020-01-31T12:34:56.1234567-03:30", "datetimeoffset(2)", "2020-01-31 12:34:56.12 -03:30"),
        ("Jan 5 2021 3:04PM", "datetime2(0)", "2021-01-05 15:04:00"),
        ("5/1/21", "date", "2021-05-01"),
        ("19991231", "date", "1999-12-31"),
        ("31 December 1999", "date", "1999-12-31"),
    ],
)
def test_text_becomes_a_date_rounded_to_the_type(text, target, result) -> None:
    style = 120 if target == "smalldatetime" else None
    assert shown(text, "varchar(40)", target, style) == result


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (0, "Feb  3 2020  4:05PM"),
        (1, "02/03/20"),
        (3, "03/02/20"),
        (101, "02/03/2020"),
        (104, "03.02.2020"),
        (106, "03 Feb 2020"),
        (108, "16:05:06"),
        (109, "Feb  3 2020  4:05:06:123PM"),
        (112, "20200203"),
        (113, "03 Feb 2020 16:05:06:123"),
        (120, "2020-02-03 16:05:06"),
        (121, "2020-02-03 16:05:06.123"),
        (126, "2020-02-03T16:05:06.123"),
    ],
)
def test_convert_styles_of_datetime(style, text) -> None:
    value = cast("2020-02-03 16:05:06.123", "varchar(30)", "datetime")
    assert cast(value, "datetime", "varchar(40)", style) == text


@pytest.mark.parametrize(
    ("value", "source", "target", "number", "text"),
    [
        (
            "abc",
            "varchar(9)",
            "int",
            245,
            "Conversion failed when converting the varchar value 'abc' to data type int.",
        ),
        ("abc", "nvarchar(9)", "bigint", 8114, "Error converting data type nvarchar to bigint."),
        ("1e5", "varchar(9)", "decimal(9,2)", 8114, "Error converting data type varchar to numeric."),
        (
            "99999999999",
            "varchar(20)",
            "int",
            248,
            "The conversion of the varchar value '99999999999' overflowed an int column.",
        ),
        (
            "300",
            "varchar(9)",
            "tinyint",
            244,
            "The conversion of the varchar value '300' overflowed an INT1 column. Use a larger integer column.",
        ),
        (300, "int", "tinyint", 220, "Arithmetic overflow error for data type tinyint, value = 300."),
        (2**40, "bigint", "int", 8115, "Arithmetic overflow error converting expression to data type int."),
        (1e10, "float", "int", 232, "Arithmetic overflow error for type int, value = 10000000000.000000."),
        (12345, "int", "decimal(4,0)", 8115, "Arithmetic overflow error converting int to data type numeric."),
        (
            "x",
            "varchar(9)",
            "datetime",
            241,
            "Conversion failed when converting date and/or time from character string.",
        ),
        (
            "x",
            "varchar(9)",
            "smalldatetime",
            295,
            "Conversion failed when converting character string to smalldatetime data type.",
        ),
        (
            "1700-01-01",
            "varchar(10)",
            "datetime",
            242,
            "The conversion of a varchar data type to a datetime data type resulted in an out-of-range value.",
        ),
        (
            "2020-02-30",
            "varchar(10)",
            "date",
            241,
            "Conversion failed when converting date and/or time from character string.",
        ),
        (
            "nope",
            "varchar(10)",
            "uniqueidentifier",
            8169,
            "Conversion failed when converting from a character string to uniqueidentifier.",
        ),
        (
            "x",
            "varchar(10)",
            "money",
            235,
            "Cannot convert a char value to money. The char value has incorrect syntax.",
        ),
        (1, "int", "date", 529, "Explicit conversion from data type int to date is not allowed."),
        (12345, "int", "nvarchar(2)", 8115, "Arithmetic overflow error converting expression to data type nvarchar."),
    ],
)
def test_failed_conversions_have_the_servers_number_and_text(value, source, target, number, text) -> None:
    assert failure(value, source, target) == (number, text)


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (Decimal("2.5"), "decimal(3,1)", "int", 2),
        (Decimal("2.50"), "money", "int", 3),
        (-2.9, "float", "int", -2),
        (Decimal("1.005"), "decimal(4,3)", "decimal(3,2)", Decimal("1.01")),
        (1.23456, "float", "money", Decimal("1.2346")),
        ("", "varchar(1)", "int", 0),
        (" 7 ", "varchar(5)", "int", 7),
        ("true", "varchar(5)", "bit", 1),
        (5, "int", "bit", 1),
        (12345, "int", "varchar(3)", "*"),
        ("hello", "varchar(9)", "char(3)", "hel"),
        ("a", "varchar(9)", "nchar(3)", "a  "),
        (b"\x01\x02", "varbinary(2)", "int", 258),
        (258, "int", "binary(3)", b"\x00\x01\x02"),
        ("AB", "nvarchar(9)", "varbinary(3)", b"A\x00B"),
        (1, "int", "datetime", 25_920_000),
        (0.1, "real", "float", 0.1),
        (Decimal("1234.5678"), "money", "varchar(20)", "1234.57"),
        (1e21, "float", "varchar(30)", "1e+021"),
        (0.1 + 0.2, "float", "varchar(30)", "0.3"),
    ],
)
def test_conversions_cut_and_round_by_type(value, source, target, result) -> None:
    assert cast(value, source, target) == result


def test_try_convert_gives_null_but_an_impossible_pair_stays_an_error() -> None:
    assert convert("abc", typed("varchar(5)"), typed("int"), try_=True) is None
    with pytest.raises(SqlError) as raised:
        convert(1, typed("int"), typed("date"), try_=True)
    assert raised.value.number == 529


def test_a_column_refuses_text_that_cast_would_cut() -> None:
    store = assigner(typed("varchar(20)"), typed("varchar(3)"), table="db.dbo.t", column="c")
    assert store("abc   ") == "abc"
    with pytest.raises(SqlError) as raised:
        store("abcdef")
    assert raised.value.number == 2628
    assert raised.value.message.endswith("in table 'db.dbo.t', column 'c'. Truncated value: 'abc'.")
    old = assigner(typed("varchar(20)"), typed("varchar(3)"), table="db.dbo.t", column="c", verbose=False)
    with pytest.raises(SqlError, match="String or binary data would be truncated"):
        old("abcdef")


@given(st.integers(0, 3_155_378_975_999_999_999), st.integers(0, 7))
def test_datetime2_survives_text_and_bytes(ticks, scale) -> None:
    name = f"datetime2({scale})"
    value = cast(ticks, "datetime2(7)", name)
    assert cast(cast(value, name, "varchar(40)"), "varchar(40)", name) == value
    assert cast(cast(value, name, "varbinary(20)"), "varbinary(20)", name) == value
    assert convert(literal(value, typed(name))[1:-1], typed("varchar(40)"), typed(name)) == value


@given(st.integers(-1_379_000_000_000, 76_000_000_000_000))
def test_datetime_survives_datetime2_and_printed_milliseconds(units) -> None:
    assert cast(cast(units, "datetime", "datetime2(7)"), "datetime2(7)", "datetime") == units
    assert cast(cast(units, "datetime", "varchar(30)", 121), "varchar(30)", "datetime") == units


@given(st.decimals(-(10**17), 10**17, places=4))
def test_decimals_and_money_survive_text_and_bytes(value) -> None:
    assert cast(cast(value, "decimal(38,4)", "varchar(50)"), "varchar(50)", "decimal(38,4)") == value
    assert cast(cast(value, "decimal(38,4)", "varbinary(30)"), "varbinary(30)", "decimal(38,4)") == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_survive_binary(value) -> None:
    assert cast(cast(value, "bigint", "binary(8)"), "binary(8)", "bigint") == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_survive_style_three(value) -> None:
    assert cast(cast(value, "float", "varchar(40)", 3), "varchar(40)", "float") == value


def test_uniqueidentifiers_are_ordered_from_their_last_group() -> None:
    low = uuid.UUID("ffffffff-ffff-ffff-ffff-000000000001")
    high = uuid.UUID("00000000-0000-0000-0000-000000000002")
    assert compare(low, UNIQUEIDENTIFIER, high, UNIQUEIDENTIFIER) == -1


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("int", "bigint", "bigint"),
        ("decimal(5,2)", "int", "decimal(12,2)"),
        ("varchar(5)", "nvarchar(3)", "nvarchar(5)"),
        ("datetime", "datetime2(0)", "datetime2(3)"),
        ("float", "decimal(5,2)", "float"),
        ("char(3)", "varchar(max)", "varchar(max)"),
    ],
)
def test_promotion_follows_precedence(left, right, result) -> None:
    assert str(promote(typed(left), typed(right))) == result == str(promote(typed(right), typed(left)))


@pytest.mark.parametrize(
    ("operator", "left", "right", "result"),
    [
        ("+", "decimal(5,2)", "decimal(6,3)", "decimal(7,3)"),
        ("*", "decimal(5,2)", "decimal(6,3)", "decimal(12,5)"),
        ("/", "decimal(5,2)", "decimal(6,3)", "decimal(15,9)"),
        ("*", "decimal(38,10)", "decimal(38,10)", "decimal(38,6)"),
        ("/", "decimal(38,10)", "int", "decimal(38,10)"),
        ("+", "decimal(38,10)", "decimal(38,0)", "decimal(38,0)"),
        ("+", "decimal(38,10)", "decimal(38,10)", "decimal(38,10)"),
        ("/", "int", "tinyint", "int"),
        ("*", "money", "int", "money"),
    ],
)
def test_decimal_arithmetic_has_documented_precision_and_scale(operator, left, right, result) -> None:
    assert str(arithmetic(operator, typed(left), typed(right))) == result


def test_comparison_across_types_goes_through_the_promoted_type() -> None:
    assert compare("10", typed("varchar(5)"), 9, typed("int")) == 1
    assert compare("a  ", typed("varchar(5)"), "A", typed("nvarchar(5)")) == 0
    assert compare(None, typed("int"), 1, typed("int")) is None
    assert compare(b"\x01", typed("varbinary(5)"), b"\x01\x00", typed("varbinary(5)")) == 0
    assert sort_key(typed("int")) is None
