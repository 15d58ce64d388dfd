"""Chunk bounds: server-side values, every row in exactly one chunk, NULL included (rule C20)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema import Column, SqlServerType
from mssql_cdc.source.sqlserver.chunks import bound_expression, bound_value, bounds_statement, predicate
from mssql_cdc.source.values import Chunk
from mssql_cdc_tests.unit.source.raw import INT, ORDERS

KEYS = (Column("a", INT, nullable=False), Column("b", INT, nullable=True))
VALUES = st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2)))


def holds(sql: str, parameters: list[str], row: tuple[int, int | None]) -> bool:
    """Evaluate a predicate like T-SQL: comparisons with NULL are not true."""
    values = iter(parameters)
    python = re.sub(r"CAST\(\? AS int\)", lambda _: next(values), sql)
    python = re.sub(r"\[(\w)\] IS NOT NULL", r"(\1 is not None)", python)
    python = re.sub(r"\[(\w)\] IS NULL", r"(\1 is None)", python)
    python = re.sub(r"\[(\w)\] (=|<|>) (\d+)", r"compare(\1, '\2', \3)", python)
    python = python.replace("AND", "and").replace("OR", "or").replace("1 = 0", "False")
    names: dict[str, Any] = {"a": row[0], "b": row[1], "compare": compare}
    return bool(eval(python or "True", {}, names))  # noqa: S307 - the predicate of this very test


def compare(left: int | None, sign: str, right: int) -> bool:
    return left is not None and {"=": left == right, "<": left < right, ">": left > right}[sign]


def order(row: tuple[int, int | None]) -> tuple[int, int]:
    return row[0], -1 if row[1] is None else row[1]


@given(st.lists(VALUES, max_size=4), VALUES)
def test_every_row_is_in_exactly_one_chunk(bounds: list[tuple[int, int | None]], row: tuple[int, int | None]) -> None:
    texts = [tuple(None if v is None else str(v) for v in bound) for bound in sorted(bounds, key=order)]
    edges = [None, *texts, None]
    chunks = [Chunk(i, edges[i], edges[i + 1]) for i in range(len(edges) - 1)]

    assert sum(holds(*predicate(chunk, KEYS), row) for chunk in chunks) == 1


@given(VALUES, VALUES)
def test_a_chunk_ends_with_its_upper_bound(bound: tuple[int, int | None], row: tuple[int, int | None]) -> None:
    upper = tuple(None if v is None else str(v) for v in bound)

    assert holds(*predicate(Chunk(0, None, upper), KEYS), row) is (order(row) <= order(bound))


@pytest.mark.feature("INC-16")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (SqlServerType("int"), "CAST(? AS int)"),
        (SqlServerType("datetime"), "CAST(? AS datetime)"),
        (SqlServerType("decimal", precision=10, scale=2), "CAST(? AS decimal(10, 2))"),
        (
            SqlServerType("varchar", length=20, collation="Polish_CI_AS"),
            "CAST(CAST(CONVERT(varbinary(40), ?, 2) AS nvarchar(20)) COLLATE Polish_CI_AS AS varchar(20))",
        ),
        (
            SqlServerType("nvarchar", length=20, collation="Latin1_General_CI_AS"),
            "CAST(CONVERT(varbinary(40), ?, 2) AS nvarchar(20)) COLLATE Latin1_General_CI_AS",
        ),
        (SqlServerType("varbinary", length=16), "CAST(CONVERT(varbinary(16), ?, 2) AS varbinary(16))"),
    ],
    ids=lambda v: getattr(v, "name", None),
)
def test_a_bound_becomes_a_value_of_the_declared_type_and_collation(kind: SqlServerType, value: str) -> None:
    assert bound_value(Column("k", kind)) == value


def test_bounds_are_planned_by_the_server_in_its_own_order() -> None:
    assert bounds_statement(ORDERS, 1000) == (
        "SELECT CONVERT(varchar(60), [id]) FROM (SELECT [id], ROW_NUMBER() OVER (ORDER BY [id]) AS [__number] "
        "FROM [dbo].[orders]) AS numbered WHERE [__number] % 1000 = 0 ORDER BY [__number]"
    )


def test_a_key_type_that_cannot_bound_a_chunk_is_an_error() -> None:
    with pytest.raises(SchemaError, match="cannot bound a chunk"):
        bound_expression(Column("v", SqlServerType("sql_variant")))


def test_a_chunk_of_some_keys_has_exactly_their_rows():
    keys = (Column("a", SqlServerType("int")), Column("b", SqlServerType("int")))
    sql, parameters = predicate(Chunk(0, keys=(("1", "2"), ("3", None))), keys)
    assert sql == "(([a] = CAST(? AS int) AND [b] = CAST(? AS int)) OR ([a] = CAST(? AS int) AND [b] IS NULL))"
    assert parameters == ["1", "2", "3"]
    assert predicate(Chunk(0, keys=()), keys) == ("(1 = 0)", [])
