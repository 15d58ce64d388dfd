"""Conversion of columns: it is the conversion of their values, for every pair that has a loop of its own."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.collation import collation_named
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.conversion_columns import column_converter
from mssql_sandbox.engine.types import SqlType, parse_type
from mssql_sandbox.errors import SqlError
from tests.tds.test_values import LAST_TICK, VALUES, ticks

COLLATION = collation_named("SQL_Latin1_General_CP1_CI_AS")
DAY = 864_000_000_000
FIRST, LAST = DAY, (LAST_TICK // DAY - 1) * DAY  # local times that are in the calendar whatever the offset
UNITS = st.text(st.characters(min_codepoint=1), max_size=10)

PAIRS: list[tuple[str, str, int | None]] = [
    ("nvarchar(20)", "varbinary(40)", None),
    ("nvarchar(20)", "varbinary(7)", None),
    ("nvarchar(20)", "varbinary(max)", None),
    ("nvarchar(max)", "varbinary(max)", None),
    ("nchar(4)", "varbinary(8)", None),
    ("timestamp", "binary(8)", None),
    ("timestamp", "binary(5)", None),
    ("binary(10)", "binary(10)", None),
    ("binary(10)", "binary(12)", None),
    ("money", "decimal(19, 4)", None),
    ("money", "decimal(25, 6)", None),
    ("datetime", "datetime2(0)", None),
    *(("datetime", f"datetime2({scale})", None) for scale in range(3, 8)),
    *(("smalldatetime", f"datetime2({scale})", None) for scale in (0, 7)),
    *((f"time({scale})", "varchar(16)", None) for scale in range(8)),
    ("time(7)", "varchar(10)", None),
    *((f"datetime2({scale})", "varchar(27)", style) for scale in range(8) for style in (None, 121)),
    ("datetime2(7)", "varchar(27)", 126),
    ("datetime2(7)", "varchar(20)", None),
    *((f"datetimeoffset({scale})", "varchar(34)", style) for scale in range(8) for style in (None, 121)),
    ("datetimeoffset(7)", "varchar(34)", 126),
    ("decimal(9, 9)", "bigint", None),
    ("int", "varchar(12)", None),
]


def typed(text: str) -> SqlType:
    return parse_type(text, collation=COLLATION, cast=True)


def values(type_: SqlType) -> st.SearchStrategy:
    if type_.name == "rowversion":
        return st.binary(min_size=8, max_size=8)
    if type_.name == "nvarchar":
        return UNITS
    if type_.name == "datetimeoffset":
        return st.tuples(ticks(type_.scale).map(lambda n: max(FIRST, min(n, LAST))), st.integers(-840, 840))
    bare = SqlType(type_.name, type_.length, type_.precision, type_.scale)
    same = {SqlType(k.name, k.length, k.precision, k.scale): strategy for k, strategy in VALUES.items()}
    return same[bare]


def outcome(function: Callable[[list], Sequence], cells: list) -> list | int:
    try:
        return list(function(cells))
    except SqlError as failure:
        return failure.number


@pytest.mark.parametrize(("source", "target", "style"), PAIRS, ids=str)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_column_is_converted_as_its_values_are(source: str, target: str, style: int | None, data: st.DataObject):
    have, want = typed(source), typed(target)
    cells = data.draw(st.lists(st.none() | values(have), max_size=6))
    expected = outcome(lambda values: [convert(value, have, want, style=style) for value in values], cells)
    assert repr(outcome(column_converter(have, want, style), cells)) == repr(expected)  # repr: -0 is not 0


def test_same_conversion_is_one_function() -> None:
    assert column_converter(t.nvarchar(5), t.varbinary(10)) is column_converter(t.nvarchar(5), t.varbinary(10))


def test_impossible_conversion_is_refused_before_there_are_values() -> None:
    with pytest.raises(SqlError) as raised:
        column_converter(t.DATE, t.INT)
    assert raised.value.number == 529
