"""Forms of statements that SQLAlchemy's own test suite sends, and what SQL Server makes of them."""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client


@pytest.fixture
def tables(sql: Client) -> Client:
    sql("CREATE TABLE a (id int); CREATE TABLE b (id int, a_id int, t varchar(9)); INSERT a VALUES (1), (2)")
    sql("INSERT b VALUES (10, 1, 'x'), (20, 2, 'y')")
    return sql


def test_select_into_of_a_union_makes_the_table_of_all_rows(tables: Client) -> None:
    tables("SELECT id INTO c FROM a UNION ALL SELECT id FROM b")
    assert tables("SELECT id FROM c ORDER BY id").rows == [(1,), (2,), (10,), (20,)]


def test_only_the_first_select_of_a_union_may_have_into(tables: Client) -> None:
    assert tables("SELECT id FROM a UNION ALL SELECT id INTO c FROM b").errors == [196]


@pytest.mark.parametrize("operator", ["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
def test_operands_of_set_operations_have_no_order_of_their_own(tables: Client, operator: str) -> None:
    query = f"(SELECT TOP 1 id FROM a ORDER BY id) {operator} (SELECT TOP 1 id FROM b ORDER BY id)"
    assert tables(query).errors == [156]


@pytest.mark.parametrize(("expression", "value"), [("5 << 2", 20), ("20 >> 2", 5), ("8 >> -1", 16)])
def test_shift_operators_are_the_shift_functions(sql: Client, expression: str, value: int) -> None:
    assert sql(f"SELECT {expression}").rows == [(value,)]


def test_the_target_of_an_update_is_the_table_without_an_alias(tables: Client) -> None:
    tables("UPDATE b SET t = 'z' FROM b, a, b AS other WHERE a.id = other.a_id AND a.id = 2 AND other.id = b.id")
    assert tables("SELECT id, t FROM b ORDER BY id").rows == [(10, "x"), (20, "z")]


def test_a_target_that_stands_twice_under_aliases_is_ambiguous(tables: Client) -> None:
    assert tables("UPDATE b SET t = 'z' FROM b AS one, b AS other").errors == [8154]


@pytest.mark.parametrize("count", ["31", "32", "-32", "9223372036854775807"])
def test_bits_shifted_out_are_gone(sql: Client, count: str) -> None:
    expected = -(2**31) if count == "31" else 0
    assert sql(f"SELECT LEFT_SHIFT(1, {count})").rows == [(expected,)]
