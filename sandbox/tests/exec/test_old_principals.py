"""Rules of the old procedures for logins, users and roles, and of ALTER AUTHORIZATION: set-up scripts call them.

Evidence: Microsoft's documentation, which names the statement that each procedure stands for.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client


@pytest.fixture
def people(server: Server, sql: Client) -> Client:
    server.catalog = Catalog(server)
    assert sql("EXEC sp_addlogin 'ann', 'it''s' EXEC sp_addlogin @loginame = 'bob', @passwd = 'x'").errors == []
    assert sql("EXEC sp_adduser 'ann' EXEC sp_addrole 'readers'").errors == []
    return sql


def test_users_and_roles_come_and_go(people: Client) -> None:
    member = "SELECT IS_ROLEMEMBER('readers', 'ann'), IS_ROLEMEMBER('db_owner', 'ann')"
    assert people("EXEC sp_addrolemember 'readers', 'ann' EXEC sp_addrolemember N'db_owner', N'ann'").errors == []
    assert people(member).rows == [(1, 1)]
    assert people("EXEC sp_droprolemember @rolename = 'db_owner', @membername = 'ann'").errors == []
    assert people(member).rows == [(1, 0)]
    people("EXEC sp_addsrvrolemember 'bob', 'sysadmin'")
    assert people("SELECT IS_SRVROLEMEMBER('sysadmin', 'bob')").rows == [(1,)]
    people("EXEC sp_grantdbaccess 'bob', 'robert' EXEC sp_revokedbaccess 'robert' EXEC sp_dropuser 'ann'")
    assert people("SELECT name FROM sys.database_principals WHERE name IN ('ann', 'robert')").rows == []


@pytest.mark.parametrize("change", ["EXEC sp_changedbowner 'bob'", "ALTER AUTHORIZATION ON DATABASE::db TO bob"])
def test_a_database_gets_another_owner(people: Client, change: str) -> None:
    assert people(change).errors == []
    assert people("SELECT SUSER_SNAME(owner_sid) FROM sys.databases WHERE name = 'db'").rows == [("bob",)]


def test_a_schema_gets_another_owner(people: Client) -> None:
    people("CREATE SCHEMA s")
    assert people("ALTER AUTHORIZATION ON SCHEMA::s TO ann").errors == []
    assert people("SELECT USER_NAME(principal_id) FROM sys.schemas WHERE name = 's'").rows == [("ann",)]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("EXEC sp_addrolemember 'readers'", 201),
        ("EXEC sp_addrolemember @role = 'readers', @membername = 'ann'", 8145),
        ("EXEC sp_addrolemember 'readers', 'nobody'", 15151),
        ("EXEC sp_changedbowner 'nobody'", 15151),
        ("EXEC sp_changedbowner 'ann'", 15110),
        ("ALTER AUTHORIZATION ON SCHEMA::nothing TO ann", 15151),
    ],
)
def test_refused(people: Client, statement: str, number: int) -> None:
    assert people(statement).errors == [number]
