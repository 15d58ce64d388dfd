"""Type tables, names and patterns: the parts of the catalogue that need no server."""

from __future__ import annotations

import pytest

from mssql_sandbox.catalog.columns import layout
from mssql_sandbox.catalog.names import like_pattern, split_name
from mssql_sandbox.catalog.odbc_columns import odbc_column
from mssql_sandbox.catalog.type_info import type_info_rows
from mssql_sandbox.engine.types import parse_type


def test_type_info_has_37_rows_in_order() -> None:
    """[fab] DATA_TYPE, AUTO_INCREMENT (NULL first), MONEY, USERTYPE."""
    rows = type_info_rows(data_type=0, odbc_version=3, types_of_2008=True)
    assert len(rows) == 37
    codes = [int(str(row[1])) for row in rows]
    assert codes == sorted(codes)


DRIVER_CALLS = {
    "varchar": (12, [("varchar", 8000)]),
    "nvarchar": (-9, [("nvarchar", 4000), ("sysname", 128)]),
    "varbinary": (-3, [("varbinary", 8000)]),
    "timestamps": (93, [("datetime2", 27), ("datetime", 23), ("smalldatetime", 16)]),
}


@pytest.mark.parametrize(("code", "expected"), DRIVER_CALLS.values(), ids=DRIVER_CALLS)
def test_type_info_answers_what_drivers_ask(code: int, expected: list[tuple[str, int]]) -> None:
    """[exp] sizes by which ODBC drivers bind long parameters."""
    rows = type_info_rows(data_type=code, odbc_version=3, types_of_2008=True)
    assert [(row[0], row[2]) for row in rows] == expected


def test_type_info_of_odbc_2_has_its_own_codes() -> None:
    rows = {row[0]: row for row in type_info_rows(data_type=0, odbc_version=2, types_of_2008=True)}
    assert (rows["date"][1], rows["datetime2"][1]) == (9, 11)
    assert (rows["float"][2], rows["float"][17]) == (15, 10)


ODBC = {
    "bit": (-7, 1, 1, None, None),
    "tinyint": (-6, 3, 1, 0, 10),
    "smallint": (5, 5, 2, 0, 10),
    "int": (4, 10, 4, 0, 10),
    "bigint": (-5, 19, 8, 0, 10),
    "decimal(18,4)": (3, 18, 20, 4, 10),
    "numeric(9,2)": (2, 9, 11, 2, 10),
    "money": (3, 19, 21, 4, 10),
    "smallmoney": (3, 10, 12, 4, 10),
    "float": (6, 53, 8, None, 2),
    "real": (7, 24, 4, None, 2),
    "char(5)": (1, 5, 5, None, None),
    "varchar(50)": (12, 50, 50, None, None),
    "varchar(max)": (12, 0, 0, None, None),
    "nchar(5)": (-8, 5, 10, None, None),
    "nvarchar(50)": (-9, 50, 100, None, None),
    "nvarchar(max)": (-9, 0, 0, None, None),
    "text": (-1, 2147483647, 2147483647, None, None),
    "ntext": (-10, 1073741823, 2147483646, None, None),
    "binary(8)": (-2, 8, 8, None, None),
    "varbinary(20)": (-3, 20, 20, None, None),
    "varbinary(max)": (-3, 0, 0, None, None),
    "image": (-4, 2147483647, 2147483647, None, None),
    "timestamp": (-2, 8, 8, None, None),
    "date": (91, 10, 6, 0, None),
    "time(0)": (-154, 8, 12, 0, None),
    "time(7)": (-154, 16, 12, 7, None),
    "datetime": (93, 23, 16, 3, None),
    "smalldatetime": (93, 16, 16, 0, None),
    "datetime2(3)": (93, 23, 16, 3, None),
    "datetimeoffset(7)": (-155, 34, 20, 7, None),
    "uniqueidentifier": (-11, 36, 16, None, None),
    "xml": (-152, 0, 0, None, None),
}


@pytest.mark.parametrize(("declared", "expected"), ODBC.items(), ids=ODBC)
def test_odbc_column_has_the_measures_of_the_wire(declared: str, expected: tuple) -> None:
    """[wire] DATA_TYPE, PRECISION, LENGTH, SCALE, RADIX as JDBC hands them to Debezium."""
    shape = odbc_column(parse_type(declared), nullable=True, identity=False, odbc_version=3)
    assert (shape.data_type, shape.precision, shape.length, shape.scale, shape.radix) == expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [("int", "int identity"), ("decimal(9,0)", "decimal() identity"), ("bigint", "bigint identity")],
)
def test_odbc_column_names_identity_types(declared: str, expected: str) -> None:
    assert odbc_column(parse_type(declared), nullable=False, identity=True, odbc_version=3).type_name == expected


PATTERNS = {
    "any": ("%", "whatever", True),
    "single": ("a_c", "abc", True),
    "escaped underscore": ("a[_]c", "abc", False),
    "escaped percent": ("100[%]", "100%", True),
    "escaped bracket": ("[[]x]", "[x]", True),
    "range": ("[a-c]1", "b1", True),
    "negated": ("[^a]1", "a1", False),
    "case": ("ORDERS", "orders", True),
    "dots are literal": ("a.c", "abc", False),
}


@pytest.mark.parametrize(("pattern", "name", "fits"), PATTERNS.values(), ids=PATTERNS)
def test_like_pattern_follows_t_sql(pattern: str, name: str, fits: bool) -> None:  # noqa: FBT001
    assert (like_pattern(pattern).fullmatch(name) is not None) is fits


NAMES = {
    "plain": ("dbo.t", ["dbo", "t"]),
    "brackets": ("[my db].[dbo].[a.b]]c]", ["my db", "dbo", "a.b]c"]),
    "quotes": ('"x"."y""z"', ["x", 'y"z']),
    "omitted": ("tempdb..#t", ["tempdb", "", "#t"]),
}


@pytest.mark.parametrize(("text", "parts"), NAMES.values(), ids=NAMES)
def test_split_name_understands_delimiters(text: str, parts: list[str]) -> None:
    assert split_name(text) == parts


def test_layout_fills_constants_in_their_places() -> None:
    shape = layout("a int, b bit = 0, c nvarchar(60)? = 'X', d int? = NULL, e int")
    assert [column.name for column in shape.columns] == ["a", "b", "c", "d", "e"]
    assert list(shape.rows([(1, 5)])) == [(1, 0, "X", None, 5)]


def test_layout_rejects_what_is_no_column() -> None:
    with pytest.raises(ValueError, match="no column at"):
        layout("a int, b")
