"""Rules of sparse columns [doc: Use sparse columns]; column sets are refused."""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client


def test_sparse_columns_hold_values_like_others(sql: Client) -> None:
    sql("CREATE TABLE s (id int PRIMARY KEY, a int SPARSE NULL, b varchar(10) SPARSE)")
    assert sql("INSERT s VALUES (1, 5, 'x') SELECT * FROM s").rows == [(1, 5, "x")]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("CREATE TABLE x (a int SPARSE NOT NULL)", 1731),
        ("CREATE TABLE x (a int SPARSE DEFAULT 1)", 1731),
        ("CREATE TABLE x (a int IDENTITY SPARSE)", 1731),
        ("CREATE TABLE x (a int SPARSE, c xml COLUMN_SET FOR ALL_SPARSE_COLUMNS)", 40517),
    ],
)
def test_refused(sql: Client, statement: str, number: int) -> None:
    assert sql(statement).errors == [number]
