"""Rules of the old procedures for logins, users and roles: set-up scripts call them.

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


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("EXEC sp_addrolemember 'readers'", 201),
        ("EXEC sp_addrolemember @role = 'readers', @membername = 'ann'", 8145),
        ("EXEC sp_addrolemember 'readers', 'nobody'", 15151),
        ("ALTER AUTHORIZATION ON SCHEMA::dbo TO ann", 40517),
    ],
)
def test_refused(people: Client, statement: str, number: int) -> None:
    assert people(statement).errors == [number]
