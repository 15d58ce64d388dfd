"""Functions, operators and conversions over any values: a value comes, or an error of the server's; never a fault."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mssql_sandbox.engine.functions import SCALARS
from tests.exec.conftest import Client

VALUES = (
    "NULL", "''", "'abc'", "N'\U0001f40dx'", "'2024-02-29'", "'12:34:56'", "0", "-1", "1", "2147483647",
    "9223372036854775807", "1.5", "-0.5", "9" * 38, "1e0", "-1e308", "1e308", "0x", "0x0102",
    "CAST('2024-02-29' AS date)", "CAST('9999-12-31 23:59:59.997' AS datetime)", "CAST('0001-01-01' AS datetime2)",
    "CAST('9999-12-31 23:59:59.9999999 +14:00' AS datetimeoffset)", "CAST('23:59:59.9999999' AS time)",
    "CAST(922337203685477.5807 AS money)", "CAST(1 AS bit)", "NEWID()", "CAST('x' AS text)", "CAST('<a/>' AS xml)",
    "CAST(1 AS sql_variant)", "'$.a'", "'{\"a\":[1,null]}'", "CAST('x' AS varchar(max))", "'['", "'%[a-'",
)  # fmt: skip
TYPES = (
    "int", "tinyint", "bigint", "decimal(38, 38)", "decimal(5, 2)", "money", "real", "float", "bit", "char(2)",
    "varchar(3)", "nvarchar(2)", "varbinary(3)", "binary(9)", "date", "time(0)", "datetime", "smalldatetime",
    "datetime2(3)", "datetimeoffset", "uniqueidentifier", "sql_variant", "xml", "rowversion", "text", "hierarchyid",
)  # fmt: skip
PARTS = ("year", "month", "day", "week", "iso_week", "hour", "nanosecond", "tzoffset", "weekday", "nonsense")
NAMES = sorted(name for name in SCALARS if " " not in name)
MANY = settings(
    # The same examples each time; SANDBOX_EXAMPLES=20000 looks at as many others.
    max_examples=int(os.environ.get("SANDBOX_EXAMPLES", "250")),
    derandomize="SANDBOX_EXAMPLES" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@MANY
@given(data=st.data())
def test_functions(run: Client, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    function = SCALARS[name]
    most = function.minimum + 3 if function.maximum is None else function.maximum
    count = data.draw(st.integers(function.minimum, min(most, function.minimum + 3)))
    arguments = [data.draw(st.sampled_from(PARTS if place in function.keywords else VALUES)) for place in range(count)]
    run(f"SELECT {name}({', '.join(arguments)})")


@MANY
@given(st.sampled_from(VALUES), st.sampled_from("+-*/%&|^"), st.sampled_from(VALUES))
def test_operators(run: Client, left: str, operator: str, right: str) -> None:
    run(f"SELECT {left} {operator} {right}")


@MANY
@given(st.sampled_from(("CAST", "TRY_CAST")), st.sampled_from(VALUES), st.sampled_from(TYPES))
def test_conversions(run: Client, word: str, value: str, type_: str) -> None:
    run(f"SELECT {word}({value} AS {type_})")


@pytest.mark.parametrize("name", ["SUM", "MAX", "AVG", "COUNT", "STDEV", "CHECKSUM_AGG", "STRING_AGG"])
def test_aggregates(run: Client, name: str) -> None:
    separator = ", ','" if name == "STRING_AGG" else ""
    for value in VALUES:
        run(f"SELECT {name}(x{separator}) FROM (VALUES ({value}), (NULL)) v (x)")


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("STRING_AGG(x) FROM (VALUES ('a')) v (x)", 174),
        ("CHECKSUM_AGG(x) FROM (VALUES ('a')) v (x)", 8117),
        ("LEFT_SHIFT(1, CAST('a' AS text))", 8116),
        ("REPLICATE(CAST('ab' AS varchar(max)), 2147483647)", 7119),
        ("DECOMPRESS(0x0102)", 50000),
    ],
)
def test_wrong_arguments_have_their_numbers(run: Client, expression: str, number: int) -> None:
    assert run(f"SELECT {expression}").errors == [number]
