"""Rules of sp_rename: which item a name stands for, with and without its type."""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client


@pytest.fixture
def table(sql: Client) -> Client:
    sql("CREATE TABLE t (id int NOT NULL PRIMARY KEY, a int) CREATE INDEX i ON t (a)")
    return sql


@pytest.mark.parametrize(
    ("call", "proof"),
    [
        ("sp_rename 't', 'u'", "SELECT id, a FROM u"),
        ("sp_rename 'dbo.t', 'u', 'OBJECT'", "SELECT id, a FROM u"),
        ("sp_rename 't.a', 'b'", "SELECT id, b FROM t"),
        ("sp_rename 'db.dbo.t.a', 'b', 'column'", "SELECT id, b FROM t"),
        ("sp_rename 't.i', 'j'", "SELECT id, a FROM t WITH (INDEX(j))"),
        ("sp_rename '[t].[i]', 'j', 'INDEX'", "SELECT id, a FROM t WITH (INDEX(j))"),
    ],
)
def test_rename_finds_the_item_with_or_without_its_type(table: Client, call: str, proof: str) -> None:
    """[doc] @objtype has a default of NULL."""
    assert table(f"EXEC {call}").errors == []
    assert table(proof).errors == []


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("sp_rename 'nothing', 'u'", 15225),
        ("sp_rename 't.nothing', 'u'", 15225),
        ("sp_rename 't.nothing', 'u', 'COLUMN'", 15248),
        ("sp_rename 't.a', 'u', 'INDEX'", 15248),
        ("sp_rename 't', 'u', 'THING'", 15249),
    ],
)
def test_rename_tells_that_there_is_no_such_item(table: Client, call: str, number: int) -> None:
    assert table(f"EXEC {call}").errors == [number]


def test_rename_without_a_type_refuses_a_name_of_two_items(table: Client) -> None:
    table("CREATE INDEX a ON t (a)")
    assert table("EXEC sp_rename 't.a', 'b'").errors == [15248]
