"""Rules of row-level security: filter predicates of enabled policies leave rows out of all reads, for every user.

Evidence: Microsoft's documentation ("Row-level security", CREATE SECURITY POLICY, sys.security_policies,
sys.security_predicates) [doc]. BLOCK predicates and a second predicate on a table are refused.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

FUNCTION = """CREATE FUNCTION dbo.f (@tenant int) RETURNS TABLE WITH SCHEMABINDING AS
RETURN SELECT 1 AS ok WHERE @tenant = 1 OR USER_NAME() = 'reader'"""
POLICY = "CREATE SECURITY POLICY dbo.p ADD FILTER PREDICATE dbo.f(tenant) ON dbo.t"


@pytest.fixture
def filtered(server: Server, sql: Client) -> Client:
    server.catalog = Catalog(server)
    sql("CREATE TABLE t (id int NOT NULL PRIMARY KEY, tenant int) INSERT t VALUES (1, 1), (2, 2), (3, 1)")
    sql("CREATE TABLE other (id int) INSERT other VALUES (1), (2)")
    for user in ("reader", "guest_of_one"):
        sql(f"CREATE USER {user} WITHOUT LOGIN GRANT SELECT, UPDATE, DELETE, INSERT ON t TO {user}")
        sql(f"GRANT SELECT ON other TO {user}")
    sql(FUNCTION)
    assert sql(POLICY).errors == []
    return sql


def as_user(client: Client, user: str, query: str) -> list[tuple]:
    return client(f"EXECUTE AS USER = '{user}' {query} REVERT").sets[-1]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("SELECT id FROM t ORDER BY id", [1, 3]),
        ("SELECT id FROM dbo.t AS x WHERE x.id = 2", []),
        ("SELECT COUNT(*) FROM t", [2]),
        ("SELECT o.id FROM other o JOIN t ON t.id = o.id ORDER BY 1", [1]),
        ("SELECT o.id FROM other o LEFT JOIN t ON t.id = o.id WHERE t.id IS NULL", [2]),
        ("SELECT id FROM other o WHERE EXISTS (SELECT 1 FROM t WHERE t.id = o.id) ORDER BY 1", [1]),
        ("SELECT x.id FROM (SELECT id FROM t WITH (TABLOCK)) x ORDER BY 1", [1, 3]),
    ],
)
def test_rows_are_left_out_of_reads(filtered: Client, query: str, ids: list[int]) -> None:
    assert as_user(filtered, "guest_of_one", query) == [(one,) for one in ids]


def test_the_predicate_decides_and_no_role_is_exempt(filtered: Client) -> None:
    """[doc]: the policy applies to dbo, too, unless the predicate is written to let it see all rows."""
    assert filtered("SELECT id FROM t ORDER BY id").rows == [(1,), (3,)]
    assert as_user(filtered, "reader", "SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,)]


def test_rows_that_are_filtered_are_neither_updated_nor_deleted_and_may_be_inserted(filtered: Client) -> None:
    filtered("UPDATE t SET tenant = tenant + 0, id = id + 10 DELETE t WHERE id > 11 INSERT t VALUES (4, 2)")
    assert as_user(filtered, "reader", "SELECT id FROM t ORDER BY id") == [(2,), (4,), (11,)]
    assert filtered("UPDATE t SET tenant = 1 FROM t JOIN other o ON o.id = t.id").errors == [40517]


def test_a_policy_is_switched_off_and_on_and_its_predicates_come_and_go(filtered: Client) -> None:
    rows = "SELECT COUNT(*) FROM t"
    filtered("ALTER SECURITY POLICY dbo.p WITH (STATE = OFF)")
    assert filtered(rows).rows == [(3,)]
    filtered("ALTER SECURITY POLICY dbo.p WITH (STATE = ON)")
    assert filtered(rows).rows == [(2,)]
    filtered("ALTER SECURITY POLICY dbo.p DROP FILTER PREDICATE ON dbo.t")
    assert filtered(rows).rows == [(3,)]
    filtered("BEGIN TRANSACTION ALTER SECURITY POLICY dbo.p ADD FILTER PREDICATE dbo.f(tenant) ON dbo.t ROLLBACK")
    assert filtered(rows).rows == [(3,)]
    filtered("ALTER SECURITY POLICY dbo.p ADD FILTER PREDICATE dbo.f(id) ON dbo.t")
    assert filtered("SELECT id FROM t").rows == [(1,)]
    assert filtered("DROP TABLE t").errors == [3729]
    assert filtered("DROP SECURITY POLICY dbo.p").errors == []
    assert filtered(rows).rows == [(3,)]


def test_the_catalogue_shows_policies_and_predicates(filtered: Client) -> None:
    policies = "SELECT name, type, type_desc, is_enabled, is_ms_shipped FROM sys.security_policies"
    assert filtered(policies).rows == [("p", "SP", "SECURITY_POLICY", True, False)]
    predicates = """SELECT OBJECT_NAME(object_id), OBJECT_NAME(target_object_id), security_predicate_id,
    predicate_definition, predicate_type, predicate_type_desc, operation, operation_desc FROM sys.security_predicates"""
    assert filtered(predicates).rows == [("p", "t", 1, "[dbo].[f]([tenant])", 0, "FILTER", None, None)]
    assert filtered("SELECT type FROM sys.objects WHERE name = 'p'").rows == [("SP",)]


@pytest.mark.parametrize(
    ("grant", "shown"),
    [
        ("", 0),
        ("GRANT SELECT ON SCHEMA::dbo TO reader", 0),
        ("GRANT VIEW DEFINITION ON dbo.p TO reader", 1),
        ("GRANT VIEW DEFINITION TO reader", 1),
        ("GRANT ALTER ANY SECURITY POLICY TO reader", 1),
    ],
)
def test_who_sees_policies(filtered: Client, grant: str, shown: int) -> None:
    """[doc]: ALTER ANY SECURITY POLICY, or VIEW DEFINITION on the object; SELECT on its schema is neither."""
    filtered(grant)
    assert as_user(filtered, "reader", "SELECT COUNT(*) FROM sys.security_policies") == [(shown,)]
    assert as_user(filtered, "reader", "SELECT COUNT(*) FROM sys.security_predicates") == [(shown,)]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("CREATE SECURITY POLICY dbo.q ADD FILTER PREDICATE dbo.nothing(id) ON dbo.t", 208),
        ("CREATE SECURITY POLICY dbo.q ADD FILTER PREDICATE dbo.f(id) ON dbo.nothing", 208),
        ("CREATE SECURITY POLICY dbo.q ADD BLOCK PREDICATE dbo.f(id) ON dbo.t AFTER INSERT", 40517),
        ("ALTER SECURITY POLICY dbo.nothing WITH (STATE = OFF)", 208),
        ("DROP SECURITY POLICY dbo.nothing", 3701),
    ],
)
def test_what_is_refused(filtered: Client, statement: str, number: int) -> None:
    assert filtered(statement).errors == [number]
    assert filtered("DROP SECURITY POLICY IF EXISTS dbo.nothing").errors == []
