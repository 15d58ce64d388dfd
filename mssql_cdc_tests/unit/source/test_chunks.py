"""Chunk bounds: server-side values, every row in exactly one chunk, NULL included (rule C20)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema import Column, SqlServerType
from mssql_cdc.source.sqlserver.chunks import Piece, bound_expression, bound_value, pieces, predicate
from mssql_cdc.source.values import Chunk
from mssql_cdc_tests.unit.source.raw import INT

KEYS = (Column("a", INT, nullable=False), Column("b", INT, nullable=True))
VALUES = st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2)))


def holds(sql: str, parameters: list[str], row: tuple[int, int | None]) -> bool:
    """Evaluate a predicate like T-SQL: comparisons with NULL are not true."""
    values = iter(parameters)
    python = re.sub(r"CAST\(\? AS int\)", lambda _: next(values), sql)
    python = re.sub(r"\[(\w)\] IS NOT NULL", r"(\1 is not None)", python)
    python = re.sub(r"\[(\w)\] IS NULL", r"(\1 is None)", python)
    python = re.sub(r"\[(\w)\] (<=|=|<|>) (\d+)", r"compare(\1, '\2', \3)", python)
    python = python.replace("AND", "and").replace("OR", "or").replace("1 = 0", "False")
    names: dict[str, Any] = {"a": row[0], "b": row[1], "compare": compare}
    return bool(eval(python or "True", {}, names))  # noqa: S307 - the predicate of this very test


def compare(left: int | None, sign: str, right: int) -> bool:
    return left is not None and {"=": left == right, "<=": left <= right, "<": left < right, ">": left > right}[sign]


def order(row: tuple[int, int | None]) -> tuple[int, int]:
    return row[0], -1 if row[1] is None else row[1]


def texts(bound: tuple[int | None, ...]) -> tuple[str | None, ...]:
    return tuple(None if value is None else str(value) for value in bound)


def matches(chunk: Chunk, row: tuple[int, int | None]) -> int:
    """How many pieces of the chunk hold the row."""
    return sum(holds(piece.sql, list(piece.parameters), row) for piece in pieces(chunk, KEYS))


@given(st.lists(VALUES, max_size=4), VALUES)
def test_every_row_is_in_exactly_one_piece_of_one_chunk(
    bounds: list[tuple[int, int | None]], row: tuple[int, int | None]
) -> None:
    edges = [None, *map(texts, sorted(bounds, key=order)), None]
    chunks = [Chunk(i, edges[i], edges[i + 1]) for i in range(len(edges) - 1)]

    assert sum(matches(chunk, row) for chunk in chunks) == 1
    assert sum(holds(*predicate(chunk, KEYS), row) for chunk in chunks) == 1


@given(VALUES, VALUES)
def test_a_chunk_ends_with_its_upper_bound(bound: tuple[int, int | None], row: tuple[int, int | None]) -> None:
    assert matches(Chunk(0, None, texts(bound)), row) == (order(row) <= order(bound))


@given(VALUES, VALUES)
def test_rows_come_in_key_order_piece_by_piece(low: tuple[int, int | None], high: tuple[int, int | None]) -> None:
    rows = sorted(((a, b) for a in range(3) for b in (None, 0, 1, 2)), key=order)
    found = [row for piece in pieces(Chunk(0, texts(low), texts(high)), KEYS) for row in rows
             if holds(piece.sql, list(piece.parameters), row)]  # fmt: skip

    assert found == [row for row in rows if order(low) < order(row) <= order(high)]


LOWER, UPPER = ("1", "5"), ("7", "2")


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (Chunk(0, None, UPPER), ["[a] < 7", "[a] = 7 AND ([b] <= 2 OR [b] IS NULL)"]),
        (Chunk(0, LOWER, None), ["[a] = 1 AND [b] > 5", "[a] > 1"]),
        (Chunk(0, ("1", "5"), ("1", "9")), ["[a] = 1 AND [b] <= 9 AND [b] > 5"]),
        (
            Chunk(0, LOWER, UPPER),
            [
                "[a] = 1 AND [b] > 5 AND (([a] < 7) OR ([a] = 7 AND ([b] <= 2 OR [b] IS NULL)))",
                "[a] < 7 AND [a] > 1",
                "[a] = 7 AND ([b] <= 2 OR [b] IS NULL) AND [a] > 1",
            ],
        ),
    ],
)
def test_every_piece_of_a_composite_key_is_one_seek(chunk: Chunk, expected: list[str]) -> None:
    """Review, 5.4 and 5.5: a condition with OR alone reads every row of its first and its last leading value."""
    shown = []
    for piece in pieces(chunk, KEYS):
        values = iter(piece.parameters)
        shown.append(re.sub(r"CAST\(\? AS int\)", lambda _, values=values: next(values), piece.sql))

    assert shown == expected


@pytest.mark.parametrize("upper", [("A", "3"), ("A", "9")])
def test_bounds_that_only_the_collation_takes_for_equal_divide_no_row_twice(upper: tuple[str, str]) -> None:
    """`a` and `A` are one value to a case-insensitive server, and two texts here."""
    keys = (Column("a", SqlServerType("nvarchar", length=5), nullable=False), Column("b", INT, nullable=False))
    first, *rest = pieces(Chunk(0, ("a", "1"), upper), keys)

    assert first.sql.count(" OR ") == 1  # It ends with the chunk although its `a` is not the upper bound's.
    assert all(piece.sql.endswith("[a] > " + bound_value(keys[0])) for piece in rest)


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


def test_a_key_type_that_cannot_bound_a_chunk_is_an_error() -> None:
    with pytest.raises(SchemaError, match="cannot bound a chunk"):
        bound_expression(Column("v", SqlServerType("sql_variant")))


def test_a_chunk_of_some_keys_has_exactly_their_rows():
    keys = (Column("a", SqlServerType("int")), Column("b", SqlServerType("int")))
    sql = "(([a] = CAST(? AS int) AND [b] = CAST(? AS int)) OR ([a] = CAST(? AS int) AND [b] IS NULL))"
    assert pieces(Chunk(0, keys=(("1", "2"), ("3", None))), keys) == [Piece(sql, ("1", "2", "3"))]
    assert pieces(Chunk(0, keys=()), keys) == [Piece("(1 = 0)")]
    assert pieces(Chunk(0, upper=("5", "6"), keys=(("1", "2"),)), keys) == [
        Piece(f"({bounds.sql}) AND (([a] = CAST(? AS int) AND [b] = CAST(? AS int)))", (*bounds.parameters, "1", "2"))
        for bounds in pieces(Chunk(0, upper=("5", "6")), keys)
    ]


def test_a_piece_knows_what_its_rows_have_in_common():
    keys = tuple(Column(name, INT, nullable=True) for name in "abc")
    found = pieces(Chunk(0, ("1", "1", "1"), ("1", "3", None)), keys)
    assert [piece.fixed for piece in found] == [("1", "1"), ("1",), ("1", "3")]
    assert [piece.having(keys[len(piece.fixed)], "2").fixed for piece in found] == [
        ("1", "1", "2"),
        ("1", "2"),
        ("1", "3", "2"),
    ]


@given(
    st.lists(st.tuples(*[st.one_of(st.none(), st.integers(0, 2))] * 2), max_size=2),
    st.tuples(*[st.one_of(st.none(), st.integers(0, 2))] * 2),
    st.one_of(st.none(), st.integers(0, 2)),
)
def test_rows_of_a_piece_are_before_a_value_at_it_or_after_it(
    bounds: list[tuple[int | None, int | None]], row: tuple[int, int | None], value: int | None
):
    """And the pieces for the first two say so, in the next column, for any value that a row of the piece has."""
    keys = (Column("a", INT, nullable=True), Column("b", INT, nullable=True))
    edges = [*map(texts, sorted(bounds, key=lambda one: [-1 if part is None else part for part in one])), None, None]
    for piece in pieces(Chunk(0, edges[0], edges[1]), keys):
        if not holds(piece.sql, list(piece.parameters), row):
            continue
        place = len(piece.fixed)
        (own,), (given_,) = texts(row[place : place + 1]), texts((value,))
        having, before = piece.having(keys[place], own), piece.ending_before(keys[place], given_)
        assert holds(having.sql, list(having.parameters), row)
        is_before = value is not None and ((found := row[place]) is None or found < value)
        assert (before is not None and holds(before.sql, list(before.parameters), row)) is is_before
