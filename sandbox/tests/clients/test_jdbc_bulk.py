"""mssql-jdbc writes many rows at once: INSERT BULK with bulk load messages, and table-valued parameters."""

from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from mssql_sandbox.server import SandboxServer
from tests.clients.jvm import Jdbc, query, rows_of, run

pytestmark = pytest.mark.timeout(400)

LINES = """
DROP TABLE IF EXISTS dbo.many
CREATE TABLE dbo.many (head int NOT NULL, n int NOT NULL, what nvarchar(40) NULL, price decimal(9, 2) NULL,
    CONSTRAINT pk_many PRIMARY KEY (head, n))
"""


@pytest.fixture
def connection(jdbc: Jdbc, sandbox: SandboxServer) -> Iterator[Any]:
    with jdbc.connect(sandbox) as made:
        yield made


def test_batch_insert_by_bulk_copy(jdbc: Jdbc, sandbox: SandboxServer) -> None:
    """useBulkCopyForBatchInsert: INSERT BULK and a bulk load message instead of a thousand calls."""
    with jdbc.connect(sandbox, useBulkCopyForBatchInsert="true") as connection:
        run(connection, LINES)
        statement = connection.prepareStatement("INSERT INTO dbo.many (head, n, what, price) VALUES (?, ?, ?, ?)")
        for n in range(300):
            statement.setInt(1, 10)
            statement.setInt(2, n)
            if n % 7:
                statement.setNString(3, f"\u4e2d {n}")
            else:
                statement.setNull(3, -9)
            statement.setBigDecimal(4, jdbc.jvm.java.math.BigDecimal(f"{n}.25"))
            statement.addBatch()
        assert sum(list(statement.executeBatch())) in (300, -600)  # SUCCESS_NO_INFO is -2
        statement.close()
        found = query(connection, "SELECT n, what, price FROM dbo.many WHERE n IN (7, 299) ORDER BY n")
        assert found == [(7, None, "7.25"), (299, "\u4e2d 299", "299.25")]
        assert query(connection, "SELECT COUNT(*) FROM dbo.many") == [(300,)]


def copied(jdbc: Jdbc, sandbox: SandboxServer, connection: Any, text: str, target: str, **options: bool) -> None:
    """Copy a query's rows, read through a connection of their own, into a table."""
    package = jdbc.jvm.com.microsoft.sqlserver.jdbc
    chosen = package.SQLServerBulkCopyOptions()
    for name, value in options.items():
        getattr(chosen, f"set{name}")(value)
    with jdbc.connect(sandbox) as other:
        copy = package.SQLServerBulkCopy(connection)
        copy.setBulkCopyOptions(chosen)
        copy.setDestinationTableName(target)
        copy.writeToServer(other.createStatement().executeQuery(text))
        copy.close()


def test_bulk_copy_keeps_identity_only_when_asked(jdbc: Jdbc, sandbox: SandboxServer, connection: Any) -> None:
    run(connection, "DROP TABLE IF EXISTS dbo.i; CREATE TABLE dbo.i (id int IDENTITY(10, 5), code varchar(5))")
    text = "SELECT 1000 AS id, 'a' AS code UNION ALL SELECT 2000, 'b'"
    copied(jdbc, sandbox, connection, text, "dbo.i")
    assert query(connection, "SELECT id, code FROM dbo.i ORDER BY id") == [(10, "a"), (15, "b")]
    run(connection, "DELETE dbo.i")
    copied(jdbc, sandbox, connection, text, "dbo.i", KeepIdentity=True)
    assert query(connection, "SELECT id, code FROM dbo.i ORDER BY id") == [(1000, "a"), (2000, "b")]


def test_bulk_copy_fills_defaults_unless_nulls_are_kept(jdbc: Jdbc, sandbox: SandboxServer, connection: Any) -> None:
    run(connection, "DROP TABLE IF EXISTS dbo.d; CREATE TABLE dbo.d (a int, b int NULL DEFAULT 5)")
    copied(jdbc, sandbox, connection, "SELECT 1 AS a, CAST(NULL AS int) AS b", "dbo.d")
    copied(jdbc, sandbox, connection, "SELECT 2 AS a, CAST(NULL AS int) AS b", "dbo.d", KeepNulls=True)
    assert query(connection, "SELECT a, b FROM dbo.d ORDER BY a") == [(1, 5), (2, None)]


def test_bulk_copy_checks_constraints_and_fires_triggers_only_when_asked(
    jdbc: Jdbc, sandbox: SandboxServer, connection: Any
) -> None:
    """Unchecked constraints are not trusted afterwards (sys.check_constraints)."""
    run(
        connection,
        "DROP TABLE IF EXISTS dbo.c, dbo.fired; CREATE TABLE dbo.c (a int CONSTRAINT ck_c CHECK (a > 0)); "
        "CREATE TABLE dbo.fired (n int)",
        "CREATE OR ALTER TRIGGER dbo.tell ON dbo.c AFTER INSERT AS INSERT dbo.fired SELECT COUNT(*) FROM inserted",
    )
    trusted = "SELECT is_not_trusted FROM sys.check_constraints WHERE name = 'ck_c'"
    with pytest.raises(Py4JJavaError, match="ck_c"):
        copied(jdbc, sandbox, connection, "SELECT -1 AS a", "dbo.c", CheckConstraints=True)
    assert query(connection, trusted) == [(False,)]
    copied(jdbc, sandbox, connection, "SELECT -1 AS a", "dbo.c")
    assert query(connection, "SELECT * FROM dbo.fired") == []
    assert query(connection, trusted) == [(True,)]
    copied(jdbc, sandbox, connection, "SELECT 2 AS a UNION ALL SELECT 3", "dbo.c", FireTriggers=True, TableLock=True)
    assert query(connection, "SELECT * FROM dbo.fired") == [(2,)]


EVERY_TYPE = {
    "bit": "CAST(1 AS bit)", "tinyint": "CAST(200 AS tinyint)", "smallint": "CAST(-3 AS smallint)", "int": "7",
    "bigint": "CAST(9007199254740993 AS bigint)", "real": "CAST(0.5 AS real)", "float": "CAST(0.1 AS float)",
    "decimal(20,5)": "CAST(-12345.67891 AS decimal(20,5))", "money": "CAST(12.3456 AS money)",
    "smallmoney": "CAST(-1.5 AS smallmoney)", "date": "CAST('2024-02-29' AS date)",
    "time(3)": "CAST('12:30:15.123' AS time(3))", "datetime": "CAST('2024-02-29T12:30:15.997' AS datetime)",
    "smalldatetime": "CAST('2024-02-29T12:30:00' AS smalldatetime)",
    "datetime2(7)": "CAST('2024-02-29T12:30:15.1234567' AS datetime2(7))",
    "datetimeoffset(2)": "CAST('2024-02-29T12:30:15.12+05:30' AS datetimeoffset(2))",
    "char(4)": "CAST('ab' AS char(4))", "varchar(10)": "CAST('caf\u00e9' AS varchar(10))",
    "nchar(3)": "CAST(N'\u4e2d' AS nchar(3))", "nvarchar(10)": "CAST(N'\u4e2d' AS nvarchar(10))",
    "varchar(max)": "REPLICATE(CAST('x' AS varchar(max)), 9000)",
    "nvarchar(max)": "REPLICATE(CAST(N'\u4e2d' AS nvarchar(max)), 9000)",
    "binary(3)": "CAST(0x0102 AS binary(3))", "varbinary(5)": "CAST(0x010203 AS varbinary(5))",
    "varbinary(max)": "CAST(0xDEADBEEF AS varbinary(max))",
    "uniqueidentifier": "CAST('6F9619FF-8B86-D011-B42D-00C04FC964FF' AS uniqueidentifier)",
    "xml": "CAST(N'<a>1</a>' AS xml)", "text": "CAST('old' AS text)", "ntext": "CAST(N'old \u4e2d' AS ntext)",
    "image": "CAST(0x0A0B AS image)",
}  # fmt: skip


def test_bulk_copy_carries_every_type(jdbc: Jdbc, sandbox: SandboxServer, connection: Any) -> None:
    names = [f"c{n}" for n in range(len(EVERY_TYPE))]
    columns = ", ".join(f"{name} {type_} NULL" for name, type_ in zip(names, EVERY_TYPE, strict=True))
    run(connection, f"DROP TABLE IF EXISTS dbo.every; CREATE TABLE dbo.every ({columns})")
    values = ", ".join(f"{value} AS {name}" for name, value in zip(names, EVERY_TYPE.values(), strict=True))
    nulls = ", ".join("NULL" for _ in names)
    run(connection, f"DROP TABLE IF EXISTS dbo.origin; SELECT * INTO dbo.origin FROM dbo.every WHERE 1 = 0; "
        f"INSERT dbo.origin SELECT {values}; INSERT dbo.origin SELECT {nulls}")  # fmt: skip
    copied(jdbc, sandbox, connection, "SELECT * FROM dbo.origin", "dbo.every")
    shown = ", ".join(
        f"CAST({name} AS {'varbinary' if type_ == 'image' else 'nvarchar'}(max)) AS {name}"
        for name, type_ in zip(names, EVERY_TYPE, strict=True)
    )
    left = query(connection, f"SELECT {shown} FROM dbo.every")
    assert left == query(connection, f"SELECT {shown} FROM dbo.origin")
    assert len(left) == 2


def test_table_valued_parameter(jdbc: Jdbc, connection: Any) -> None:
    run(
        connection,
        "DROP PROCEDURE IF EXISTS dbo.take; DROP TYPE IF EXISTS dbo.pairs",
        "CREATE TYPE dbo.pairs AS TABLE (id int NOT NULL PRIMARY KEY, name nvarchar(20) NULL)",
        "CREATE PROCEDURE dbo.take @rows dbo.pairs READONLY AS SELECT COUNT(*), MAX(name) FROM @rows",
    )
    table = jdbc.jvm.com.microsoft.sqlserver.jdbc.SQLServerDataTable()
    table.addColumnMetadata("id", 4)
    table.addColumnMetadata("name", -9)
    for number, name in ((1, "one"), (2, None), (3, "\u4e2d")):
        table.addRow(jdbc.array("Object", [number, name]))
    statement = connection.prepareStatement("SELECT id, name FROM ? ORDER BY id")
    statement.setStructured(1, "dbo.pairs", table)
    assert rows_of(statement.executeQuery()) == [(1, "one"), (2, None), (3, "\u4e2d")]
    statement.close()
    call = connection.prepareCall("{call dbo.take(?)}")
    call.setStructured(1, "dbo.pairs", table)
    assert rows_of(call.executeQuery()) == [(3, "\u4e2d")]
    call.close()


def test_table_valued_parameter_obeys_the_constraints_of_its_type(jdbc: Jdbc, connection: Any) -> None:
    run(
        connection,
        "DROP TYPE IF EXISTS dbo.singles",
        "CREATE TYPE dbo.singles AS TABLE (id int NOT NULL PRIMARY KEY)",
    )
    table = jdbc.jvm.com.microsoft.sqlserver.jdbc.SQLServerDataTable()
    table.addColumnMetadata("id", 4)
    table.addRow(jdbc.array("Object", [1]))
    statement = connection.prepareStatement("SELECT * FROM ?")
    table.addRow(jdbc.array("Object", [1]))
    statement.setStructured(1, "dbo.singles", table)
    with pytest.raises(Py4JJavaError) as failure:
        statement.executeQuery()
    assert failure.value.java_exception.getErrorCode() == 2627
    statement.close()
