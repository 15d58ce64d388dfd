"""Rules of changes through views, common tables and derived tables, and of INSTEAD OF triggers.

Evidence: Microsoft's documentation "CREATE VIEW – updatable views", "WITH common_table_expression", "CREATE TRIGGER".
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client

TABLE = """CREATE TABLE t (id int NOT NULL PRIMARY KEY, g varchar(5), n int)
INSERT t VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 30), (4, 'b', NULL)"""


@pytest.fixture
def table(sql: Client) -> Client:
    sql(TABLE)
    return sql


def rows(client: Client) -> dict[int, int | None]:
    return dict(client("SELECT id, n FROM t").rows)


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("WITH c AS (SELECT TOP 1 * FROM t ORDER BY id DESC) DELETE FROM c", {1: 10, 2: 20, 3: 30}),
        ("WITH c AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY id) r FROM t) DELETE c WHERE r > 1",
         {1: 10, 3: 30}),
        ("WITH c AS (SELECT id, n FROM t WHERE g = 'a') UPDATE c SET n = n + 1", {1: 11, 2: 21, 3: 30, 4: None}),
        ("WITH c (k, v) AS (SELECT id, n FROM t) UPDATE c SET v = k WHERE k = 4", {1: 10, 2: 20, 3: 30, 4: 4}),
        ("WITH c AS (SELECT * FROM t WHERE n > 10), d AS (SELECT * FROM c WHERE g = 'b') DELETE d",
         {1: 10, 2: 20, 4: None}),
        ("UPDATE d SET n = 5 FROM (SELECT id, n FROM t WHERE id = 1) d", {1: 5, 2: 20, 3: 30, 4: None}),
        ("UPDATE c SET n = s.v FROM (SELECT id, n FROM t) c JOIN (VALUES (2, 99)) s (id, v) ON s.id = c.id",
         {1: 10, 2: 99, 3: 30, 4: None}),
        (("WITH c AS (SELECT a.id, a.n, b.n AS other FROM t a JOIN t b ON b.id = a.id + 1) "
         "UPDATE c SET n = other WHERE id = 1"), {1: 20, 2: 20, 3: 30, 4: None}),
        ("UPDATE t SET n = s.v FROM (VALUES (3, 7)) s (id, v) WHERE t.id = s.id", {1: 10, 2: 20, 3: 7, 4: None}),
        ("DELETE TOP (50) PERCENT FROM t", {3: 30, 4: None}),
    ],
)  # fmt: skip
def test_changes_reach_the_base_table(table: Client, statement: str, left: dict[int, int | None]) -> None:
    assert table(statement).errors == []
    assert rows(table) == left


def test_views_are_changed_like_tables(table: Client) -> None:
    table("CREATE VIEW v AS SELECT id AS k, n AS v FROM t")
    table("CREATE VIEW w AS SELECT k, v FROM v WHERE k > 1")
    assert table("UPDATE v SET v = 1 WHERE k = 1 INSERT v (k, v) VALUES (9, 9) DELETE w WHERE k IN (1, 2)").errors == []
    assert rows(table) == {1: 1, 3: 30, 4: None, 9: 9}


@pytest.mark.parametrize(
    ("statement", "errors"),
    [
        ("UPDATE v SET n = 1 WHERE id = 3", [550]),
        ("INSERT v VALUES (9, 1)", [550]),
        ("UPDATE v SET n = 16 WHERE id = 3", []),
        ("INSERT v VALUES (9, 100)", []),
    ],
)
def test_check_option_keeps_rows_within_the_view(table: Client, statement: str, errors: list[int]) -> None:
    table("CREATE VIEW v AS SELECT id, n FROM t WHERE n > 15 WITH CHECK OPTION")
    before = rows(table)
    assert table(statement).errors == errors
    assert (rows(table) == before) is bool(errors)


@pytest.mark.parametrize(
    ("query", "statement", "number"),
    [
        ("SELECT g, SUM(n) s FROM t GROUP BY g", "UPDATE v SET g = 'x'", 4403),
        ("SELECT DISTINCT g FROM t", "DELETE v", 4403),
        ("SELECT id FROM t UNION ALL SELECT id FROM t", "DELETE v", 4416),
        ("SELECT id, n + 1 AS m FROM t", "UPDATE v SET m = 1", 4406),
        ("SELECT a.id, b.n FROM t a JOIN t b ON a.id = b.id", "DELETE v", 4405),
        ("SELECT id FROM t", "UPDATE v SET n = 1", 207),
    ],
)
def test_queries_that_are_no_targets(table: Client, query: str, statement: str, number: int) -> None:
    table(f"CREATE VIEW v AS {query}")
    assert table(statement).errors == [number]


# ---- INSTEAD OF ------------------------------------------------------------------------------------------------


def test_the_trigger_stands_in_for_the_statement(table: Client) -> None:
    table("CREATE TRIGGER tr ON t INSTEAD OF DELETE AS UPDATE t SET n = -1 WHERE id IN (SELECT id FROM deleted)")
    answer = table("DELETE t WHERE id < 3")
    assert (answer.errors, answer.counts[-1]) == ([], 2)
    assert rows(table) == {1: -1, 2: -1, 3: 30, 4: None}


def test_it_sees_old_and_new_rows_and_its_own_changes_are_real(table: Client) -> None:
    table(
        "CREATE TRIGGER tr ON t INSTEAD OF UPDATE AS UPDATE t SET n = i.n + d.n FROM t JOIN inserted i ON i.id = t.id "
        "JOIN deleted d ON d.id = t.id"
    )
    table("UPDATE t SET n = 5 WHERE id = 1")
    assert rows(table)[1] == 15


def test_identity_values_are_not_given_yet(sql: Client) -> None:
    sql("CREATE TABLE i (id int IDENTITY PRIMARY KEY, n int)")
    sql(
        "CREATE TRIGGER tr ON i INSTEAD OF INSERT AS SELECT id, n FROM inserted INSERT i (n) SELECT n * 2 FROM inserted"
    )
    assert sql("INSERT i (n) VALUES (4)").rows == [(0, 4)]
    assert sql("SELECT id, n FROM i").rows == [(1, 8)]


def test_views_of_several_tables_take_changes_through_triggers(table: Client) -> None:
    table("CREATE VIEW v AS SELECT a.id, a.n, b.g FROM t a JOIN t b ON a.id = b.id")
    table("CREATE TRIGGER ins ON v INSTEAD OF INSERT AS INSERT t SELECT id, g, n FROM inserted")
    table("CREATE TRIGGER del ON v INSTEAD OF DELETE AS DELETE t WHERE id IN (SELECT id FROM deleted)")
    table(
        "CREATE TRIGGER upd ON v INSTEAD OF UPDATE AS "
        "UPDATE t SET n = i.n FROM inserted i JOIN deleted d ON i.id = d.id WHERE t.id = i.id AND d.g = 'b'"
    )
    assert table("INSERT v VALUES (50, 5, 'z') DELETE v WHERE id = 1 UPDATE v SET n = 0").errors == []
    assert rows(table) == {2: 20, 3: 0, 4: 0, 50: 5}


def test_inserting_a_procedures_rows_fires_triggers(table: Client) -> None:
    table("CREATE TABLE seen (id int)")
    table("CREATE TRIGGER tr ON t AFTER INSERT AS INSERT seen SELECT id FROM inserted")
    table("INSERT t EXEC('SELECT 7, ''x'', 1')")
    assert table("SELECT id FROM seen").rows == [(7,)]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("CREATE TRIGGER b ON t INSTEAD OF DELETE AS PRINT 'x'", 2111),
        ("CREATE TRIGGER b ON v AFTER DELETE AS PRINT 'x'", 8197),
        ("CREATE TRIGGER b ON nothing AFTER DELETE AS PRINT 'x'", 8197),
        ("MERGE t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE;", 5316),
    ],
)
def test_what_triggers_may_not(table: Client, statement: str, number: int) -> None:
    table("CREATE VIEW v AS SELECT id FROM t")
    table("CREATE TRIGGER a ON t INSTEAD OF DELETE AS PRINT 'x'")
    assert table(statement).errors == [number]


def test_a_dropped_trigger_gives_the_statement_back(table: Client) -> None:
    table("CREATE VIEW v AS SELECT id FROM t")
    table("CREATE TRIGGER tr ON v INSTEAD OF DELETE AS PRINT 'x'")
    statement = "DELETE v WHERE id = 1"
    table(statement)
    assert 1 in rows(table)
    table("DROP TRIGGER tr")
    table(statement)
    assert 1 not in rows(table)


# ---- WHERE CURRENT OF ------------------------------------------------------------------------------------------


def test_the_row_fetched_last_is_changed(table: Client) -> None:
    script = """DECLARE @id int DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id FOR UPDATE OF n
    OPEN c FETCH c INTO @id
    WHILE @@FETCH_STATUS = 0 BEGIN
        IF @id = 2 DELETE t WHERE CURRENT OF c ELSE UPDATE t SET n = @id * 100 WHERE CURRENT OF c
        FETCH c INTO @id
    END
    CLOSE c DEALLOCATE c"""
    assert table(script).errors == []
    assert rows(table) == {1: 100, 3: 300, 4: 400}


@pytest.mark.parametrize(
    ("script", "number"),
    [
        ("DECLARE c CURSOR READ_ONLY FOR SELECT id FROM t OPEN c FETCH c UPDATE t SET n = 0 WHERE CURRENT OF c", 16929),
        ("DECLARE c CURSOR FOR SELECT id FROM t OPEN c UPDATE t SET n = 0 WHERE CURRENT OF c", 16931),
        ("UPDATE t SET n = 0 WHERE CURRENT OF c", 16916),
        ("DECLARE c CURSOR FOR SELECT id FROM t OPEN c FETCH c DELETE t UPDATE t SET n = 0 WHERE CURRENT OF c", 16934),
        ("DECLARE c CURSOR FOR SELECT id FROM u OPEN c FETCH c UPDATE t SET n = 0 WHERE CURRENT OF c", 16933),
    ],
)
def test_what_has_no_current_row(table: Client, script: str, number: int) -> None:
    table("CREATE TABLE u (id int) INSERT u VALUES (1)")
    assert table(script).errors == [number]
