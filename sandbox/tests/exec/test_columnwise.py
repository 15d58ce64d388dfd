"""Select lists of large results, which are computed column by column, give what the rows give one by one."""

import pytest

from tests.exec.conftest import Client

LISTS = [
    "id, CAST(name AS varbinary(100)), CAST(CAST(city AS nvarchar(30)) AS varbinary(60))",
    "CAST(small AS smallint), CAST(small AS varchar(3)), small",
    "CAST(note AS nvarchar(max)), CAST(DATALENGTH(CAST(note AS nvarchar(max))) AS bigint)",
    "CONVERT(varchar(27), at, 121), CAST(at AS date), CONVERT(varchar(8), at, 112), CAST(price AS decimal(19, 4))",
    "LEN(name), UPPER(city), NULLIF(city, 'Bern'), CASE WHEN id % 2 = 0 THEN name END, 7, NULL",
    "id + 1, CAST(id AS bigint), N'x', CAST(NULL AS int), name COLLATE Latin1_General_BIN2, CAST(city AS char(8))",
    "(SELECT MAX(o.id) FROM dbo.t AS o WHERE o.id < t.id), CAST(name AS varbinary(9))",
    "CAST(name AS varbinary(5)), CAST(name AS varbinary(5)), TRY_CAST(city AS int), CAST(name AS nvarchar(3))",
]


@pytest.fixture
def filled(sql: Client) -> Client:
    sql(
        "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, name nvarchar(50) NOT NULL, city varchar(30) NULL, "
        "small tinyint NULL, note text NULL, at datetime2(7) NULL, price money NULL)"
    )
    sql("CREATE TABLE dbo.n (i int NOT NULL)")
    sql("INSERT INTO dbo.n VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11)")
    sql(
        "INSERT INTO dbo.t SELECT i, CONCAT(N'Zoë ', i), CASE WHEN i % 3 > 0 THEN 'Genève' END, i, "
        "CASE WHEN i % 4 > 0 THEN CONCAT('n ', i) END, "
        "DATEADD(day, i, CAST('2026-01-01 12:34:56.1234567' AS datetime2)), i * 1.5 "
        "FROM dbo.n"
    )
    return sql


@pytest.mark.parametrize("items", LISTS)
def test_many_rows_have_the_values_of_each_row_alone(filled: Client, items: str) -> None:
    together = filled(f"SELECT {items} FROM dbo.t AS t ORDER BY t.id")
    alone = [filled(f"SELECT {items} FROM dbo.t AS t WHERE t.id = {n}").rows[0] for n in range(12)]
    assert together.errors == []
    assert together.rows == alone


def test_error_is_that_of_the_first_row_that_has_one(filled: Client) -> None:
    filled("CREATE TABLE dbo.bad (id int NOT NULL PRIMARY KEY, a varchar(9) NOT NULL, b varchar(9) NOT NULL)")
    filled("INSERT INTO dbo.bad SELECT i, '1', '1' FROM dbo.n")
    filled("UPDATE dbo.bad SET a = 'x' WHERE id = 9; UPDATE dbo.bad SET b = 'y' WHERE id = 8")
    assert filled("SELECT CAST(a AS int), CAST(b AS date) FROM dbo.bad ORDER BY id").errors == [241]


def test_row_that_cannot_be_converted_is_no_error_where_it_is_not_asked_for(filled: Client) -> None:
    answer = filled("SELECT CASE WHEN ISNUMERIC(city) = 1 THEN CAST(city AS int) END, CAST(id AS bigint) FROM dbo.t")
    assert answer.errors == []
    assert {row[0] for row in answer.rows} == {None}


def test_sequence_counts_in_the_order_of_the_rows(filled: Client) -> None:
    filled("CREATE SEQUENCE dbo.s AS int START WITH 1")
    rows = filled("SELECT CAST(name AS varbinary(9)), NEXT VALUE FOR dbo.s FROM dbo.t").rows
    assert [row[1] for row in rows] == list(range(1, 13))


def test_style_that_does_not_suit_is_an_error_of_rows_only(filled: Client) -> None:
    assert filled("SELECT CONVERT(varchar(9), at, 99), id FROM dbo.t WHERE id < 0").errors == []
    assert filled("SELECT CONVERT(varchar(9), at, 99), id FROM dbo.t").errors == [281]
