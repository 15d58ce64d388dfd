"""Rules of partitioned tables: where rows lie, and what SWITCH asks for.

Evidence: Microsoft's documentation of `ALTER TABLE … SWITCH` and its list of messages.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

SHAPE = "(id int NOT NULL, d date NOT NULL, v int, PRIMARY KEY CLUSTERED (id, d))"


@pytest.fixture
def sales(server: Server, sql: Client) -> Client:
    """Partitions: before 2024 | January | February | later."""
    server.catalog = Catalog(server)
    sql(
        "CREATE PARTITION FUNCTION by_month (date) AS RANGE RIGHT FOR VALUES ('2024-01-01', '2024-02-01', '2024-03-01')"
    )
    sql("CREATE PARTITION SCHEME months AS PARTITION by_month ALL TO ([PRIMARY])")
    sql(f"CREATE TABLE sales {SHAPE} ON months (d) CREATE TABLE stage {SHAPE}")
    sql("INSERT sales VALUES (1, '2023-12-31', 1), (3, '2024-02-15', 3), (4, '2024-03-15', 4)")
    return sql


def counts(client: Client) -> list[int]:
    query = "SELECT rows FROM sys.partitions WHERE object_id = OBJECT_ID('sales') ORDER BY partition_number"
    return [rows for (rows,) in client(query).rows]


def test_a_month_comes_and_goes(sales: Client) -> None:
    sales("INSERT stage VALUES (2, '2024-01-15', 2)")
    sales("ALTER TABLE stage ADD CONSTRAINT january CHECK (d >= '2024-01-01' AND d < '2024-02-01')")
    assert sales("ALTER TABLE stage SWITCH TO sales PARTITION 2").errors == []
    assert (counts(sales), sales("SELECT * FROM stage").rows) == ([1, 1, 1, 1], [])
    assert sales("ALTER TABLE sales SWITCH PARTITION 2 TO stage").errors == []
    assert (counts(sales), sales("SELECT id FROM stage").rows) == ([1, 0, 1, 1], [(2,)])
    assert sales("SELECT v FROM sales WHERE id = 2 AND d = '2024-01-15'").rows == []


def test_a_switch_is_taken_back(sales: Client) -> None:
    sales("BEGIN TRAN ALTER TABLE sales SWITCH PARTITION 1 TO stage ROLLBACK")
    assert (counts(sales), sales("SELECT * FROM stage").rows) == ([1, 0, 1, 1], [])
    assert sales("SELECT v FROM sales WHERE id = 1 AND d = '2023-12-31'").rows == [(1,)]


@pytest.mark.parametrize(
    ("before", "statement", "number"),
    [
        ("", "ALTER TABLE sales SWITCH TO stage", 4911),
        ("", "ALTER TABLE sales SWITCH PARTITION 5 TO stage", 4950),
        ("", "ALTER TABLE sales SWITCH PARTITION 1 TO missing", 4902),
        ("", "ALTER TABLE sales SWITCH PARTITION 1 TO sales PARTITION 2", 4955),
        ("INSERT stage VALUES (9, '2020-01-01', 9)", "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4905),
        ("", "ALTER TABLE stage SWITCH TO sales PARTITION 2", 4982),
        ("ALTER TABLE stage ADD CHECK (d >= '2024-01-01')", "ALTER TABLE stage SWITCH TO sales PARTITION 2", 4982),
        ("ALTER TABLE stage ADD CHECK (d BETWEEN '2024-02-01' AND '2024-02-29')",
         "ALTER TABLE stage SWITCH TO sales PARTITION 3", 4904),
        ("ALTER TABLE stage ADD w int", "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4943),
        ("EXEC sp_rename 'stage.v', 'w', 'COLUMN'", "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4942),
        ("ALTER TABLE stage ALTER COLUMN v bigint", "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4944),
        ("ALTER TABLE stage ALTER COLUMN v int NOT NULL", "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4985),
        ("CREATE INDEX i ON stage (v)", "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4947),
        ("DROP TABLE stage CREATE TABLE stage (id int NOT NULL, d date NOT NULL, v int)",
         "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4913),
        ("ALTER TABLE stage ADD CHECK (v > 0)", "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4970),
        ("ALTER TABLE stage ADD CHECK (d < '2023-01-01')", "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4972),
        ("CREATE TABLE child (id int, d date, FOREIGN KEY (id, d) REFERENCES sales (id, d))",
         "ALTER TABLE sales SWITCH PARTITION 1 TO stage", 4967),
        ("", "TRUNCATE TABLE sales WITH (PARTITIONS (1))", 40517),
        ("", "CREATE TABLE x (d datetime2(0)) ON months (d)", 7726),
        ("", "CREATE TABLE x (d date) ON months (e)", 1911),
        ("", "ALTER PARTITION FUNCTION by_month() SPLIT RANGE ('2024-04-01')", 40517),
    ],
)  # fmt: skip
def test_refused(sales: Client, before: str, statement: str, number: int) -> None:
    assert sales(before).errors == []
    assert sales(statement).errors == [number]
    assert counts(sales) == [1, 0, 1, 1]


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE TABLE x (d date NOT NULL PRIMARY KEY CLUSTERED ON months (d))",
        "CREATE TABLE x (d date NOT NULL) CREATE CLUSTERED INDEX c ON x (d) ON months (d)",
        "CREATE TABLE x (d date NOT NULL) ALTER TABLE x ADD CONSTRAINT p PRIMARY KEY CLUSTERED (d) ON months (d)",
    ],
)
def test_the_clustered_index_may_say_it(sales: Client, definition: str) -> None:
    sales(definition)
    found = sales("""SELECT s.name, c.name, COUNT(*) FROM sys.indexes i
JOIN sys.partition_schemes s ON s.data_space_id = i.data_space_id
JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.partition_ordinal = 1
JOIN sys.columns c ON c.object_id = i.object_id AND c.column_id = k.column_id
JOIN sys.partitions p ON p.object_id = i.object_id AND p.index_id = i.index_id
WHERE i.object_id = OBJECT_ID('x') GROUP BY s.name, c.name""")
    assert found.rows == [("months", "d", 4)]
