"""sp_describe_first_result_set, sp_describe_undeclared_parameters, sp_prepexecrpc (Microsoft's documentation)."""

from __future__ import annotations

import pytest

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Answer, Client


@pytest.fixture
def described(sql: Client) -> Client:
    """A session whose server has the catalogue's procedures, and some objects."""
    sql.session.server.catalog = Catalog(sql.session.server)
    sql("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, name nvarchar(20) NULL, price decimal(9, 2) NOT NULL)")
    sql("CREATE TYPE dbo.pairs AS TABLE (id int, name nvarchar(20))")
    sql(
        "CREATE PROCEDURE dbo.p @a bigint, @r dbo.pairs READONLY, @b nvarchar(7) OUTPUT AS "
        "SELECT id, name AS x FROM dbo.t"
    )
    return sql


def first(sql: Client, text: str, *more: str) -> Answer:
    """sp_describe_first_result_set."""
    arguments = "".join(f", {part}" for part in more)
    quoted = text.replace("'", "''")
    return sql(f"EXEC sp_describe_first_result_set N'{quoted}'{arguments}")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT id, name FROM dbo.t", [("id", "int"), ("name", "nvarchar(20)")]),
        ("SELECT COUNT(*), N'x' AS c FROM dbo.t", [(None, "int"), ("c", "nvarchar(1)")]),
        ("DECLARE @a int = 1; IF @a = 2 SELECT name FROM dbo.t ELSE SELECT 1", [("name", "nvarchar(20)")]),
        ("BEGIN TRY SELECT price FROM dbo.t END TRY BEGIN CATCH THROW END CATCH", [("price", "decimal(9,2)")]),
        ("INSERT dbo.t (price) OUTPUT inserted.id VALUES (1)", [("id", "int")]),
        (
            "UPDATE dbo.t SET price = 2 OUTPUT deleted.price, inserted.name",
            [("price", "decimal(9,2)"), ("name", "nvarchar(20)")],
        ),
        ("DELETE dbo.t OUTPUT deleted.id AS gone", [("gone", "int")]),
        ("EXEC dbo.p 1", [("id", "int"), ("x", "nvarchar(20)")]),
        ("SELECT id INTO dbo.other FROM dbo.t", []),
        ("SELECT id INTO dbo.other FROM dbo.t UNION ALL SELECT id FROM dbo.t", []),
        ("UPDATE dbo.t SET price = 1", []),
    ],
)
def test_first_result_set_is_found_without_running(
    described: Client, text: str, columns: list[tuple[str | None, str]]
) -> None:
    assert [(row[2], row[5]) for row in first(described, text).rows] == columns
    assert described("SELECT COUNT(*) FROM dbo.t").rows == [(0,)]


def test_origin_of_columns_is_told_in_browse_mode_only(described: Client) -> None:
    for mode, origin in ((0, (None, None, None)), (1, ("dbo", "t", "name"))):
        rows = first(described, "SELECT name FROM dbo.t", "NULL", str(mode)).rows
        assert [tuple(row[24:27]) for row in rows] == [origin]


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("SELECT * FROM dbo.missing", [208, 11529]),
        ("SELECT FROM", [156, 11501]),
        ("EXEC ('SELECT 1')", [11514, 11529]),
        ("CREATE TABLE #x (a int); SELECT a FROM #x", [11526, 11529]),
    ],
)
def test_what_cannot_be_described_says_why(described: Client, text: str, errors: list[int]) -> None:
    assert first(described, text).errors == errors


def test_parameters_of_the_text_are_known(described: Client) -> None:
    assert [row[5] for row in first(described, "SELECT @a AS a", "N'@a money'").rows] == ["money"]


def test_arguments_of_a_procedure_have_its_parameters_types(described: Client) -> None:
    """How Microsoft's driver learns the name of the table type of a parameter."""
    rows = described("EXEC sp_describe_undeclared_parameters N'EXEC dbo.p @P1, @P2, @b = @P3 OUTPUT'").rows
    assert [(row[1], row[3]) for row in rows] == [("@P1", "bigint"), ("@P2", None), ("@P3", "nvarchar(7)")]
    assert tuple(rows[1][2:3]) + tuple(rows[1][7:11]) == (243, None, "db", "dbo", "pairs")


def test_parameter_that_is_used_twice_is_11508(described: Client) -> None:
    text = "SELECT * FROM dbo.t WHERE id = @P1 OR price = @P1"
    assert described(f"EXEC sp_describe_undeclared_parameters N'{text}'").errors == [11508]


def test_procedure_can_be_prepared_and_called_by_handle(sql: Client) -> None:
    sql("CREATE PROCEDURE dbo.twice @a int, @b int OUTPUT AS SET @b = @a * 2; SELECT @a AS a; RETURN 3")

    def number(value: int | None, *, output: bool = False) -> RpcParameter:
        return RpcParameter("", t.INT, value, output=output)

    name = RpcParameter("", t.nvarchar(20), "dbo.twice")
    answer = sql.rpc("sp_prepexecrpc", number(None, output=True), name, number(4), number(0, output=True))
    assert (answer.rows, answer.outputs) == ([(4,)], [1, 8])
    again = sql.rpc("sp_execute", number(1), number(5), number(0, output=True))
    assert (again.rows, again.outputs) == ([(5,)], [10])
