"""Rules of statements: changes, control of flow, errors and what they end."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from tests.exec.conftest import Client

# ---- changes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", ["decimal(9, 0)", "numeric(20, 0)"])
def test_identity_of_a_decimal_column_is_a_decimal(sql: Client, type_: str) -> None:
    sql(f"CREATE TABLE dbo.counted (n {type_} IDENTITY(7, 3) PRIMARY KEY, v int); INSERT dbo.counted VALUES (1), (2)")
    (found,) = zip(*sql("SELECT n FROM dbo.counted ORDER BY n").rows, strict=True)
    assert found == (Decimal(7), Decimal(10))
    assert {type(value) for value in found} == {Decimal}, "other types than the column's break the encoders"


def test_insert_fills_defaults_and_identity(sql: Client) -> None:
    sql("CREATE TABLE i (id int IDENTITY(5,5) PRIMARY KEY, a varchar(5) DEFAULT 'x')")
    assert sql("INSERT i DEFAULT VALUES INSERT i (a) VALUES ('y') SELECT id, a, SCOPE_IDENTITY() FROM i").rows == [
        (5, "x", Decimal(10)),
        (10, "y", Decimal(10)),
    ]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("INSERT t (id) VALUES (1)", 2627),
        ("INSERT t (name) VALUES ('x')", 515),
        ("INSERT t VALUES (9, N'this name is far too long', 1)", 2628),
        ("INSERT t (id, id) VALUES (9, 9)", 264),
        ("INSERT t (id) VALUES (9, 9)", 110),
        ("UPDATE t SET nope = 1", 207),
    ],
)
def test_change_that_breaks_a_rule_changes_nothing(table: Client, statement: str, number: int) -> None:
    assert table(statement).errors == [number]
    assert table("SELECT COUNT(*) FROM t").rows == [(3,)]


def test_output_shows_both_images(table: Client) -> None:
    answer = table("UPDATE t SET n = n + 1 OUTPUT deleted.n, inserted.n WHERE id = 1")
    assert answer.rows == [(10, 11)]
    assert answer.counts == [1]


def test_update_from_follows_the_alias(table: Client) -> None:
    table("UPDATE x SET n = y.n FROM t AS x JOIN t AS y ON y.id = x.id + 1 WHERE x.id = 1")
    assert table("SELECT n FROM t WHERE id = 1").rows == [(20,)]


def test_merge_does_all_three(table: Client) -> None:
    answer = table(
        "MERGE t USING (VALUES (1, 100), (7, 700)) AS s (id, n) ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n) WHEN NOT MATCHED BY SOURCE THEN DELETE;"
    )
    assert answer.counts == [4]
    assert table("SELECT id, n FROM t ORDER BY id").rows == [(1, 100), (7, 700)]


def test_trigger_sees_the_rows_and_its_error_undoes_the_statement(table: Client) -> None:
    table("CREATE TRIGGER tr ON t AFTER INSERT AS IF EXISTS (SELECT 1 FROM inserted WHERE n < 0) THROW 50001, 'no', 1")
    assert table("INSERT t (id, n) VALUES (4, 1)").errors == []
    assert table("INSERT t (id, n) VALUES (5, -1)").errors == [50001]
    assert table("SELECT id FROM t WHERE id > 3").rows == [(4,)]


@pytest.mark.parametrize(
    ("body", "errors", "stays"),
    [
        ("RAISERROR('only said', 16, 1)", [50000], True),
        ("RAISERROR('no', 16, 1) ROLLBACK", [50000, 3609], False),
        ("THROW 50001, 'no', 1", [50001], False),
        ("BEGIN TRY RAISERROR('caught', 16, 1) END TRY BEGIN CATCH PRINT 'x' END CATCH", [], True),
    ],
)
def test_raiserror_in_a_trigger_only_tells(
    table: Client,
    body: str,
    errors: list[int],
    stays: bool,  # noqa: FBT001
) -> None:
    table(f"CREATE TRIGGER tr ON t AFTER INSERT AS {body}")
    assert table("INSERT t (id) VALUES (9)").errors == errors
    assert bool(table("SELECT id FROM t WHERE id = 9").rows) is stays


def test_a_transaction_that_ends_in_a_trigger_ends_the_batch(table: Client) -> None:
    """3609 says so itself: The transaction ended in the trigger. The batch has been aborted."""
    table("CREATE TRIGGER tr ON t AFTER INSERT AS ROLLBACK")
    answer = table("BEGIN TRAN; INSERT t (id) VALUES (9); SELECT 'not reached'")
    assert (answer.errors, answer.sets) == ([3609], [])
    assert table("SELECT @@TRANCOUNT").rows == [(0,)]


def test_insert_execute_takes_a_procedures_rows(table: Client) -> None:
    table("CREATE PROCEDURE p @x int AS SELECT @x, N'from p', @x * 2")
    table("INSERT t EXEC p 9")
    assert table("SELECT id, name, n FROM t WHERE id = 9").rows == [(9, "from p", 18)]


def test_compiled_statement_follows_a_changed_table(table: Client) -> None:
    assert table("SELECT * FROM t WHERE id = 1").rows == [(1, "one", 10)]
    table("ALTER TABLE t ADD extra int NOT NULL DEFAULT 3")
    assert table("SELECT * FROM t WHERE id = 1").rows == [(1, "one", 10, 3)]
    table("ALTER TABLE t DROP COLUMN n")
    assert table("SELECT * FROM t WHERE id = 1").rows == [(1, "one", 3)]


# ---- control of flow and errors -----------------------------------------------------------------------------------


def test_loops_variables_and_cursors(table: Client) -> None:
    script = """
    DECLARE @s nvarchar(100) = N'', @id int
    DECLARE c CURSOR LOCAL FAST_FORWARD FOR SELECT id FROM t ORDER BY id DESC
    OPEN c FETCH NEXT FROM c INTO @id
    WHILE @@FETCH_STATUS = 0 BEGIN SET @s += CAST(@id AS nvarchar(5)) FETCH NEXT FROM c INTO @id END
    CLOSE c DEALLOCATE c SELECT @s
    """
    assert table(script).rows == [("321",)]


def test_statement_error_lets_the_batch_go_on(table: Client) -> None:
    answer = table("SELECT 1/0 SELECT @@ERROR")
    assert answer.errors == [8134]
    assert answer.sets[-1] == [(8134,)]


def test_conversion_error_ends_the_batch_and_the_transaction(table: Client) -> None:
    answer = table("BEGIN TRAN UPDATE t SET n = 0 SELECT CAST('x' AS int) SELECT 1")
    assert answer.errors == [245]
    assert answer.changes == ["begin", "rollback"]
    assert table("SELECT SUM(n) FROM t").rows == [(30,)]


def test_unknown_table_ends_the_batch_but_not_the_transaction(table: Client) -> None:
    answer = table("BEGIN TRAN SELECT * FROM missing SELECT 1")
    assert (answer.errors, answer.sets) == ([208], [])
    assert table("SELECT @@TRANCOUNT").rows == [(1,)]


def test_catch_sees_the_error_and_throw_passes_it_on(table: Client) -> None:
    answer = table(
        "BEGIN TRY\nINSERT t (id) VALUES (1)\nEND TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_LINE(); THROW END CATCH"
    )
    assert answer.rows == [(2627, 2)]
    assert answer.errors == [2627]


def test_missing_table_is_caught_only_by_a_caller(sql: Client) -> None:
    caught = "BEGIN CATCH SELECT ERROR_NUMBER() END CATCH"
    assert sql(f"BEGIN TRY EXEC('SELECT * FROM nope') END TRY {caught}").rows == [(208,)]
    assert sql(f"BEGIN TRY SELECT * FROM nope END TRY {caught}").errors == [208]


def test_xact_abort_rolls_back_on_any_error(table: Client) -> None:
    table("SET XACT_ABORT ON BEGIN TRAN DELETE t INSERT t (id) VALUES (NULL) COMMIT")
    assert table("SELECT COUNT(*), @@TRANCOUNT FROM t").rows == [(3, 0)]


def test_procedure_returns_status_and_output(sql: Client) -> None:
    sql("CREATE PROCEDURE p @a int, @b int = 2 OUTPUT AS SET @b = @a * @b RETURN 7")
    assert sql("DECLARE @r int, @o int = 3 EXEC @r = p 5, @b = @o OUTPUT SELECT @r, @o").rows == [(7, 15)]


# ---- what is refused, what only describes, what everybody sees ----------------------------------------------------


@pytest.mark.parametrize(
    ("value", "column", "number"),
    [
        ("'abc'", "varbinary(10)", 257),
        ("CAST('2024-01-01' AS datetime)", "int", 257),
        ("CAST('2024-01-01' AS date)", "int", 206),
        ("5", "uniqueidentifier", 206),
    ],
)
def test_what_only_cast_may_convert_is_not_stored(sql: Client, value: str, column: str, number: int) -> None:
    sql(f"CREATE TABLE t (a {column})")
    assert sql(f"INSERT t VALUES ({value})").errors == [number]
    assert sql(f"INSERT t VALUES ({value}), ({value})").errors == [number]
    assert sql(f"DECLARE @a {column}; SET @a = {value}").errors == [number]


def test_fmtonly_gives_columns_and_does_nothing(sql: Client) -> None:
    sql("CREATE TABLE t (a int)")
    answer = sql("SET FMTONLY ON; INSERT t VALUES (1); SELECT a FROM t; SET FMTONLY OFF")
    assert answer.sets == [[]]
    assert sql("SELECT a FROM t").rows == []


@pytest.mark.parametrize("statement", ["SET DATEFORMAT dmy", "SET LANGUAGE German"])
def test_other_cultures_are_refused(sql: Client, statement: str) -> None:
    assert len(sql(statement).errors) == 1


def test_shared_temporary_tables_live_as_long_as_their_session(connect: Callable[[], Client]) -> None:
    maker, other = connect(), connect()
    maker("CREATE TABLE ##t (a int); INSERT ##t VALUES (1)")
    assert other("SELECT a FROM tempdb..##t").rows == [(1,)]
    maker.session.close()
    assert other("SELECT a FROM ##t").errors == [208]
