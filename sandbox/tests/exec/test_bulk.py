"""INSERT BULK and its rows: what the options of Microsoft's BULK INSERT mean, and what is refused."""

from __future__ import annotations

import asyncio

import pytest

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import BulkData, Message
from tests.exec.conftest import Answer, Client

TABLE = """
CREATE TABLE dbo.b (
    id int IDENTITY(10, 10) NOT NULL CONSTRAINT pk_b PRIMARY KEY, name nvarchar(5) NULL DEFAULT N'none',
    size int NULL CONSTRAINT ck_b CHECK (size > 0), twice AS (size * 2)
)
"""


def load(sql: Client, *rows: tuple, columns: tuple[t.SqlType, ...] = (t.nvarchar(5), t.INT)) -> Answer:
    """The message with the rows."""
    data = BulkData(tuple(f"c{n}" for n in range(len(columns))), columns, list(rows))

    async def run() -> Answer:
        return Answer([event async for event in sql.session.bulk_load(data)])

    return asyncio.run(run())


def announced(sql: Client, options: str = "", columns: str = "name nvarchar(5), size int") -> None:
    """INSERT BULK."""
    if sql("SELECT 1 FROM dbo.b").errors:
        sql(TABLE)
    assert sql(f"INSERT BULK dbo.b ({columns}) {options}").errors == []


def stored(sql: Client) -> list[tuple]:
    return sql("SELECT id, name, size, twice FROM dbo.b ORDER BY id").rows


def test_rows_are_stored_with_identities_defaults_and_computed_columns(sql: Client) -> None:
    announced(sql)
    assert load(sql, ("a", 1), (None, 2)).counts == [2]
    assert stored(sql) == [(10, "a", 1, 2), (20, "none", 2, 4)]


def test_nulls_are_kept_when_asked(sql: Client) -> None:
    announced(sql, "WITH (KEEP_NULLS, TABLOCK)")
    load(sql, (None, 2))
    assert stored(sql) == [(10, None, 2, 4)]


def test_identity_values_are_kept_when_the_column_is_listed(sql: Client) -> None:
    announced(sql, columns="id int, name nvarchar(5)")
    load(sql, (500, "x"), columns=(t.INT, t.nvarchar(5)))
    sql("INSERT dbo.b (name) VALUES (N'next')")
    assert [row[0] for row in stored(sql)] == [500, 510]


def test_checks_hold_only_when_asked_and_are_not_trusted_otherwise(sql: Client) -> None:
    announced(sql, "WITH (CHECK_CONSTRAINTS)")
    assert load(sql, ("a", -1)).errors == [547]
    announced(sql)
    assert load(sql, ("a", -1)).errors == []
    table = sql.session.current_database.table("dbo", "b")
    assert table is not None
    (check,) = table.checks
    assert (check.enabled, check.trusted) == (True, False)


def test_triggers_fire_only_when_asked(sql: Client) -> None:
    announced(sql)
    sql("CREATE TABLE dbo.seen (n int)")
    sql("CREATE TRIGGER dbo.watch ON dbo.b AFTER INSERT AS INSERT dbo.seen SELECT COUNT(*) FROM inserted")
    load(sql, ("a", 1))
    announced(sql, "WITH (FIRE_TRIGGERS)")
    load(sql, ("b", 1), ("c", 1))
    assert sql("SELECT n FROM dbo.seen").rows == [(2,)]


@pytest.mark.parametrize(
    ("rows", "number"),
    [([("too long", 1)], 2628), ([("a", 1), ("b", "x")], None)],
)
def test_one_wrong_row_stores_none(sql: Client, rows: list[tuple], number: int | None) -> None:
    announced(sql)
    columns = (t.nvarchar(20), t.INT if number else t.nvarchar(5))
    assert load(sql, ("fine", 1), *rows, columns=columns).errors == [number or 4816]
    assert stored(sql) == []


def test_keys_always_hold(sql: Client) -> None:
    announced(sql, columns="id int, name nvarchar(5)")
    assert load(sql, (1, "x"), (1, "y"), columns=(t.INT, t.nvarchar(5))).errors == [2627]


def test_rolled_back_load_leaves_nothing(sql: Client) -> None:
    announced(sql)
    sql("BEGIN TRANSACTION")
    announced(sql)
    load(sql, ("a", -1))
    sql("ROLLBACK")
    table = sql.session.current_database.table("dbo", "b")
    assert table is not None
    (check,) = table.checks
    assert (stored(sql), check.trusted) == ([], True)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("INSERT BULK dbo.missing (a int)", 208),
        ("INSERT BULK dbo.b (absent int)", 207),
        ("INSERT BULK dbo.b (twice int)", 271),
        ("INSERT BULK dbo.b (size int) WITH (UNKNOWN_OPTION)", 102),
        ("INSERT BULK dbo.b (size nothing)", 2715),
    ],
)
def test_announcement_is_checked_before_rows_are_sent(sql: Client, text: str, number: int) -> None:
    sql(TABLE)
    assert sql(text).errors == [number]


def test_rows_without_an_announcement_end_the_connection(sql: Client) -> None:
    answer = load(sql, ("a", 1))
    assert [(event.number, event.severity) for event in answer.events if isinstance(event, Message)] == [(4002, 20)]


def test_announcement_is_good_for_one_message(sql: Client) -> None:
    announced(sql)
    load(sql, ("a", 1))
    assert load(sql, ("b", 1)).errors == [4002]
