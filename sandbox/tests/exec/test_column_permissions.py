"""Rules of permissions on columns for UPDATE and REFERENCES, and of what a missing permission ends.

Evidence: Microsoft's documentation of `GRANT` on objects; its template for change functions catches error 229 beside
the query, so that a missing permission is no error of compilation.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client


@pytest.fixture
def table(server: Server, sql: Client) -> Client:
    server.catalog = Catalog(server)
    sql("CREATE TABLE t (id int NOT NULL PRIMARY KEY, a int, b int) INSERT t VALUES (1, 10, 20)")
    sql("CREATE USER u WITHOUT LOGIN GRANT SELECT ON t TO u")
    return sql


@pytest.mark.parametrize(
    ("grants", "statement", "errors"),
    [
        ("", "UPDATE t SET a = 1", [229]),
        ("GRANT UPDATE (a) ON t TO u", "UPDATE t SET a = 1", []),
        ("GRANT UPDATE ON t (a) TO u", "UPDATE t SET a = 1, b = 2", [230]),
        ("GRANT UPDATE ON t TO u DENY UPDATE ON t (b) TO u", "UPDATE t SET a = 1", []),
        ("GRANT UPDATE ON t TO u DENY UPDATE ON t (b) TO u", "UPDATE t SET b = 1", [230]),
        ("GRANT UPDATE (a) ON t TO u", "UPDATE x SET b = 1 FROM t AS x JOIN t AS y ON y.id = x.id", [230]),
        ("GRANT UPDATE (a) ON t TO u", "SELECT a FROM t", []),
    ],
)
def test_update_of_columns(table: Client, grants: str, statement: str, errors: list[int]) -> None:
    table(grants)
    assert table(f"EXECUTE AS USER = 'u' {statement} REVERT").errors == errors


@pytest.mark.parametrize("permission", ["INSERT", "DELETE", "EXECUTE"])
def test_other_permissions_are_not_on_columns(table: Client, permission: str) -> None:
    assert table(f"GRANT {permission} (a) ON t TO u").errors == [1020]


def test_foreign_keys_need_references(table: Client) -> None:
    table("GRANT CREATE TABLE TO u GRANT ALTER ON SCHEMA::dbo TO u")
    create = "EXECUTE AS USER = 'u' CREATE TABLE f (t int REFERENCES t (id)) REVERT"
    assert table(create).errors == [229]
    table("GRANT REFERENCES (id) ON t TO u")
    assert table(create).errors == []


def test_a_missing_permission_ends_the_statement_only(table: Client) -> None:
    answer = table("EXECUTE AS USER = 'u' DELETE t UPDATE t SET a = 1 REVERT SELECT USER_NAME()")
    assert answer.errors == [229, 229]
    assert answer.rows == [("dbo",)]


def test_a_missing_permission_is_caught_beside_it(table: Client) -> None:
    answer = table(
        "EXECUTE AS USER = 'u' BEGIN TRY DELETE t END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH REVERT"
    )
    assert (answer.errors, answer.rows) == ([], [(229,)])


def test_users_without_login_are_themselves(table: Client) -> None:
    assert table("EXECUTE AS USER = 'u' SELECT USER_NAME() REVERT").rows == [("u",)]
    assert table("EXECUTE AS USER = 'dbo' SELECT USER_NAME() REVERT").rows == [("dbo",)]


def test_not_for_replication_is_kept(server: Server, sql: Client) -> None:
    server.catalog = Catalog(server)
    sql("""CREATE TABLE t (id int IDENTITY(5, 1) NOT FOR REPLICATION PRIMARY KEY, a int,
CONSTRAINT positive CHECK NOT FOR REPLICATION (a > 0),
CONSTRAINT itself FOREIGN KEY (a) REFERENCES t (id) NOT FOR REPLICATION)""")
    sql("CREATE TRIGGER noticed ON t AFTER INSERT NOT FOR REPLICATION AS PRINT 'x'")
    for view in ("identity_columns", "check_constraints", "foreign_keys", "triggers"):
        assert sql(f"SELECT is_not_for_replication FROM sys.{view}").rows == [(1,)]
    assert sql("SELECT is_not_trusted FROM sys.foreign_keys").rows == [(1,)]
    sql("ALTER TABLE t ALTER COLUMN id DROP NOT FOR REPLICATION")
    assert sql("SELECT is_not_for_replication FROM sys.identity_columns").rows == [(0,)]
    assert sql("ALTER TABLE t ALTER COLUMN a ADD NOT FOR REPLICATION").errors == [4991]
