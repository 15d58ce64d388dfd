"""Which changes of a type rewrite what a table holds."""

from __future__ import annotations

from typing import Any

import pytest

from mssql_cdc.schema import SqlServerType
from mssql_cdc.schema.rewritten import is_rewritten


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


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Cyrillic_General_CI_AS", "Latin1_General_CI_AS", True),
        ("Latin1_General_CI_AS", "Latin1_General_CI_AS", False),
        (None, "Latin1_General_CI_AS", False),
    ],
)
def test_another_collation_rewrites_what_is_in_a_code_page(before: str | None, after: str, expected: bool):  # noqa: FBT001
    """SQL Server converts the stored text; what the new code page lacks becomes a question mark."""
    kinds = [SqlServerType("varchar", length=50, collation=one) for one in (before, after)]
    assert is_rewritten(*kinds) is expected
    national = [SqlServerType("nvarchar", length=50, collation=one) for one in (before, after)]
    assert not is_rewritten(*national)
