"""Who may read and change rows: fixed roles, grants, denials, ownership chains."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.exec.session import Session
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

STATEMENTS = {
    "SELECT": "SELECT a FROM dbo.t",
    "INSERT": "INSERT dbo.t VALUES (1)",
    "UPDATE": "UPDATE dbo.t SET a = 2",
    "DELETE": "DELETE dbo.t",
}


@pytest.fixture
def user(server: Server, sql: Client) -> Client:
    """A login with a user without rights."""
    sql("CREATE TABLE t (a int); CREATE LOGIN reader WITH PASSWORD = 'x'; CREATE USER reader FOR LOGIN reader")
    return Client(Session(server, login="reader", database="db"))


def allowed(user: Client) -> set[str]:
    """What the user may do; everything else is refused with 229."""
    errors = {permission: user(statement).errors for permission, statement in STATEMENTS.items()}
    assert all(found in ([], [229]) for found in errors.values()), errors
    return {permission for permission, found in errors.items() if not found}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], set()),
        (["ALTER ROLE db_datareader ADD MEMBER reader"], {"SELECT"}),
        (["ALTER ROLE db_datawriter ADD MEMBER reader"], {"INSERT", "UPDATE", "DELETE"}),
        (["ALTER ROLE db_owner ADD MEMBER reader"], set(STATEMENTS)),
        (["GRANT SELECT, INSERT ON dbo.t TO reader"], {"SELECT", "INSERT"}),
        (["GRANT SELECT ON SCHEMA::dbo TO reader"], {"SELECT"}),
        (["GRANT SELECT TO public"], {"SELECT"}),
        (["ALTER ROLE db_datareader ADD MEMBER reader", "DENY SELECT ON dbo.t TO reader"], set()),
        (["GRANT SELECT ON dbo.t TO reader", "ALTER ROLE db_denydatareader ADD MEMBER reader"], set()),
        (["GRANT SELECT ON dbo.t TO reader", "REVOKE SELECT ON dbo.t FROM reader"], set()),
    ],
)
def test_rights_decide_what_a_user_may_do(sql: Client, user: Client, given: list[str], expected: set[str]) -> None:
    for statement in given:
        assert sql(statement).errors == []
    assert allowed(user) == expected


def test_a_right_that_ends_ends_at_once(sql: Client, user: Client) -> None:
    sql("GRANT SELECT ON dbo.t TO reader")
    assert allowed(user) == {"SELECT"}
    sql("DENY SELECT ON dbo.t TO reader")
    assert allowed(user) == set()


def test_views_and_procedures_read_with_the_rights_of_their_owner(sql: Client, user: Client) -> None:
    sql("CREATE VIEW v AS SELECT a FROM dbo.t")
    sql("CREATE PROCEDURE p AS SELECT a FROM dbo.t")
    sql("GRANT SELECT ON dbo.v TO reader")
    assert user("EXEC p").errors == [229]
    sql("GRANT EXECUTE ON dbo.p TO reader")
    assert user("SELECT a FROM v").errors == []
    assert user("EXEC p").errors == []
    assert user("SELECT a FROM t").errors == [229]


def test_execute_as_takes_the_rights_of_the_other_until_revert(sql: Client, user: Client) -> None:
    assert sql("EXECUTE AS USER = 'reader'; SELECT a FROM t; REVERT; SELECT a FROM t").errors == [229]


def test_own_temporary_tables_need_no_rights(connect: Callable[[], Client], user: Client) -> None:
    assert user("CREATE TABLE #t (a int); INSERT #t VALUES (1); SELECT a FROM #t").rows == [(1,)]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([], []),
        (["GRANT SELECT, INSERT, UPDATE, DELETE ON SCHEMA::dbo TO reader", "GRANT SELECT TO reader"], []),
        (["ALTER ROLE db_datareader ADD MEMBER reader"], []),
        (["GRANT REFERENCES ON TYPE::dbo.code TO reader"], ["code"]),
        (["GRANT VIEW DEFINITION ON TYPE::dbo.rows TO public"], ["rows"]),
        (["GRANT EXECUTE ON SCHEMA::dbo TO reader"], ["code", "rows"]),
        (["GRANT VIEW DEFINITION TO reader"], ["code", "rows"]),
        (["ALTER ROLE db_owner ADD MEMBER reader"], ["code", "rows"]),
    ],
)
def test_types_of_users_are_shown_to_those_with_a_permission_on_them(
    server: Server, sql: Client, user: Client, given: list[str], shown: list[str]
) -> None:
    """[doc]: what a principal neither owns nor has a permission on is not in the catalogue; types have no SELECT."""
    server.catalog = Catalog(server)
    sql("CREATE TYPE dbo.code FROM nvarchar(20)")
    sql("CREATE TYPE dbo.rows AS TABLE (a int)")
    sql("CREATE TABLE coded (c dbo.code)")
    for statement in (*given, "GRANT SELECT ON dbo.coded TO reader"):
        assert sql(statement).errors == [], statement
    named = "SELECT name FROM sys.types WHERE is_user_defined = 1 ORDER BY name"
    assert [row[0] for row in user(named).rows] == shown
    assert [row[0] for row in user("SELECT name FROM sys.table_types").rows] == [
        name for name in shown if name == "rows"
    ]
    domains = user("SELECT DOMAIN_NAME FROM INFORMATION_SCHEMA.DOMAINS").rows
    assert [row[0] for row in domains] == [name for name in shown if name == "code"]
    assert len(user("SELECT name FROM sys.types WHERE is_user_defined = 0").rows) > 30
    columns = "SELECT c.name FROM sys.columns c WHERE c.object_id = OBJECT_ID('dbo.coded')"
    assert user(columns).rows == [("c",)], "the column itself is shown"
