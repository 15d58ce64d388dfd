"""Statements full of literals: rows read column by column, plans shared by shape. Neither may change what is stored."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.exec.parameterisation import Parameteriser
from mssql_sandbox.exec.session import Session
from tests.exec.conftest import Client

TABLE = (
    "CREATE TABLE {} (id int IDENTITY PRIMARY KEY, n int, s nvarchar(30), v varchar(30), d decimal(12, 3), f float, "
    "b varbinary(10), at datetime2(3), x int DEFAULT 7, y bigint, z money)"
)
COLUMNS = "(n, s, v, d, f, b, at, y, z)"
TEXTS = st.text(st.sampled_from("ab'\"[]@- \u4e2d;\n(),0"), max_size=12)
QUOTED = TEXTS.map(lambda text: "'" + text.replace("'", "''") + "'")
INTS = st.integers(-(2**31), 2**31 - 1).map(str)
DECIMALS = st.decimals(-99999, 99999, places=2).map(str) | INTS.map(lambda digits: digits[:6])


def column(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return values | st.sampled_from(["NULL", "null"])


ROW = st.tuples(
    column(INTS),
    column(QUOTED.map("N{}".format)),
    column(QUOTED),
    column(DECIMALS),
    column(DECIMALS.map(lambda digits: digits + "e1") | INTS),
    column(st.binary(max_size=10).map(lambda data: "0x" + data.hex())),
    column(st.datetimes().map(lambda at: f"'{at.year:04d}-{at:%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}'")),
    column(INTS),
    column(DECIMALS),
)


@pytest.fixture(scope="module")
def client() -> Client:
    server = Server()
    server.add_login("sa", "secret")
    server.create_database("db")
    return Client(Session(server, login="sa", database="db"))


def values(row: tuple[str, ...]) -> str:
    return f"({', '.join(row)})"


def stored(client: Client, inserts: list[str]) -> tuple[list[tuple], list[list[int]]]:
    """Rows that the statements leave in a fresh table, and their errors."""

    async def run() -> tuple[list[tuple], list[list[int]]]:
        await client.batch("DROP TABLE IF EXISTS t")
        await client.batch(TABLE.format("t"))
        errors = [(await client.batch(insert)).errors for insert in inserts]
        return (await client.batch("SELECT n, s, v, d, f, b, at, x, y, z FROM t ORDER BY id")).rows, errors

    return asyncio.run(run())


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, min_size=2, max_size=6))
def test_rows_of_literals_store_what_single_rows_store(client: Client, rows: list[tuple[str, ...]]) -> None:
    together = f"INSERT INTO t {COLUMNS} VALUES " + ",\n ".join(map(values, rows))
    separate = [f"INSERT INTO t {COLUMNS} VALUES /* no shared plan */ {values(row)}" for row in rows]
    assert stored(client, [together])[0] == stored(client, separate)[0]


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=4))
def test_statements_of_one_shape_store_what_each_says(client: Client, rows: list[tuple[str, ...]]) -> None:
    shared = [f"INSERT INTO t {COLUMNS} VALUES {values(row)}" for row in rows]
    assert stored(client, shared) == stored(client, [f"{insert} -- as it is" for insert in shared])


@pytest.mark.parametrize(
    "insert",
    [
        "INSERT t (n) VALUES (1), ('x')",  # one type per column: the text must become a number
        "INSERT t (v) VALUES (1), ('x')",
        "INSERT t (n) VALUES (1), ('2x')",
    ],
)
def test_cells_of_a_column_of_values_become_one_type(client: Client, insert: str) -> None:
    assert stored(client, [insert]) == ([], [[245]])


@pytest.mark.parametrize(
    ("insert", "error"),
    [
        ("INSERT t (v) VALUES ('short'), ('much too long for a column of thirty')", 2628),
        ("INSERT t (n) VALUES (1), (2, 3)", 10709),
        ("INSERT t (n) VALUES (1, 1), (2, 3)", 110),
        ("INSERT t (n, s) VALUES (1), (2)", 109),
        ("INSERT t (n) VALUES (1), (99999999999)", 8115),
    ],
)
def test_an_error_in_one_of_many_rows_stores_none(client: Client, insert: str, error: int) -> None:
    assert stored(client, [insert]) == ([], [[error]])


def test_text_without_n_is_in_the_code_page_of_the_database(client: Client) -> None:
    inserts = [
        "INSERT t (s) VALUES ('\u4e2d')",
        "INSERT t (s) VALUES ('\u4e2d'), ('\u00e9')",
        "INSERT t (s) VALUES (N'\u4e2d')",
    ]
    rows, _ = stored(client, inserts)
    assert [row[1] for row in rows] == ["?", "?", "\u00e9", "\u4e2d"]


def test_rows_of_literals_continue_as_rows_of_expressions(client: Client) -> None:
    rows, _ = stored(client, ["INSERT t (n) VALUES (1), (2), (1 + 2), (4) UNION ALL SELECT 5"])
    assert [row[0] for row in rows] == [1, 2, 3, 4, 5]


def test_arithmetic_of_a_shared_plan_keeps_the_type_of_each_literal(client: Client) -> None:
    inserts = [f"INSERT t (d) VALUES ({start})" for start in ("1", "2.5")]
    updates = [f"UPDATE t SET d = d {change} WHERE d = {start}" for change, start in (("/ 3", "1"), ("/ 3.00", "2.5"))]
    rows, errors = stored(client, inserts + updates)
    assert [row[3] for row in rows] == [Decimal("0.333"), Decimal("0.833")]
    assert not any(errors)


def test_texts_of_one_shape_share_a_key_and_other_texts_have_none() -> None:
    def key(text: str) -> object:
        found = Parameteriser().read(text, quoted_identifier=True)
        return None if found is None else found.key

    assert key("UPDATE t SET a = 5 WHERE id = 7") == key("UPDATE t SET a = 6 WHERE id = 8")
    assert key("UPDATE t SET a = 'x' WHERE id = 7") != key("UPDATE t SET a = 6 WHERE id = 8")
    assert key("UPDATE t SET a = a + 1 WHERE id = 7") != key("UPDATE t SET a = a + 2 WHERE id = 7")
    assert key("DELETE TOP (1) FROM [t 1] WHERE id = 7") != key("DELETE TOP (2) FROM [t 1] WHERE id = 7")
    for text in ("SELECT 1", "DELETE t WHERE id = @p", "DELETE t WHERE id = 1; SELECT 2", "DELETE t -- 1", "DELETE t"):
        assert key(text) is None, text
