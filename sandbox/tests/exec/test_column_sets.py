"""Rules of sparse columns and column sets. Evidence: Microsoft's documentation "Use column sets" and its messages."""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client


@pytest.fixture
def sparse(sql: Client) -> Client:
    sql("""CREATE TABLE s (id int PRIMARY KEY, a int SPARSE NULL, b varchar(10) SPARSE, d date SPARSE,
everything xml COLUMN_SET FOR ALL_SPARSE_COLUMNS)""")
    return sql


@pytest.mark.parametrize(
    ("change", "shown", "parts"),
    [
        ("INSERT s (id, a, d) VALUES (1, 5, '2024-01-02')", "<a>5</a><d>2024-01-02</d>", (5, None)),
        ("INSERT s (id) VALUES (1)", None, (None, None)),
        ("INSERT s VALUES (1, '<b>q&amp;r</b>')", "<b>q&amp;r</b>", (None, "q&r")),
        ("INSERT s (id, everything) VALUES (1, '<a>7</a><b>x</b>')", "<a>7</a><b>x</b>", (7, "x")),
        ("INSERT s (id, a, b) VALUES (1, 1, 'x') UPDATE s SET everything = '<a>9</a>'", "<a>9</a>", (9, None)),
        ("INSERT s (id, a, b) VALUES (1, 1, 'x') UPDATE s SET b = 'z'", "<a>1</a><b>z</b>", (1, "z")),
    ],
)
def test_the_set_is_its_columns(sparse: Client, change: str, shown: str | None, parts: tuple) -> None:
    assert sparse(change).errors == []
    assert sparse("SELECT * FROM s").rows == [(1, shown)]
    assert sparse("SELECT a, b FROM s").rows == [parts]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("INSERT s (id, a, everything) VALUES (1, 1, '<b>x</b>')", 360),
        ("UPDATE s SET a = 1, everything = NULL", 360),
        ("CREATE TABLE x (a int SPARSE NOT NULL)", 1731),
        ("CREATE TABLE x (a int SPARSE DEFAULT 1)", 1731),
        ("CREATE TABLE x (a int SPARSE, c varchar(9) COLUMN_SET FOR ALL_SPARSE_COLUMNS)", 1732),
        ("ALTER TABLE s ADD more xml COLUMN_SET FOR ALL_SPARSE_COLUMNS", 1734),
        ("CREATE TABLE x (c xml COLUMN_SET FOR ALL_SPARSE_COLUMNS, d xml COLUMN_SET FOR ALL_SPARSE_COLUMNS)", 1733),
    ],
)
def test_refused(sparse: Client, statement: str, number: int) -> None:
    assert sparse(statement).errors == [number]
