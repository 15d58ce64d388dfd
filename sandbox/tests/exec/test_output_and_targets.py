"""Rules of OUTPUT where triggers fire, of common tables and views as targets, and of index hints.

Evidence: Microsoft's documentation of `INSERT` and of `OUTPUT`, its list of messages.
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client


@pytest.fixture
def table(sql: Client) -> Client:
    sql("CREATE TABLE t (id int NOT NULL PRIMARY KEY, n int) INSERT t VALUES (1, 10), (2, 20)")
    return sql


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
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT)", 40517),
        ("INSERT t SELECT id + 1, n FROM (DELETE t OUTPUT deleted.*) c", 40517),
        ("SELECT * FROM t UNPIVOT (v FOR k IN (id, n)) u", 40517),
    ],
)
def test_refused(table: Client, statement: str, number: int) -> None:
    assert table(statement).errors == [number]


def test_index_hints_name_indexes_by_name_and_number(table: Client) -> None:
    table("CREATE INDEX by_n ON t (n)")
    for hint in ("INDEX(0)", "INDEX(1)", "INDEX = by_n", "INDEX(by_n, 1), NOLOCK"):
        assert len(table(f"SELECT id FROM t WITH ({hint})").rows) == 2
