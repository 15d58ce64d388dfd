"""Built-in functions: values, result types, arity errors, NULLs."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.functions import KEYWORD, Call, scalar
from mssql_sandbox.engine.functions.strings_codes import string_split
from mssql_sandbox.engine.text import to_text
from mssql_sandbox.errors import SqlError
from tests.engine.typed import COLLATION, typed


class Session:
    date_first = 7
    offset_minutes = 60
    local_ticks = 637_160_708_967_891_234
    random = random.Random(1)


def call(name: str, *arguments: tuple[str, object]) -> str | None:
    """Text of a call's result; arguments are (type, value), values of odd types given as text."""
    types = tuple(typed(kind) for kind, _ in arguments)
    values = tuple(
        convert(value, typed("varchar(100)"), type_)
        if isinstance(value, str) and type_.name not in {"varchar", "nvarchar", "keyword", "xml"}
        else value
        for type_, (_, value) in zip(types, arguments, strict=True)
    )
    function, bound = scalar(name), Call(types, values, COLLATION)
    apply = function.caller(bound)
    result = apply(Session, *values) if function.environment else apply(*values)
    return None if result is None else to_text(result, function.result(bound))


def v(text: str | None) -> tuple[str, object]:
    return ("varchar(40)", text)


def i(number: int | None) -> tuple[str, object]:
    return ("int", number)


def k(word: str) -> tuple[str, object]:
    return ("keyword", word)


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("LEN", [v("ab  ")], "2"),
        ("DATALENGTH", [("nvarchar(9)", "ab")], "4"),
        ("LEFT", [v("abc"), i(2)], "ab"),
        ("RIGHT", [v("abc"), i(0)], ""),
        ("SUBSTRING", [v("abcdef"), i(0), i(3)], "ab"),
        ("CHARINDEX", [v("C"), v("abc")], "3"),
        ("CHARINDEX", [v("a"), v("aba"), i(2)], "3"),
        ("PATINDEX", [v("%[0-9]%"), v("ab1c")], "3"),
        ("REPLACE", [v("aXbx"), v("x"), v("-")], "a-b-"),
        ("STUFF", [v("abcdef"), i(2), i(3), v(None)], "aef"),
        ("STUFF", [v("abc"), i(9), i(1), v("x")], None),
        ("REPLICATE", [v("ab"), i(-1)], None),
        ("CONCAT", [v("a"), v(None), i(1)], "a1"),
        ("CONCAT_WS", [v(","), v("a"), v(None), v("b")], "a,b"),
        ("QUOTENAME", [v("a]b")], "[a]]b]"),
        ("UPPER", [v("straße")], "STRAßE"),
        ("TRANSLATE", [v("2*[3]"), v("[]"), v("()")], "2*(3)"),
        ("UNICODE", [("nvarchar(2)", "é")], "233"),
        ("ROUND", [("decimal(9,3)", "123.456"), i(-1)], "120.000"),
        ("ROUND", [("decimal(9,3)", "-1.555"), i(2), i(1)], "-1.550"),
        ("CEILING", [("money", "1.10")], "2.00"),
        ("FLOOR", [("decimal(5,2)", "-1.10")], "-2"),
        ("POWER", [i(3), i(4)], "81"),
        ("SIGN", [("decimal(5,2)", "-1.10")], "-1.00"),
        ("ABS", [i(-3)], "3"),
        ("SQRT", [i(16)], "4"),
        ("DATEADD", [k("month"), i(1), ("date", "2020-01-31")], "2020-02-29"),
        ("DATEADD", [k("ms"), i(1), ("datetime2(3)", "2020-01-31")], "2020-01-31 00:00:00.001"),
        ("DATEDIFF", [k("year"), ("date", "2019-12-31"), ("date", "2020-01-01")], "1"),
        ("DATEDIFF", [k("week"), ("date", "2020-01-04"), ("date", "2020-01-05")], "1"),
        ("DATEDIFF_BIG", [k("ns"), ("date", "2019-12-31"), ("date", "2020-01-01")], "86400000000000"),
        ("DATEPART", [k("iso_week"), ("date", "2021-01-01")], "53"),
        ("DATEPART", [k("dw"), ("date", "2021-01-03")], "1"),
        ("DATEPART", [k("ms"), ("datetime", "2021-01-03 00:00:00.007")], "7"),
        ("DATENAME", [k("month"), ("date", "2021-01-03")], "January"),
        ("EOMONTH", [("date", "2020-01-10"), i(1)], "2020-02-29"),
        ("SYSUTCDATETIME", [], "2020-01-31 11:34:56.7891234"),
        ("SWITCHOFFSET", [("datetimeoffset(0)", "2020-01-01 10:00 +02:00"), v("-05:00")], "2020-01-01 03:00:00 -05:00"),
        ("TODATETIMEOFFSET", [("datetime2(0)", "2020-01-01 10:00"), i(90)], "2020-01-01 10:00:00 +01:30"),
        (
            "AT TIME ZONE",
            [("datetime2(0)", "2022-03-27 02:30"), v("W. Europe Standard Time")],
            "2022-03-27 03:30:00 +02:00",
        ),
        (
            "AT TIME ZONE",
            [("datetimeoffset(0)", "2022-07-01 00:00 +00:00"), v("Eastern Standard Time")],
            "2022-06-30 20:00:00 -04:00",
        ),
        ("DATETIME2FROMPARTS", [i(2020), i(2), i(3), i(4), i(5), i(6), i(7), i(2)], "2020-02-03 04:05:06.07"),
        ("ISDATE", [v("2020-02-30")], "0"),
        ("ISNULL", [i(None), v("5")], "5"),
        ("NULLIF", [v("a"), v("A")], None),
        ("CHOOSE", [i(2), v("a"), v("b")], "b"),
        ("COALESCE", [i(None), ("bigint", 3)], "3"),
        ("ISNUMERIC", [v("$1,000.5")], "1"),
        ("ISNUMERIC", [v("x")], "0"),
        ("HASHBYTES", [v("SHA2_256"), v("")], "0xE3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"),
        ("JSON_VALUE", [v('{"a":[1,{"b":2.50}]}'), v("$.a[1].b")], "2.50"),
        ("JSON_VALUE", [v('{"a":1}'), v("$.b")], None),
        ("JSON_QUERY", [v('{"a":[1, 2]}'), v("$.a")], "[1,2]"),
        ("JSON_MODIFY", [v('{"a":1}'), v("$.b"), v("x")], '{"a":1,"b":"x"}'),
        ("ISJSON", [v("[1")], "0"),
        ("GREATEST", [i(1), ("decimal(3,1)", "2.5")], "2.5"),
        ("LEN", [v(None)], None),
        ("STR", [("float", 123.456), i(7), i(2)], " 123.46"),
    ],
)
def test_scalar_functions(name, arguments, result) -> None:
    assert call(name, *arguments) == result


@pytest.mark.parametrize(
    ("name", "arguments", "number", "text"),
    [
        ("SUBSTRING", [v("a"), i(1)], 174, "The substring function requires 3 argument(s)."),
        ("CHARINDEX", [v("a")], 189, "The charindex function requires 2 to 3 arguments."),
        ("LEFT", [v("a"), i(-1)], 537, "Invalid length parameter passed to the LEFT or SUBSTRING function."),
        ("POWER", [i(10), i(10)], 232, "Arithmetic overflow error for type int, value = 10000000000.000000."),
        (
            "DATEFROMPARTS",
            [i(2020), i(2), i(30)],
            289,
            "Cannot construct data type date, some of the arguments have values which are not valid.",
        ),
        (
            "DATEADD",
            [k("day"), i(1), ("date", "9999-12-31")],
            517,
            "Adding a value to a 'date' column caused an overflow.",
        ),
        (
            "DATEADD",
            [k("fortnight"), i(1), ("date", "2020-01-01")],
            155,
            "'fortnight' is not a recognized dateadd option.",
        ),
        (
            "DATEPART",
            [k("hour"), ("date", "2020-01-01")],
            9810,
            "The datepart hour is not supported by date function datepart for data type date.",
        ),
        (
            "DATEDIFF",
            [k("second"), ("date", "1900-01-01"), ("date", "2020-01-01")],
            535,
            (
                "The datediff function resulted in an overflow. The number of dateparts separating two date/time "
                "instances is too large. Try to use datediff with a less precise datepart."
            ),
        ),
        (
            "JSON_VALUE",
            [v("{"), v("$")],
            13609,
            "JSON text is not properly formatted. Unexpected character '.' is found at position 1.",
        ),
        (
            "AT TIME ZONE",
            [("date", "2020-01-01"), v("Mars")],
            9820,
            "The time zone parameter 'Mars' provided to AT TIME ZONE clause is invalid.",
        ),
        ("NO_SUCH", [], 195, "'NO_SUCH' is not a recognized built-in function name."),
    ],
)
def test_wrong_calls_are_the_servers_errors(name, arguments, number, text) -> None:
    with pytest.raises(SqlError) as raised:
        call(name, *arguments)
    assert (raised.value.number, raised.value.message) == (number, text)


@given(st.integers(0, 3_652_058), st.integers(-20_000, 20_000))
def test_dateadd_and_datediff_of_days_are_inverse(day, count) -> None:
    if 0 <= day + count <= 3_652_058:
        date = typed("date")
        types = (KEYWORD, typed("int"), date)
        later = scalar("DATEADD").caller(Call(types, ("day", None, None)))("day", count, day)
        assert later == day + count
        back = scalar("DATEDIFF").caller(Call((KEYWORD, date, date), ("day", None, None)))("day", day, later)
        assert back == count


def test_string_split_numbers_its_parts() -> None:
    assert list(string_split("a,b,", ",", ordinal=True)) == [("a", 1), ("b", 2), ("", 3)]
