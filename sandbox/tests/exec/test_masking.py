"""Rules of dynamic data masking: who lacks UNMASK sees masked results, conditions and order see the values.

Evidence: Microsoft's documentation; small letters, short values, what keeps a column's own function and the messages
were measured by others on SQL Server 2025 [pub].
"""

from __future__ import annotations

import pytest

from mssql_sandbox.engine.product import VERSIONS
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

TABLE = """CREATE TABLE t (id int NOT NULL PRIMARY KEY, s varchar(20) MASKED WITH (FUNCTION = 'default()'),
e varchar(40) MASKED WITH (FUNCTION = 'email()'), p varchar(30) MASKED WITH (FUNCTION = 'partial(2, "-XX-", 1)'),
n int MASKED WITH (FUNCTION = 'default()'), d date MASKED WITH (FUNCTION = 'default()'), plain varchar(40))
INSERT t VALUES (1, 'hello', 'john@x.com', 'abcdefghij', 42, '2020-05-06', 'p1'), (2, 'ab', '', 'ab', 7, NULL, 'p2')
INSERT t (id) VALUES (3)
CREATE USER u WITHOUT LOGIN GRANT SELECT, UPDATE ON t TO u"""


@pytest.fixture
def masked(server: Server, sql: Client) -> Client:
    server.catalog = Catalog(server)
    sql(TABLE)
    return sql


def seen(client: Client, query: str) -> list[object]:
    """The first row that the user without rights sees."""
    return list(client(f"EXECUTE AS USER = 'u' {query} REVERT").sets[-1][0])


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("SELECT s FROM t WHERE id = 1", "xxxx"),
        ("SELECT e FROM t WHERE id = 1", "jXXX@XXXX.com"),
        ("SELECT e FROM t WHERE id = 2", "xxxx"),
        ("SELECT p FROM t WHERE id = 1", "ab-XX-j"),
        ("SELECT p FROM t WHERE id = 2", "-XX-"),
        ("SELECT n FROM t WHERE id = 1", 0),
        ("SELECT CONVERT(varchar(10), d, 120) FROM t WHERE id = 1", "xxxx"),
        ("SELECT DATEDIFF(day, '1900-01-01', d) FROM t WHERE id = 1", 0),
        ("SELECT plain FROM t WHERE id = 1", "p1"),
        ("SELECT s FROM t WHERE id = 3", None),
        ("SELECT LEN(s) FROM t WHERE id = 1", 0),
        ("SELECT n + 1 FROM t WHERE id = 1", 0),
        ("SELECT UPPER(e) FROM t WHERE id = 1", "xxxx"),
        ("SELECT MAX(s) FROM t", "xxxx"),
        ("SELECT SUM(n) FROM t", 0),
        ("SELECT CAST(e AS varchar(10)) FROM t WHERE id = 1", "xxxx"),
        ("SELECT CAST(e AS varchar(40)) FROM t WHERE id = 1", "jXXX@XXXX.com"),
        ("SELECT x.e FROM (SELECT e FROM t) x WHERE x.e LIKE 'john%'", "jXXX@XXXX.com"),
        ("; WITH c AS (SELECT e, id FROM t) SELECT e FROM c WHERE id = 1", "jXXX@XXXX.com"),
        ("SELECT (SELECT e FROM t WHERE id = 1)", "jXXX@XXXX.com"),
        ("SELECT CASE WHEN id = 1 THEN e ELSE 'nobody' END FROM t WHERE id = 2", "nXXX@XXXX.com"),
        ("SELECT CASE WHEN id = 1 THEN p ELSE e END FROM t WHERE id = 1", "xxxx"),
        ("SELECT CASE WHEN s = 'hello' THEN 'yes' ELSE 'no' END FROM t WHERE id = 1", "yes"),
        ("SELECT COUNT(*) FROM t WHERE s = 'hello'", 1),
        ("SELECT TOP 1 id FROM t ORDER BY s DESC", 1),
        ("SELECT TOP 1 x FROM (SELECT plain AS x FROM t UNION ALL SELECT e FROM t) u ORDER BY x DESC", "pXXX@XXXX.com"),
        ("SELECT id, s FROM t WHERE id = 1 FOR JSON PATH", '[{"id":1,"s":"xxxx"}]'),
        ("DECLARE @v varchar(40) SELECT @v = e FROM t WHERE id = 1 SELECT @v", "jXXX@XXXX.com"),
        ("DECLARE c CURSOR FOR SELECT s FROM t WHERE id = 1 OPEN c FETCH c CLOSE c DEALLOCATE c", "xxxx"),
        ("UPDATE t SET id = id OUTPUT deleted.s WHERE id = 1", "xxxx"),
    ],
)
def test_what_a_user_without_unmask_sees(masked: Client, query: str, value: object) -> None:
    assert seen(masked, query) == [value]


def test_the_owner_sees_values(masked: Client) -> None:
    assert masked("SELECT s, e, n FROM t WHERE id = 1").rows == [("hello", "john@x.com", 42)]


def test_views_and_procedures_do_not_unmask(masked: Client) -> None:
    masked("CREATE VIEW v AS SELECT id, e, e + '' AS f FROM t")
    masked("CREATE PROCEDURE r AS SELECT s FROM t WHERE id = 1")
    masked("GRANT SELECT ON v TO u GRANT EXECUTE ON r TO u")
    assert seen(masked, "SELECT e, f FROM v WHERE id = 1") == ["jXXX@XXXX.com", "xxxx"]
    assert seen(masked, "EXEC r") == ["xxxx"]


@pytest.mark.parametrize(
    ("grants", "s", "e"),
    [
        ("GRANT UNMASK TO u", "hello", "john@x.com"),
        ("GRANT UNMASK ON SCHEMA::dbo TO u", "hello", "john@x.com"),
        ("GRANT UNMASK ON t TO u", "hello", "john@x.com"),
        ("GRANT UNMASK ON t (s) TO u", "hello", "jXXX@XXXX.com"),
        ("GRANT UNMASK TO u DENY UNMASK ON t (e) TO u", "hello", "jXXX@XXXX.com"),
        ("GRANT UNMASK TO u REVOKE UNMASK TO u", "xxxx", "jXXX@XXXX.com"),
        ("ALTER ROLE db_owner ADD MEMBER u", "hello", "john@x.com"),
        ("GRANT CONTROL ON t TO u", "hello", "john@x.com"),
    ],
)
def test_unmask_at_each_scope(masked: Client, grants: str, s: str, e: str) -> None:
    masked(grants)
    assert seen(masked, "SELECT s, e FROM t WHERE id = 1") == [s, e]


def test_what_a_user_writes_is_what_it_sees(masked: Client) -> None:
    masked("CREATE TABLE kept (id int, s varchar(20), e varchar(40)) GRANT SELECT, INSERT, UPDATE ON kept TO u")
    masked("""EXECUTE AS USER = 'u'
INSERT kept SELECT id, s, e FROM t WHERE id = 1
INSERT kept (id, e) VALUES (2, (SELECT e FROM t WHERE id = 1))
INSERT kept (id) VALUES (3)
UPDATE kept SET e = t.e FROM t WHERE t.id = 1 AND kept.id = 3
REVERT""")
    assert masked("SELECT s, e FROM kept ORDER BY id").rows == [
        ("xxxx", "jXXX@XXXX.com"), (None, "jXXX@XXXX.com"), (None, "jXXX@XXXX.com"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "function", "number"),
    [
        ("varchar(9)", "foo()", 16002),
        ("varchar(9)", "", 16002),
        ("int", 'partial(1,"x",1)', 16003),
        ("varchar(9)", "random(1,2)", 16003),
        ("varchar(9)", "default(1)", 16004),
        ("int", "random(1,2,3)", 16004),
        ("int", "random(3,1)", 16005),
    ],
)
def test_functions_that_are_none(sql: Client, type_: str, function: str, number: int) -> None:
    assert sql(f"CREATE TABLE m (a {type_} MASKED WITH (FUNCTION = '{function}'))").errors == [number]


@pytest.mark.parametrize(
    ("type_", "function", "value", "shown"),
    [
        ("nchar(3)", "default()", "N'ab'", "xxx"),
        ("varchar(5)", "email()", "'abc'", "aXXX@"),
        ("varchar(10)", 'partial(2, "*", 2)', "'abcd'", "*"),
        ("varchar(10)", 'partial(2, "*", 2)', "'abcde'", "ab*de"),
        ("varbinary(9)", "default()", "0xABCD", b"0"),
        ("bigint", "random(5, 5)", "99", 5),
        ("xml", "default()", "'<a/>'", "<masked />"),
    ],
)
def test_masks_by_type(sql: Client, type_: str, function: str, value: str, shown: object) -> None:
    sql(f"CREATE TABLE t (a {type_} MASKED WITH (FUNCTION = '{function}')) INSERT t VALUES ({value})")
    sql("CREATE USER u WITHOUT LOGIN GRANT SELECT ON t TO u")
    assert seen(sql, "SELECT a FROM t") == [shown]


def test_masks_are_put_on_and_taken_off(masked: Client) -> None:
    assert masked("ALTER TABLE t ALTER COLUMN plain DROP MASKED").errors == [16007]
    masked("ALTER TABLE t ALTER COLUMN s DROP MASKED")
    masked("ALTER TABLE t ALTER COLUMN plain ADD MASKED WITH (FUNCTION = 'Partial( 1,\"..\" , 0)')")
    assert seen(masked, "SELECT s, plain FROM t WHERE id = 1") == ["hello", "p.."]
    assert masked("SELECT masking_function FROM sys.masked_columns WHERE name = 'plain'").rows == [
        ('partial(1, "..", 0)',)
    ]


@pytest.mark.parametrize(
    ("grant", "of_column", "of_table", "of_schema", "of_database"),
    [
        ("", 0, 0, 0, 0),
        ("GRANT UNMASK ON t (n) TO u", 1, 0, 0, 0),
        ("GRANT UNMASK ON t TO u", 1, 1, 0, 0),
        ("GRANT UNMASK ON SCHEMA::dbo TO u", 1, 1, 1, 0),
        ("GRANT UNMASK TO u", 1, 1, 1, 1),
        ("GRANT UNMASK TO u DENY UNMASK ON t (n) TO u", 0, 1, 1, 1),
    ],
)
def test_has_perms_by_name_tells_of_unmask(
    masked: Client, grant: str, of_column: int, of_table: int, of_schema: int, of_database: int
) -> None:
    """[doc]: the permission on a column is that of the narrowest securable that has a rule."""
    masked(grant)
    asked = """SELECT HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'UNMASK', 'n', 'COLUMN'),
    HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'UNMASK'), HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'UNMASK'),
    HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'UNMASK', 'nothing', 'COLUMN'), HAS_PERMS_BY_NAME('[dbo]', 'SCHEMA', 'UNMASK'),
    HAS_PERMS_BY_NAME('nothing', 'SCHEMA', 'UNMASK')"""
    assert seen(masked, asked) == [of_column, of_table, of_database, None, of_schema, None]


def test_before_2022_unmask_is_a_permission_of_the_database(masked: Client, server: Server) -> None:
    server.version = VERSIONS["2019"]
    asked = """SELECT HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'UNMASK', 'n', 'COLUMN'),
    HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'UNMASK'), HAS_PERMS_BY_NAME('dbo', 'SCHEMA', 'UNMASK'),
    HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'UNMASK')"""
    assert seen(masked, asked) == [None, None, None, 0]
