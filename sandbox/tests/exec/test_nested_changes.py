"""Rules of INSERT … SELECT … FROM (change with OUTPUT), and of OUTPUT where triggers fire.

Evidence: Microsoft's documentation of `INSERT` (dml_table_source) and of `OUTPUT`, its list of messages.
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client

MERGE = """MERGE t USING (VALUES (1, 11), (3, 30)) s (id, n) ON t.id = s.id
WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)
WHEN NOT MATCHED BY SOURCE THEN DELETE OUTPUT $action, COALESCE(inserted.id, deleted.id), deleted.n"""


@pytest.fixture
def table(sql: Client) -> Client:
    sql("CREATE TABLE t (id int NOT NULL PRIMARY KEY, n int) INSERT t VALUES (1, 10), (2, 20)")
    sql("CREATE TABLE trail (what varchar(10), id int, n int)")
    return sql


@pytest.mark.parametrize(
    ("change", "trail", "left"),
    [
        ("UPDATE t SET n += 1 OUTPUT 'upd', inserted.id, deleted.n WHERE id = 1", [("upd", 1, 10)], {1: 11, 2: 20}),
        ("DELETE t OUTPUT 'del', deleted.id, deleted.n WHERE n > 15", [("del", 2, 20)], {1: 10}),
        ("INSERT t OUTPUT 'ins', inserted.id, inserted.n VALUES (3, 30)", [("ins", 3, 30)], {1: 10, 2: 20, 3: 30}),
        (MERGE, [("DELETE", 2, 20), ("INSERT", 3, None), ("UPDATE", 1, 10)], {1: 11, 3: 30}),
    ],
    ids=["update", "delete", "insert", "merge"],
)
def test_rows_of_a_change_are_inserted(
    table: Client, change: str, trail: list[tuple], left: dict[int, int | None]
) -> None:
    answer = table(f"INSERT INTO trail SELECT what, id, n FROM ({change}) AS c (what, id, n)")
    assert answer.counts == [len(trail)]
    assert table("SELECT * FROM trail ORDER BY what").rows == trail
    assert dict(table("SELECT * FROM t").rows) == left


def test_where_filters_the_rows_but_not_the_change(table: Client) -> None:
    table(f"INSERT trail (what, id) SELECT what, id FROM ({MERGE}) AS c (what, id, n) WHERE what = 'UPDATE'")
    assert table("SELECT what, id FROM trail").rows == [("UPDATE", 1)]
    assert dict(table("SELECT * FROM t").rows) == {1: 11, 3: 30}


def test_change_and_insert_are_one_statement(table: Client) -> None:
    table("ALTER TABLE trail ADD CONSTRAINT positive CHECK (n > 15)")
    answer = table("INSERT trail SELECT 'x', id, n FROM (DELETE t OUTPUT deleted.*) c")
    assert answer.errors == [547]
    assert dict(table("SELECT * FROM t").rows) == {1: 10, 2: 20}


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("INSERT trail SELECT 'x', id, n FROM (DELETE t) c", 10716),
        ("INSERT trail SELECT 'x', 1, COUNT(*) FROM (DELETE t OUTPUT deleted.id) c GROUP BY id", 10717),
        ("SELECT * FROM (DELETE t OUTPUT deleted.*) c", 10727),
        ("INSERT t (id) SELECT c.id FROM trail x JOIN (DELETE t OUTPUT deleted.*) c ON 1 = 1", 10727),
    ],
)
def test_refused(table: Client, statement: str, number: int) -> None:
    assert table(statement).errors == [number]


def test_the_table_of_the_insert_has_no_triggers_and_foreign_keys(table: Client) -> None:
    insert = "INSERT trail SELECT 'x', id, n FROM (DELETE t OUTPUT deleted.* WHERE id = 1) c"
    table("CREATE TRIGGER noticed ON trail AFTER INSERT AS SELECT 1")
    assert table(insert).errors == [355]
    table("DISABLE TRIGGER noticed ON trail")
    table("ALTER TABLE trail ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES t (id)")
    assert table(insert).errors == [356]
    table("ALTER TABLE trail DROP CONSTRAINT f")
    assert table(insert).errors == []


@pytest.mark.parametrize(
    ("event", "statement"),
    [
        ("INSERT", "INSERT t OUTPUT inserted.id VALUES (9, 9)"),
        ("UPDATE", "UPDATE t SET n = 0 OUTPUT inserted.id"),
        ("DELETE", "DELETE t OUTPUT deleted.id"),
    ],
)
def test_output_to_the_client_does_not_go_with_a_trigger_of_the_same_action(
    table: Client, event: str, statement: str
) -> None:
    other = "DELETE" if event == "INSERT" else "INSERT"
    table(f"CREATE TRIGGER noticed ON t AFTER {event} AS PRINT 'x'")
    assert table(statement).errors == [334]
    table(f"ALTER TRIGGER noticed ON t AFTER {other} AS PRINT 'x'")
    assert table(statement).errors == []


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("WITH c AS (SELECT id, n FROM t) INSERT c (id, n) VALUES (3, 30)", {1: 10, 2: 20, 3: 30}),
        ("WITH c AS (SELECT id, n FROM t) INSERT c SELECT id + 5, n FROM c", {1: 10, 2: 20, 6: 10, 7: 20}),
        (("WITH c AS (SELECT id, n FROM t WHERE id > 1) MERGE c USING (VALUES (1, 5)) s (id, n) ON c.id = s.id "
         "WHEN NOT MATCHED BY SOURCE THEN DELETE;"), {1: 10}),
        (("MERGE v USING (VALUES (1, 5), (3, 7)) s (id, n) ON v.k = s.id WHEN MATCHED THEN UPDATE SET v = s.n "
         "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.id, s.n);"), {1: 5, 2: 20, 3: 7}),
        (("MERGE TOP (1) t USING (VALUES (1, 5), (2, 7)) s (id, n) ON t.id = s.id "
         "WHEN MATCHED THEN UPDATE SET n = s.n;"), {1: 5, 2: 20}),
    ],
    ids=["insert", "insert select", "merge", "merge into view", "merge top"],
)  # fmt: skip
def test_common_tables_and_views_are_targets(table: Client, statement: str, left: dict[int, int | None]) -> None:
    table("CREATE VIEW v AS SELECT id AS k, n AS v FROM t")
    assert table(statement).errors == []
    assert dict(table("SELECT * FROM t").rows) == left


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("SELECT * FROM t WITH (INDEX(nope))", 308),
        ("SELECT * FROM t WITH (INDEX = nope)", 308),
        ("SELECT * FROM t WITH (FORCESEEK (nope (id)))", 308),
        ("SELECT * FROM t WITH (INDEX(7))", 307),
        ("UPDATE t WITH (INDEX(nope)) SET n = 1", 308),
        ("SELECT * FROM t TABLESAMPLE (101 PERCENT)", 476),
        ("SELECT * FROM t TABLESAMPLE (2.5 ROWS)", 477),
        ("DECLARE @n int = 5 SELECT * FROM t TABLESAMPLE (@n ROWS)", 497),
        ("SELECT * FROM sys.objects TABLESAMPLE (5 ROWS)", 494),
    ],
)
def test_hints_and_samples_refused(table: Client, statement: str, number: int) -> None:
    assert table(statement).errors == [number]


def test_index_hints_name_indexes_by_name_and_number(table: Client) -> None:
    table("CREATE INDEX by_n ON t (n)")
    for hint in ("INDEX(0)", "INDEX(1)", "INDEX = by_n", "INDEX(by_n, 1), NOLOCK"):
        assert len(table(f"SELECT id FROM t WITH ({hint})").rows) == 2


def test_samples_are_of_pages_and_repeat_with_a_seed(sql: Client) -> None:
    sql("CREATE TABLE wide (id int IDENTITY, filler char(4000) DEFAULT 'x') INSERT wide DEFAULT VALUES")
    sql("WHILE (SELECT COUNT(*) FROM wide) < 256 INSERT wide (filler) SELECT filler FROM wide")
    assert len(sql("SELECT id FROM wide TABLESAMPLE (100 PERCENT)").rows) == 256
    assert sql("SELECT id FROM wide TABLESAMPLE (0 ROWS)").rows == []
    first, again = (sql("SELECT id FROM wide TABLESAMPLE SYSTEM (30 PERCENT) REPEATABLE (7)").rows for _ in range(2))
    assert first == again
    assert 0 < len(first) < 256
