"""Rules of what schemas and databases are made of: schemas, types, sequences, filegroups, partitions, old catalogues.

Evidence: Microsoft's documentation of the statements and procedures, and the scripts of its sample databases.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

TABLE = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, n int) INSERT t VALUES (1, 10), (2, 20)"


@pytest.fixture
def catalogued(sql: Client) -> Iterator[Client]:
    """A session whose server has its catalogue."""
    server = sql.session.server
    server.catalog = Catalog(server)
    yield sql
    server.catalog.close()


def last(client: Client, *batches: str) -> list[tuple]:
    """Rows of the last result set of the last batch; no batch may fail."""
    answers = [client(batch) for batch in batches]
    for batch, answer in zip(batches, answers, strict=True):
        assert answer.errors == [], (batch, answer.events)
    return answers[-1].sets[-1]


@pytest.mark.parametrize(
    ("batches", "rows"),
    [
        (("CREATE SCHEMA s", "ALTER SCHEMA s TRANSFER dbo.t", "SELECT COUNT(*) FROM s.t"), [(2,)]),
        (("CREATE SCHEMA s", "CREATE TABLE s.t (id int)", "CREATE VIEW s.v AS SELECT COUNT(*) c FROM t",
          "SELECT c FROM s.v"), [(0,)]),
        (("CREATE SCHEMA s", "CREATE TABLE s.t (id int)", "CREATE PROCEDURE s.p AS SELECT COUNT(*) FROM t",
          "EXEC s.p"), [(0,)]),
        (("CREATE TYPE name FROM nvarchar(50) NOT NULL", "CREATE TABLE q (a name)",
          "SELECT is_nullable FROM sys.columns WHERE object_id = OBJECT_ID('q')"), [(0,)]),
        (("EXEC sp_addtype 'ssn', 'varchar(11)', 'NOT NULL'", "CREATE TABLE q (a ssn)",
          "SELECT name, max_length, is_nullable, is_user_defined FROM sys.types WHERE name = 'ssn'"),
         [("ssn", 11, 0, 1)]),
        (("ALTER DATABASE db ADD FILEGROUP fg", "CREATE TABLE q (id int) ON fg",
          "SELECT name FROM sys.filegroups ORDER BY data_space_id"), [("PRIMARY",), ("fg",)]),
        (("CREATE PARTITION FUNCTION pf (int) AS RANGE RIGHT FOR VALUES (20, 10)",
          "CREATE PARTITION SCHEME ps AS PARTITION pf ALL TO ([PRIMARY])", "CREATE TABLE q (id int) ON ps (id)",
          "SELECT $PARTITION.pf(9), $PARTITION.pf(10), $PARTITION.pf(25), $PARTITION.pf(NULL)"), [(1, 2, 3, 1)]),
        (("CREATE PARTITION FUNCTION pl (int) AS RANGE LEFT FOR VALUES (10)", "SELECT $PARTITION.pl(10)"), [(1,)]),
        (("CREATE NONCLUSTERED COLUMNSTORE INDEX x ON t (n)",
          "SELECT type_desc FROM sys.indexes WHERE name = 'x'"), [("NONCLUSTERED COLUMNSTORE",)]),
        (("CREATE TABLE c (id int, INDEX x CLUSTERED COLUMNSTORE)",
          "SELECT type, type_desc FROM sys.indexes WHERE object_id = OBJECT_ID('c')"), [(5, "CLUSTERED COLUMNSTORE")]),
        (("CREATE COLUMNSTORE INDEX x ON t (n)", "DROP INDEX x ON t",
          "SELECT COUNT(*) FROM sys.indexes WHERE name = 'x'"), [(0,)]),
        (("CREATE STATISTICS st ON t (n) WITH FULLSCAN", "UPDATE STATISTICS t WITH SAMPLE 50 PERCENT",
          "DROP STATISTICS t.st", "SELECT 1"), [(1,)]),
        (("EXEC sp_addextendedproperty 'MS_Description', N'of n', 'SCHEMA', 'dbo', 'TABLE', 't', 'COLUMN', 'n'",
          "EXEC sp_updateextendedproperty 'MS_Description', N'more', 'SCHEMA', 'dbo', 'TABLE', 't', 'COLUMN', 'n'",
          ("SELECT objname, CAST(value AS nvarchar(9)) FROM "
          "fn_listextendedproperty(DEFAULT, 'SCHEMA', 'dbo', 'TABLE', 't', 'COLUMN', NULL)")), [("n", "more")]),
        (("SELECT name, type, sysstat & 0xf FROM sysobjects WHERE name = 't'",), [("t", "U ", 3)]),
        (("SELECT name FROM master..sysdatabases WHERE name = 'db'",), [("db",)]),
        (("CREATE TYPE a FROM int", "SELECT COUNT(*) FROM sys.objects WHERE name = 'a'"), [(0,)]),
        (("ALTER TABLE t SET (LOCK_ESCALATION = DISABLE)", "SELECT 1"), [(1,)]),
    ],
    ids=lambda value: value[-1][:40] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_definitions_show_what_they_made(catalogued: Client, batches: tuple[str, ...], rows: list[tuple]) -> None:
    catalogued(TABLE)
    assert last(catalogued, *batches) == rows


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("ALTER DATABASE db SET NONSENSE ON", 102),
        ("ALTER DATABASE db SET RECOVERY SOMETIMES", 102),
        ("CREATE TABLE q (id int) ON nowhere", 1921),
        ("CREATE INDEX x ON t (n) ON nowhere", 1921),
        ("ALTER SCHEMA nowhere TRANSFER t", 15151),
        ("ALTER SCHEMA guest TRANSFER nothing", 15151),
        ("EXEC sp_addtype 'x', 'nothing'", 15036),
        ("CREATE PARTITION SCHEME ps AS PARTITION nothing ALL TO ([PRIMARY])", 7715),
        ("SELECT $PARTITION.nothing(1)", 7715),
        ("CREATE PARTITION FUNCTION f (int) AS RANGE FOR VALUES (1, 1)", 7708),
        ("DROP PARTITION FUNCTION f", 3701),
        ("CREATE TABLE q (id int, CONSTRAINT d DEFAULT 1 FOR id)", 142),
        ("EXEC sp_addextendedproperty 'a', 'b', 'SCHEMA', 'dbo', 'TABLE', 'nothing'", 15135),
        ("EXEC sp_dropextendedproperty 'a', 'SCHEMA', 'dbo'", 15217),
        ("CREATE STATISTICS st ON t (n) WITH NONSENSE", 102),
        ("EXEC sp_refreshview 'nothing'", 15165),
        ("CREATE PROC #p AS SELECT 1", 40517),
        ("CREATE SCHEMA s CREATE TABLE q (id int)", 40517),
        ("EXEC sp_help WITH RESULT SETS ((a int))", 40517),
    ],
)
def test_what_cannot_be_defined_is_an_error(catalogued: Client, statement: str, number: int) -> None:
    catalogued(TABLE)
    assert catalogued(statement).errors == [number]


def test_functions_take_default_for_their_defaults(sql: Client) -> None:
    sql("CREATE FUNCTION f (@a int, @b int = 4) RETURNS int AS BEGIN RETURN @a + @b END")
    sql("CREATE FUNCTION g (@a int = 7) RETURNS TABLE AS RETURN (SELECT @a AS a)")
    assert sql("SELECT dbo.f(1, DEFAULT), a FROM dbo.g(DEFAULT)").rows == [(5, 7)]
    assert sql("SELECT dbo.f(1)").errors == [313]


def test_windows_go_over_groups(sql: Client) -> None:
    sql("CREATE TABLE w (g int, n int) INSERT w VALUES (1, 10), (1, 20), (2, 30), (3, 5)")
    query = "SELECT g, RANK() OVER (ORDER BY SUM(n) DESC), SUM(SUM(n)) OVER () FROM w GROUP BY g ORDER BY g"
    assert sql(query).rows == [(1, 1, 65), (2, 1, 65), (3, 3, 65)]
    assert sql("SELECT SUM(SUM(n) OVER ()) OVER () FROM w").errors == [4109]
