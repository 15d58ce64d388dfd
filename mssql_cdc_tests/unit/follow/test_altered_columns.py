"""Which changes of a type rewrite what a table holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mssql_cdc.follow.altered_columns import altered_columns, is_rewritten
from mssql_cdc.schema import SqlServerType
from mssql_cdc_tests.lake_kit import column, orders


def kind(text: str) -> SqlServerType:
    name, _, rest = text.rstrip(")").partition("(")
    numbers = [int(number) for number in rest.split(",")] if rest else []
    lengths: dict[str, Any] = {"length": numbers[0]} if numbers and ("char" in name or "binary" in name) else {}
    if name == "decimal":
        lengths = dict(zip(("precision", "scale"), numbers, strict=True))
    elif numbers and not lengths:
        lengths = {"scale": numbers[0]}
    return SqlServerType(name, **lengths)


@pytest.mark.parametrize(
    "change",
    [
        "char(5) > char(10)",
        "varchar(5) > char(10)",
        "nvarchar(5) > varchar(10)",
        "nchar(5) > char(5)",
        "uniqueidentifier > char(40)",
        "binary(4) > binary(8)",
        "varbinary(4) > binary(8)",
        "datetime > datetime2(7)",
        "datetime > datetime2(0)",
        "datetime > smalldatetime",
        "datetime2(7) > datetime",
        "datetime2(7) > datetime2(3)",
        "datetime2(7) > date",
        "time(7) > time(0)",
        "datetimeoffset(7) > datetimeoffset(3)",
        "decimal(9,3) > decimal(9,1)",
        "decimal(9,3) > int",
        "money > decimal(19,2)",
        "float > real",
        "float > int",
    ],
)
def test_a_change_that_rewrites_values(change: str):
    before, after = map(kind, change.split(" > "))
    assert is_rewritten(before, after)


@pytest.mark.parametrize(
    "change",
    [
        "char(5) > char(5)",
        "char(5) > varchar(10)",
        "varchar(5) > varchar(10)",
        "varchar(5) > nvarchar(5)",
        "binary(4) > varbinary(8)",
        "datetime > datetime2(3)",
        "smalldatetime > datetime",
        "date > datetime",
        "date > datetime2(7)",
        "datetime2(2) > datetime",
        "datetime2(3) > datetime2(7)",
        "time(0) > time(7)",
        "decimal(9,1) > decimal(12,3)",
        "int > bigint",
        "int > decimal(12,2)",
        "int > float",
        "real > float",
        "smallmoney > money",
        "xml > nvarchar(50)",
    ],
)
def test_a_change_that_leaves_values_as_they_are(change: str):
    before, after = map(kind, change.split(" > "))
    assert not is_rewritten(before, after)


def test_the_last_version_that_rewrote_values_counts():
    first = orders(column("id", "int"), column("a", "char", length=5), column("b", "int"))
    second = orders(column("id", "int"), column("a", "char", length=9), column("b", "int"), version=2)
    third = orders(column("id", "int"), column("a", "char", length=9), column("b", "bigint"), version=3)
    assert altered_columns([first, second, third]) == (second, ["a"])
    assert altered_columns([second, third]) is None
    assert altered_columns([first]) is None
    again = replace(second, columns=(second.columns[0], replace(second.columns[1], position=7), second.columns[2]))
    assert altered_columns([first, again]) is None, "another column of the same name"


def test_a_key_whose_type_changes_lets_its_table_be_read_anyway():
    first = orders(column("id", "char", length=5), column("a", "char", length=5))
    second = orders(column("id", "char", length=9), column("a", "char", length=9), version=2)
    assert altered_columns([first, second]) is None
