"""Type declarations."""

import pytest

from mssql_sandbox.engine.types import max_length, parse_type, reported_name
from mssql_sandbox.errors import SqlError


@pytest.mark.parametrize(
    ("text", "declared", "size"),
    [
        ("int", "int", 4),
        ("[nvarchar](max)", "nvarchar(max)", -1),
        ("NVARCHAR ( 20 )", "nvarchar(20)", 40),
        ("varchar", "varchar(1)", 1),
        ("numeric", "numeric(18,0)", 9),
        ("decimal(38, 4)", "decimal(38,4)", 17),
        ("float(24)", "real", 4),
        ("timestamp", "timestamp", 8),
        ("datetime2(3)", "datetime2(3)", 7),
        ("time", "time(7)", 5),
        ("datetimeoffset", "datetimeoffset(7)", 10),
        ("sys.sysname", "sysname", 256),
        ("national character varying(5)", "nvarchar(5)", 10),
        ("double precision", "float", 8),
    ],
)
def test_declarations_are_read_and_printed(text, declared, size) -> None:
    type_ = parse_type(text)
    assert (str(type_), max_length(type_)) == (declared, size)
    assert str(parse_type(str(type_))) == declared


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("blob", 243),
        ("decimal(39)", 2750),
        ("decimal(5,6)", 2751),
        ("varchar(8001)", 2717),
        ("nvarchar(0)", 1001),
        ("int(4)", 2716),
        ("time(8)", 1002),
    ],
)
def test_impossible_declarations_are_refused(text, number) -> None:
    with pytest.raises(SqlError) as raised:
        parse_type(text)
    assert raised.value.number == number


def test_cast_gives_text_without_length_thirty_characters() -> None:
    assert str(parse_type("varchar", cast=True)) == "varchar(30)"
    assert reported_name(parse_type("rowversion")) == "timestamp"
