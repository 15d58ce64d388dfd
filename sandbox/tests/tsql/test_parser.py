"""Rules of the parser: what is a statement, what is an error, and where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mssql_sandbox.errors import SqlError
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.parser import parse, parse_expression, parse_parameters
from mssql_sandbox.tsql.render import render

CLIENT_STATEMENTS = [
    "set implicit_transactions off IF @@TRANCOUNT > 0 COMMIT TRAN ",
    "IF @@TRANCOUNT = 0 BEGIN BEGIN TRAN IF @@TRANCOUNT = 2 COMMIT TRAN END SAVE TRAN [dbz_schema_snapshot]",
    "SELECT TOP(0) * FROM [testDB1].[dbo].[orders] WITH (TABLOCKX)",
    "sp_datatype_info_100 12,3",
    "EXEC sp_tables  @P0 ,  @P1 ,  @P2 ,  @P3 ",
    (
        "DECLARE @t TABLE(PRECISION INT,LENGTH INT, X NVARCHAR(max));"
        "INSERT INTO @t EXEC sp_columns_100  @P0 , @P1 ;SELECT 1"
    ),
    "ALTER DATABASE [x] SET SINGLE_USER WITH ROLLBACK IMMEDIATE",
    "ALTER ROLE db_denydatareader ADD MEMBER u",
    "SELECT x FROM t ORDER BY x OFFSET 5 ROWS FETCH NEXT 10 ROWS ONLY OPTION (RECOMPILE, MAXDOP 1)",
    "DECLARE c CURSOR LOCAL FAST_FORWARD FOR SELECT a FROM t OPEN c FETCH NEXT FROM c INTO @a CLOSE c DEALLOCATE c",
    (
        "CREATE TABLE t (id int IDENTITY(1,1) PRIMARY KEY CLUSTERED, timestamp, c AS (id + 1) PERSISTED, "
        "INDEX i (id DESC))"
    ),
    "{call sys.sp_cdc_help_jobs}",
]


@pytest.mark.parametrize("text", CLIENT_STATEMENTS)
def test_parser_reads_what_clients_send(text: str) -> None:
    assert parse(text)


def test_statements_need_no_semicolon() -> None:
    kinds = [type(node) for node in parse("SELECT 1 SELECT 2 UPDATE t SET a = 1 DELETE t PRINT 'x'")]
    assert kinds == [st.SelectStatement, st.SelectStatement, st.Update, st.Delete, st.Print]


def test_select_list_word_before_equals_is_an_alias() -> None:
    (node,) = parse("SELECT total = 1 + 2")
    assert isinstance(node, st.SelectStatement)
    assert isinstance(node.query.body, ast.Select)
    assert node.query.body.items[0].alias == "total"


@pytest.mark.parametrize(
    ("text", "number", "line", "near"),
    [
        ("SELECT FROM t", 156, 1, "FROM"),
        ("SELECT *\nFROM t\nWHERE ,", 102, 3, ","),
        ("SELECT (1", 102, 1, "1"),
        ("SELECT 'abc", 105, 1, "abc"),
        ("SELECT 1 /* open", 113, 1, "*/"),
        ("INSERT t", 102, 1, "t"),
    ],
)
def test_syntax_error_names_number_line_and_place(text: str, number: int, line: int, near: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert (caught.value.number, caught.value.line, caught.value.severity) == (number, line, 15)
    assert near in caught.value.message


def test_a_whole_batch_is_parsed_before_anything_runs() -> None:
    with pytest.raises(SqlError):
        parse("CREATE TABLE t (a int)\nSELEC * FORM t")


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("1", "(1)"),
        ("'abc'", "'abc'"),
        ("getdate()", "getdate()"),
        ("-1", "(-1)"),
        ("NULL", "NULL"),
        ("qty > 0 AND a = b", "[qty]>(0) AND [a]=[b]"),
        ("a + b * 2", "[a]+([b]*(2))"),
        ("CONVERT(varchar(10), a, 121)", "CONVERT([varchar](10),[a],(121))"),
        ("0x0102", "0x0102"),
    ],
)
def test_stored_text_has_the_servers_own_spelling(text: str, stored: str) -> None:
    assert render(parse_expression(text)) == stored


@given(some.text(alphabet="ab']\"x é☃\n", max_size=12))
def test_any_text_survives_quoting(text: str) -> None:
    literal = parse_expression("N'" + text.replace("'", "''") + "'")
    assert isinstance(literal, ast.Literal)
    assert literal.value == text


@given(some.text(alphabet="ab']\"x é.", min_size=1, max_size=12))
def test_any_name_survives_brackets(name: str) -> None:
    reference = parse_expression("[" + name.replace("]", "]]") + "]")
    assert isinstance(reference, ast.ColumnRef)
    assert reference.parts == (name,)


numbers = some.integers(min_value=0, max_value=999)


@given(
    some.recursive(
        numbers.map(lambda n: ast.Literal(n, "int")),
        lambda inner: some.tuples(some.sampled_from("+-*/%"), inner, inner).map(lambda p: ast.Binary(*p)),
        max_leaves=8,
    )
)
def test_rendered_arithmetic_parses_to_the_same_tree(tree: ast.Expression) -> None:
    assert parse_expression(render(tree)) == tree


def test_parameters_keep_names_types_defaults_and_direction() -> None:
    first, second = parse_parameters("@P0 nvarchar(4000), @n int = 5 OUTPUT")
    assert (first.name, first.type.name, first.type.arguments) == ("@P0", ("nvarchar",), (4000,))
    assert second.output
    assert second.default == ast.Literal(5, "int")
