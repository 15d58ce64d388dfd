"""Small forms of statements that published scripts use.

Evidence: the scripts of AdventureWorks, of the First Responder Kit, and Microsoft's pages on their statements.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client


def test_triggers_of_the_database_are_switched(sql: Client) -> None:
    sql("CREATE TRIGGER watch ON DATABASE FOR DDL_DATABASE_LEVEL_EVENTS AS PRINT 'seen'")
    assert sql("DISABLE TRIGGER watch ON DATABASE").errors == []
    server = sql.session.server
    server.catalog = Catalog(server)
    query = "SELECT is_disabled FROM sys.triggers WHERE name = 'watch'"
    assert sql(query).rows == [(1,)]
    assert sql(f"ENABLE TRIGGER ALL ON DATABASE {query}").rows == [(0,)]
    assert sql("DISABLE TRIGGER other ON DATABASE").errors == [1088]
    server.catalog.close()


def test_the_resource_database_has_a_date(sql: Client) -> None:
    server = sql.session.server
    server.catalog = Catalog(server)
    query = "SELECT YEAR(CONVERT(datetime, SERVERPROPERTY('ResourceLastUpdateDateTime')))"
    assert sql(query).rows == [(int(server.version.built.split()[2]),)]
    server.catalog.close()


@pytest.mark.parametrize(
    ("statement", "errors"),
    [
        ("CREATE TABLE t (a int) UPDATE STATISTICS t WITH ROWCOUNT = 9, PAGECOUNT = 9", []),
        ("SELECT * FROM ::nothing('x', default)", [208]),
        ("ALTER DATABASE db SET OPTIMIZED_LOCKING = ON", [102]),
    ],
)
def test_forms_are_read(sql: Client, statement: str, errors: list[int]) -> None:
    assert sql(statement).errors == errors


def test_indexes_of_views_and_of_xml_are_in_sys_indexes(sql: Client) -> None:
    server = sql.session.server
    server.catalog = Catalog(server)
    sql("CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk PRIMARY KEY, x xml)")
    sql("CREATE VIEW dbo.v WITH SCHEMABINDING AS SELECT id FROM dbo.t")
    assert sql("CREATE UNIQUE CLUSTERED INDEX ix ON v (id) CREATE PRIMARY XML INDEX px ON t (x)").errors == []
    query = "SELECT name, type_desc, is_unique FROM sys.indexes WHERE object_id = OBJECT_ID('{}') ORDER BY index_id"
    assert sql(query.format("v")).rows == [("ix", "CLUSTERED", 1)]
    assert sql(query.format("t")).rows == [("pk", "CLUSTERED", 1), ("px", "XML", 0)]
    server.catalog.close()


def test_an_assigned_column_is_the_targets_whatever_from_has(sql: Client) -> None:
    columns = "(id int, x xml, n int, w varchar(max))"
    sql(f"CREATE TABLE dbo.t {columns} INSERT t VALUES (1, '<a/>', 1, 'ab'), (2, NULL, 1, 'ab')")
    sql(f"CREATE TABLE dbo.other {columns} INSERT other VALUES (1, '<b/>', 5, 'z')")
    change = "x.modify('insert <c/> into (/a)[1]'), n += 1, w.WRITE('X', 0, 1)"
    assert sql(f"UPDATE t SET {change} FROM other WHERE other.id = t.id").errors == []
    assert sql("SELECT x, n, w FROM t WHERE id = 1").rows == [("<a><c/></a>", 2, "Xb")]
    assert sql("SELECT x, n, w FROM t WHERE id = 2").rows == [(None, 1, "ab")]
    trigger = "CREATE TRIGGER tr ON t AFTER INSERT AS UPDATE t SET n += 10 FROM inserted WHERE inserted.id = t.id"
    assert sql(trigger).errors == []
    assert sql("INSERT t (id, n) VALUES (3, 1) SELECT n FROM t WHERE id = 3").rows == [(11,)]
    assert sql("UPDATE a SET n += 1 FROM t AS a JOIN t AS b ON a.id = b.id WHERE a.id = 3").errors == []
    assert sql("SELECT n FROM t WHERE id = 3").rows == [(12,)]


def test_a_method_of_a_column_can_stand_in_a_join_condition(sql: Client) -> None:
    sql("CREATE TABLE h (n hierarchyid) INSERT h VALUES (hierarchyid::GetRoot()), (hierarchyid::Parse('/1/'))")
    query = """WITH up AS (SELECT n FROM h WHERE n.GetLevel() = 1
        UNION ALL SELECT h.n FROM h INNER JOIN up ON h.n = up.n.GetAncestor(1)) SELECT n.ToString() FROM up"""
    assert sql(query).rows == [("/1/",), ("/",)]
    assert sql("SELECT nothing.n.GetLevel() FROM h").errors == [4104]


def test_the_folder_of_the_logs_is_told(sql: Client) -> None:
    server = sql.session.server
    server.catalog = Catalog(server)
    query = "SELECT LEFT(path, 1), is_enabled FROM sys.dm_os_server_diagnostics_log_configurations"
    assert sql(query).rows == [("/", 1)]
    server.catalog.close()


def test_a_function_may_return_null_and_a_procedure_may_not(sql: Client) -> None:
    sql("CREATE FUNCTION dbo.f (@a int) RETURNS varchar(9) AS BEGIN DECLARE @b varchar(9) = @a RETURN @b END")
    assert sql("SELECT dbo.f(NULL), dbo.f(7)").rows == [(None, "7")]
    sql("CREATE PROCEDURE dbo.p AS DECLARE @n int RETURN @n")
    assert sql("DECLARE @s int EXEC @s = dbo.p SELECT @s").rows == [(0,)]


def test_conditions_read_table_variables(sql: Client) -> None:
    loop = """DECLARE @t TABLE (i int) INSERT @t VALUES (1), (2)
    WHILE EXISTS (SELECT * FROM @t WHERE i > 0) DELETE TOP (1) FROM @t
    IF NOT EXISTS (SELECT * FROM @t) SELECT 'empty'"""
    assert sql(loop).sets == [[("empty",)]]
