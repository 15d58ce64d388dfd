"""Catalogue procedures as drivers call them."""

from __future__ import annotations

import pytest

from tests.cdc.client import World

SCHEMA = """
CREATE TABLE dbo.parent (a int NOT NULL, b nvarchar(10) NOT NULL, CONSTRAINT PK_parent PRIMARY KEY (b, a));
CREATE TABLE dbo.child (id bigint IDENTITY PRIMARY KEY, a int, b nvarchar(10),
    price decimal(10,2) DEFAULT ((1.5)), CONSTRAINT FK_child FOREIGN KEY (b, a) REFERENCES dbo.parent (b, a));
CREATE TABLE dbo.a_b (id int);
CREATE TABLE dbo.axb (id int);
CREATE INDEX ix ON dbo.child (a);
"""


@pytest.fixture
def filled(world: World) -> World:
    world.execute(SCHEMA)
    return world


def test_sp_tables_of_a_pattern_with_escape(filled: World) -> None:
    """[wire] LIKE patterns with bracket escapes; types as a quoted list."""
    assert [row[2] for row in filled.rows("EXEC sp_tables 'a[_]b', NULL, 'testdb', '''TABLE'''")] == ["a_b"]
    assert [row[2] for row in filled.rows("EXEC sp_tables 'a_b', 'dbo', NULL, '''TABLE'',''VIEW'''")] == ["a_b", "axb"]


def test_sp_tables_of_another_database_is_15250(filled: World) -> None:
    assert filled.error("EXEC sp_tables '%', NULL, 'master'").number == 15250


def test_sp_columns_100_has_29_columns(filled: World) -> None:
    """[wire] the order in which JDBC inserts them into its table variable."""
    answer = filled.execute("EXEC sp_columns_100 'child', 'dbo', 'testdb', '%', 2, 3")
    assert len(answer.names[0]) == 29
    rows = answer.sets[0]
    assert [row[3] for row in rows] == ["id", "a", "b", "price"]
    assert rows[0][5] == "bigint identity"
    assert rows[3][12] == "((1.5))"
    assert [row[16] for row in rows] == [1, 2, 3, 4]


def test_sp_columns_goes_through_jdbc_s_table_variable(filled: World) -> None:
    """[wire] INSERT INTO @t EXEC with the driver's column types."""
    filled.execute(
        "DECLARE @t TABLE(TABLE_QUALIFIER SYSNAME, TABLE_OWNER SYSNAME,TABLE_NAME SYSNAME, KEYNAME SYSNAME, "
        "KEY_SEQ SMALLINT, PK_NAME SYSNAME);INSERT INTO @t EXEC sp_pkeys 'parent','dbo','testdb';"
        "SELECT KEYNAME FROM @t ORDER BY KEY_SEQ"
    )


def test_sp_pkeys_follows_the_key_order(filled: World) -> None:
    rows = filled.rows("EXEC sp_pkeys 'parent', 'dbo', 'testdb'")
    assert [(row[3], row[4], row[5]) for row in rows] == [("b", 1, "PK_parent"), ("a", 2, "PK_parent")]


def test_sp_statistics_100_unique_only(filled: World) -> None:
    """[wire] a statistics row first, then index columns."""
    rows = filled.rows("EXEC sp_statistics_100 'child','dbo','testdb','%','Y','Q'")
    assert rows[0][6] == 0
    assert [(row[3], row[7], row[8]) for row in rows[1:]] == [(0, 1, "id")]


def test_sp_statistics_lists_unnamed_unique_keys_by_their_made_up_names(world: World) -> None:
    """Those names begin with a hash of the columns.

    Debezium takes the first unique index of a table without a primary key as its key, and its own
    TablesWithoutPrimaryKeyIT says which of two it is.
    """
    world.execute("CREATE TABLE dbo.t2 (val int UNIQUE, pk int UNIQUE)")
    rows = world.rows("EXEC sp_statistics @table_name = N't2', @is_unique = 'Y'")
    assert [row[8] for row in rows[1:]] == ["pk", "val"]


def test_sp_fkeys_names_both_sides(filled: World) -> None:
    rows = filled.rows("EXEC sp_fkeys @fktable_name = 'child'")
    assert [(row[2], row[3], row[6], row[7], row[8], row[11], row[12]) for row in rows] == [
        ("parent", "b", "child", "b", 1, "FK_child", "PK_parent"),
        ("parent", "a", "child", "a", 2, "FK_child", "PK_parent"),
    ]


def test_sp_datatype_info_100_without_exec(filled: World) -> None:
    """[exp] FreeTDS sends the bare name as a batch."""
    assert [row[0] for row in filled.rows("sp_datatype_info_100 12, 3")] == ["varchar"]


def test_describe_first_result_set_knows_types(filled: World) -> None:
    rows = filled.rows("EXEC sp_describe_first_result_set N'SELECT a, b AS x, price FROM dbo.child'")
    assert [(row[1], row[2], row[5]) for row in rows] == [
        (1, "a", "int"),
        (2, "x", "nvarchar(10)"),
        (3, "price", "decimal(10,2)"),
    ]


UNDECLARED = {
    "insert": ("INSERT INTO dbo.child (a, b) VALUES (@P1, @P2)", ["int", "nvarchar(10)"]),
    "insert without columns": ("INSERT dbo.child VALUES (@P1, @P2, @P3)", ["int", "nvarchar(10)", "decimal(10,2)"]),
    "update": ("UPDATE dbo.child SET price = @P1 WHERE id = @P2", ["decimal(10,2)", "bigint"]),
    "select": ("SELECT * FROM dbo.child WHERE a BETWEEN @P1 AND @P2", ["int", "int"]),
    "unknown": ("SELECT @P1", ["nvarchar(4000)"]),
}


@pytest.mark.parametrize(("text", "expected"), UNDECLARED.values(), ids=UNDECLARED)
def test_describe_undeclared_parameters_takes_the_columns_types(filled: World, text: str, expected: list[str]) -> None:
    """[exp] otherwise drivers send text for everything."""
    rows = filled.rows(f"EXEC sp_describe_undeclared_parameters N'{text}'")
    assert [row[3] for row in rows] == expected
    assert [row[1] for row in rows] == [f"@P{number}" for number in range(1, len(expected) + 1)]


def test_missing_argument_is_201(filled: World) -> None:
    failure = filled.error("EXEC sp_pkeys")
    assert failure.number == 201
    assert "@table_name" in failure.text
