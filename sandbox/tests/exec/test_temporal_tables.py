"""Rules of system-versioned tables, and of columns that the server fills itself.

Evidence: Microsoft's documentation "Temporal tables", "FROM … FOR SYSTEM_TIME" and "rowversion".
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client

TABLE = """CREATE TABLE e (
    id int NOT NULL PRIMARY KEY, v int,
    since datetime2 GENERATED ALWAYS AS ROW START NOT NULL, until datetime2 GENERATED ALWAYS AS ROW END NOT NULL,
    PERIOD FOR SYSTEM_TIME (since, until)
) WITH (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.eh))"""


@pytest.fixture
def temporal(sql: Client) -> Client:
    """A row that was 1 for ten seconds, 2 for ten seconds, and is 3 now."""
    clock = sql.session.server.clock
    clock.freeze()
    sql(TABLE)
    sql("INSERT e (id, v) VALUES (1, 1)")
    for value in (2, 3):
        clock.advance(10)
        sql(f"UPDATE e SET v = {value}")
    return sql


def seen(client: Client, clause: str) -> list[int]:
    moments = (
        "DECLARE @now datetime2 = (SELECT MAX(since) FROM e) DECLARE @before datetime2 = DATEADD(second, -5, @now)"
    )
    moments += " DECLARE @early datetime2 = DATEADD(second, -20, @now)"
    return [v for (v,) in client(f"{moments} SELECT v FROM e FOR SYSTEM_TIME {clause} ORDER BY v").rows]


@pytest.mark.parametrize(
    ("clause", "values"),
    [
        ("ALL", [1, 2, 3]),
        ("AS OF @now", [3]),
        ("AS OF @before", [2]),
        ("AS OF @early", [1]),
        ("FROM @early TO @now", [1, 2]),
        ("BETWEEN @early AND @now", [1, 2, 3]),
        ("CONTAINED IN (@early, @before)", [1]),
        ("CONTAINED IN (@early, @now)", [1, 2]),
        ("AS OF '1999-01-01'", []),
    ],
)
def test_queries_look_at_a_moment_or_a_span(temporal: Client, clause: str, values: list[int]) -> None:
    assert seen(temporal, clause) == values


def test_former_rows_are_in_the_history_table(temporal: Client) -> None:
    assert temporal("SELECT v, DATEDIFF(second, since, until) FROM eh ORDER BY v").rows == [(1, 10), (2, 10)]
    assert temporal("SELECT v, CAST(until AS date) FROM e WHERE until = '9999-12-31 23:59:59.9999999'").errors == []
    temporal("DELETE e")
    assert temporal("SELECT v FROM eh ORDER BY v").rows == [(1,), (2,), (3,)]


def test_rows_changed_twice_in_a_transaction_show_once(temporal: Client) -> None:
    temporal("BEGIN TRAN UPDATE e SET v = 8 UPDATE e SET v = 9 COMMIT")
    assert seen(temporal, "ALL") == [1, 2, 9]
    assert 8 not in seen(temporal, "ALL")


def test_rollback_takes_history_back(temporal: Client) -> None:
    temporal("BEGIN TRAN UPDATE e SET v = 9 ROLLBACK")
    assert temporal("SELECT COUNT(*) FROM eh").rows == [(2,)]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("INSERT e (id, v, since) VALUES (2, 2, '2020-01-01')", 13536),
        ("INSERT e VALUES (2, 2, '2020-01-01', '2021-01-01')", 13536),
        ("UPDATE e SET since = '2020-01-01'", 13537),
        ("TRUNCATE TABLE e", 13545),
        ("DROP TABLE e", 13552),
        ("DROP TABLE eh", 13552),
        ("INSERT eh VALUES (1, 1, '2020-01-01', '2021-01-01')", 13559),
        ("DELETE eh", 13560),
        ("UPDATE eh SET v = 0", 13561),
        ("SELECT * FROM eh FOR SYSTEM_TIME ALL", 13544),
        ("ALTER TABLE e DROP PERIOD FOR SYSTEM_TIME", 13592),
        ("CREATE TABLE x (id int PRIMARY KEY, a datetime2 GENERATED ALWAYS AS ROW START NOT NULL)", 13509),
        ("CREATE TABLE x (id int PRIMARY KEY) WITH (SYSTEM_VERSIONING = ON)", 13510),
        (("CREATE TABLE x (id int, a datetime2 GENERATED ALWAYS AS ROW START NOT NULL, b datetime2 GENERATED ALWAYS AS "
         "ROW END NOT NULL, PERIOD FOR SYSTEM_TIME (a, b)) WITH (SYSTEM_VERSIONING = ON)"), 13553),
        (("CREATE TABLE x (id int PRIMARY KEY, a int GENERATED ALWAYS AS ROW START NOT NULL, b datetime2 GENERATED "
         "ALWAYS AS ROW END NOT NULL, PERIOD FOR SYSTEM_TIME (a, b))"), 13501),
        ("ALTER TABLE e SET (NONSENSE = ON)", 102),
    ],
)  # fmt: skip
def test_what_versioned_tables_refuse(temporal: Client, statement: str, number: int) -> None:
    assert temporal(statement).errors == [number]
    assert seen(temporal, "ALL") == [1, 2, 3]


def test_default_stands_for_the_period_in_an_insert(temporal: Client) -> None:
    assert temporal("INSERT e VALUES (2, 5, DEFAULT, DEFAULT)").errors == []
    assert temporal("SELECT v FROM e WHERE id = 2").rows == [(5,)]


def test_versioning_off_gives_two_ordinary_tables(temporal: Client) -> None:
    temporal("ALTER TABLE e SET (SYSTEM_VERSIONING = OFF)")
    temporal("ALTER TABLE e DROP PERIOD FOR SYSTEM_TIME")
    assert temporal("DELETE eh WHERE v = 1 UPDATE e SET since = until").errors == []
    assert temporal("DROP TABLE e, eh").errors == []


def test_new_columns_appear_in_the_history(temporal: Client) -> None:
    temporal("ALTER TABLE e ADD w int NOT NULL DEFAULT 7")
    temporal.session.server.clock.advance(1)
    temporal("UPDATE e SET w = 8")
    assert temporal("SELECT v, w FROM eh ORDER BY v").rows == [(1, 7), (2, 7), (3, 7)]


def test_a_table_with_rows_becomes_versioned(sql: Client) -> None:
    sql("CREATE TABLE p (id int PRIMARY KEY) INSERT p VALUES (1)")
    sql(
        "ALTER TABLE p ADD a datetime2 GENERATED ALWAYS AS ROW START HIDDEN NOT NULL DEFAULT SYSUTCDATETIME(), "
        "b datetime2 GENERATED ALWAYS AS ROW END HIDDEN NOT NULL DEFAULT '9999-12-31 23:59:59.9999999', "
        "PERIOD FOR SYSTEM_TIME (a, b)"
    )
    sql("ALTER TABLE p SET (SYSTEM_VERSIONING = ON)")
    assert sql("DELETE p").errors == []
    assert sql("INSERT p VALUES (2) SELECT * FROM p").rows == [(2,)]
    assert sql("SELECT COUNT(*) FROM p FOR SYSTEM_TIME ALL").rows == [(2,)]


# ---- rowversion ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "errors"),
    [
        ("INSERT r VALUES (1, DEFAULT, 5)", []),
        ("INSERT r VALUES (1, DEFAULT, 5), (2, DEFAULT, 6)", []),
        ("INSERT r (id, rv) VALUES (1, DEFAULT)", []),
        ("INSERT r (id, n) VALUES (1, 5)", []),
        ("INSERT r VALUES (1, 5)", [213]),
        ("INSERT r VALUES (1, 0x0000000000000001, 5)", [273]),
        ("INSERT r VALUES (1, 0x01, 5), (2, 0x02, 6)", [273]),
        ("INSERT r (id, rv) VALUES (1, 0x01)", [273]),
        ("INSERT r SELECT 1, 0x01, 5", [273]),
    ],
)
def test_rowversion_stands_in_the_implicit_list_and_takes_only_default(
    sql: Client, statement: str, errors: list[int]
) -> None:
    sql("CREATE TABLE r (id int, rv rowversion, n int DEFAULT 3)")
    assert sql(statement).errors == errors
    assert len(sql("SELECT id FROM r WHERE rv IS NOT NULL").rows) == (
        0 if errors else statement.count("(1") + statement.count("(2")
    )
