"""What the catalogue tells of views, functions and procedures: their columns, parameters, triggers and grants."""

from __future__ import annotations

import pytest

from tests.cdc.client import World
from tests.cdc.rules import Rule, check

SCHEMA = (
    "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a nvarchar(10) NULL, d decimal(9, 2) NOT NULL)",
    "CREATE VIEW dbo.v AS SELECT id, UPPER(a) AS ua, d FROM dbo.t",
    "CREATE FUNCTION dbo.f(@p int, @q varchar(9) = 'x') RETURNS TABLE AS RETURN (SELECT id, a FROM dbo.t)",
    "CREATE FUNCTION dbo.m() RETURNS @r TABLE (x int, y varchar(3) NOT NULL) AS BEGIN RETURN END",
    "CREATE FUNCTION dbo.s(@p int) RETURNS decimal(9, 3) AS BEGIN RETURN 1 END",
    "CREATE PROCEDURE dbo.p @a int, @b datetime2(3) OUTPUT AS SELECT 1",
)
COLUMNS = "SELECT name, column_id, max_length, is_nullable FROM sys.columns WHERE object_id = OBJECT_ID('dbo.{}')"
RULES = {
    "[doc] columns of a view": Rule(SCHEMA, COLUMNS.format("v"), [("id", 1, 4, 0), ("ua", 2, 20, 1), ("d", 3, 5, 0)]),
    "[doc] of an inline function": Rule(SCHEMA, COLUMNS.format("f"), [("id", 1, 4, 0), ("a", 2, 20, 1)]),
    "[doc] of a function with a table of its own": Rule(SCHEMA, COLUMNS.format("m"), [("x", 1, 4, 1), ("y", 2, 3, 0)]),
    "[doc] of a change function": Rule(
        (
            "CREATE TABLE dbo.t (id int PRIMARY KEY)",
            "EXEC sys.sp_cdc_enable_db",
            "EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL",
        ),
        "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('cdc.fn_cdc_get_all_changes_dbo_t')",
        [("__$start_lsn",), ("__$seqval",), ("__$operation",), ("__$update_mask",), ("id",)],
    ),
    "[doc] a view in INFORMATION_SCHEMA": Rule(
        SCHEMA,
        "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, IS_NULLABLE FROM INFORMATION_SCHEMA.COLUMNS "
        "WHERE TABLE_NAME = 'v' ORDER BY ORDINAL_POSITION",
        [("id", "int", None, "NO"), ("ua", "nvarchar", 10, "YES"), ("d", "decimal", None, "NO")],
    ),
    "[doc] a view whose table is gone shows what it had": Rule(
        (*SCHEMA, "SELECT name FROM sys.columns", "DROP TABLE dbo.t"),
        COLUMNS.format("v") + " AND column_id = 1",
        [("id", 1, 4, 0)],
    ),
    "[doc] parameters": Rule(
        SCHEMA,
        "SELECT OBJECT_NAME(object_id), name, parameter_id, TYPE_NAME(user_type_id), scale, is_output "
        "FROM sys.parameters WHERE OBJECT_NAME(object_id) IN ('p', 's') ORDER BY 1, 3",
        [
            ("p", "@a", 1, "int", 0, 0),
            ("p", "@b", 2, "datetime2", 3, 1),
            ("s", "", 0, "decimal", 3, 1),
            ("s", "@p", 1, "int", 0, 0),
        ],
    ),
    "[doc] routines": Rule(
        SCHEMA,
        "SELECT ROUTINE_NAME, ROUTINE_TYPE, DATA_TYPE, NUMERIC_SCALE FROM INFORMATION_SCHEMA.ROUTINES "
        "WHERE ROUTINE_SCHEMA = 'dbo' ORDER BY 1",
        [
            ("f", "FUNCTION", "TABLE", None),
            ("m", "FUNCTION", "TABLE", None),
            ("p", "PROCEDURE", None, None),
            ("s", "FUNCTION", "decimal", 3),
        ],
    ),
    "[doc] what a view reads": Rule(
        SCHEMA,
        "SELECT VIEW_NAME, TABLE_NAME, COLUMN_NAME FROM INFORMATION_SCHEMA.VIEW_COLUMN_USAGE ORDER BY 3",
        [("v", "t", "a"), ("v", "t", "d"), ("v", "t", "id")],
    ),
    "[doc] triggers that are disabled, and those instead of": Rule(
        (
            *SCHEMA,
            "CREATE TRIGGER dbo.one ON dbo.t AFTER INSERT, DELETE AS RETURN",
            "CREATE TRIGGER dbo.two ON dbo.v INSTEAD OF UPDATE AS RETURN",
            "DISABLE TRIGGER dbo.one ON dbo.t",
        ),
        "SELECT t.name, t.is_disabled, t.is_instead_of_trigger, e.type_desc FROM sys.triggers t "
        "JOIN sys.trigger_events e ON e.object_id = t.object_id ORDER BY 1, e.type",
        [("one", 1, 0, "INSERT"), ("one", 1, 0, "DELETE"), ("two", 0, 1, "UPDATE")],
    ),
    "[doc] grants by their letters": Rule(
        (*SCHEMA, "CREATE USER u WITHOUT LOGIN", "GRANT SELECT, UPDATE ON dbo.t TO u", "GRANT SHOWPLAN TO u"),
        "SELECT type, permission_name FROM sys.database_permissions WHERE grantee_principal_id = USER_ID('u') "
        "AND permission_name <> 'CONNECT' ORDER BY 1",
        [("SL  ", "SELECT"), ("SPLN", "SHOWPLAN"), ("UP  ", "UPDATE")],
    ),
    "[doc] and in INFORMATION_SCHEMA": Rule(
        (*SCHEMA, "CREATE USER u WITHOUT LOGIN", "GRANT SELECT ON dbo.t TO u"),
        "SELECT GRANTEE, TABLE_NAME, PRIVILEGE_TYPE, IS_GRANTABLE FROM INFORMATION_SCHEMA.TABLE_PRIVILEGES",
        [("u", "t", "SELECT", "NO")],
    ),
    "[doc] sequences": Rule(
        ("CREATE SEQUENCE dbo.q AS smallint START WITH 5 INCREMENT BY 2", "SELECT NEXT VALUE FOR dbo.q"),
        "SELECT name, CAST(start_value AS int), CAST(current_value AS int), TYPE_NAME(user_type_id), is_exhausted "
        "FROM sys.sequences",
        [("q", 5, 5, "smallint", 0)],
    ),
    "[doc] messages of the server": Rule(
        (),
        "SELECT severity, LEFT(text, 25) FROM sys.messages WHERE message_id = 22904 AND language_id = 1033",
        [(16, "Caller is not authorized ")],
    ),
    "[doc] and their places filled": Rule(
        (),
        "SELECT FORMATMESSAGE(22902, 'sysadmin')",
        [("Caller is not authorized to initiate the requested action. sysadmin privileges are required.",)],
    ),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_relations_in_the_catalogue(world: World, rule: Rule) -> None:
    check(world, rule)


def test_drivers_see_the_columns_of_views(world: World) -> None:
    """[doc] sp_columns is of tables and views."""
    for statement in SCHEMA:
        world.execute(statement)
    rows = world.rows("EXEC sp_columns_100 @table_name = N'v'")
    assert [(row[3], row[5], row[10]) for row in rows] == [("id", "int", 0), ("ua", "nvarchar", 1), ("d", "decimal", 0)]


def test_a_views_column_over_an_identity_column_is_one_in_sys_columns_only(world: World) -> None:
    """[wire] SQLAlchemy's reflection of views expects it."""
    world.execute("CREATE TABLE dbo.numbered (id int IDENTITY (1, 1), a int)")
    world.execute("CREATE VIEW dbo.seen AS SELECT * FROM dbo.numbered")
    flags = "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('dbo.seen') AND is_identity = 1"
    assert world.rows(flags) == [("id",)]
    assert world.rows("SELECT name FROM sys.identity_columns WHERE object_id = OBJECT_ID('dbo.seen')") == []
