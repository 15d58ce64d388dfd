"""mssql-jdbc as programs use it: metadata, prepared statements, bulk copy, table-valued parameters, timeouts."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from mssql_sandbox.server import SandboxServer, serve_in_thread
from tests.clients.jvm import Jdbc, query, rows_of, run

pytestmark = pytest.mark.timeout(400)

SETUP = """
DROP TABLE IF EXISTS dbo.lines, dbo.heads
CREATE TABLE dbo.heads (
    id int IDENTITY(10, 5) NOT NULL CONSTRAINT pk_heads PRIMARY KEY,
    code varchar(10) NOT NULL CONSTRAINT uq_heads UNIQUE,
    made datetime2(3) NULL DEFAULT sysdatetime(), total AS (id * 2)
)
CREATE TABLE dbo.lines (
    head int NOT NULL CONSTRAINT fk_lines REFERENCES dbo.heads (id) ON DELETE CASCADE,
    n int NOT NULL, what nvarchar(40) NULL, price decimal(9, 2) NULL CONSTRAINT ck_price CHECK (price >= 0),
    CONSTRAINT pk_lines PRIMARY KEY (head, n)
)
CREATE INDEX ix_what ON dbo.lines (what)
"""


@pytest.fixture
def connection(jdbc: Jdbc, sandbox: SandboxServer) -> Iterator[Any]:
    with jdbc.connect(sandbox) as made:
        run(made, SETUP)
        yield made


def named(result: Any, *names: str) -> list[tuple[Any, ...]]:
    """Some columns of all rows."""
    rows = []
    while result.next():
        rows.append(tuple(result.getObject(name) for name in names))
    result.close()
    return rows


def test_url_of_the_address_connects(jdbc: Jdbc) -> None:
    with serve_in_thread(SandboxServer(password="p;{a}=ß 'x")) as server:
        connection = jdbc.open(server.address.jdbc("tempdb"))
        assert query(connection, "SELECT DB_NAME()") == [("tempdb",)]
        connection.close()


# ---- metadata -----------------------------------------------------------------------------------------------


def test_metadata_names_tables_columns_and_keys(connection: Any) -> None:
    facts = connection.getMetaData()
    tables = named(facts.getTables("master", "dbo", "%e%s", None), "TABLE_NAME", "TABLE_TYPE")
    assert ("heads", "TABLE") in tables
    assert ("lines", "TABLE") in tables
    system = named(facts.getTables("master", None, "dm_exec_sess%", None), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE")
    assert system == [("sys", "dm_exec_sessions", "VIEW")]
    columns = named(
        facts.getColumns("master", "dbo", "heads", "%"), "COLUMN_NAME", "TYPE_NAME", "IS_NULLABLE", "IS_AUTOINCREMENT"
    )
    assert columns == [
        ("id", "int identity", "NO", "YES"),
        ("code", "varchar", "NO", "NO"),
        ("made", "datetime2", "YES", "NO"),
        # Arithmetic over columns that are not NULL is nullable: it may overflow (CREATE TABLE, computed columns).
        ("total", "int", "YES", "NO"),
    ]
    keys = named(facts.getPrimaryKeys("master", "dbo", "lines"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME")
    assert keys == [("head", 1, "pk_lines"), ("n", 2, "pk_lines")]


def test_metadata_names_foreign_keys_and_indexes(connection: Any) -> None:
    facts = connection.getMetaData()
    imported = facts.getImportedKeys("master", "dbo", "lines")
    assert named(imported, "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME", "FK_NAME", "DELETE_RULE") == [
        ("heads", "id", "head", "fk_lines", 0)
    ]
    exported = facts.getExportedKeys("master", "dbo", "heads")
    assert named(exported, "FKTABLE_NAME", "FK_NAME") == [("lines", "fk_lines")]
    # Not named and not unique: ix_what; statistics rows have no name.
    indexes = named(facts.getIndexInfo("master", "dbo", "lines", False, False), "INDEX_NAME", "COLUMN_NAME")
    assert [entry for entry in indexes if entry[0]] == [("pk_lines", "head"), ("pk_lines", "n"), ("ix_what", "what")]


def test_metadata_lists_schemas_databases_types_and_procedures(connection: Any) -> None:
    run(connection, "CREATE OR ALTER PROCEDURE dbo.made_up @a int, @b nvarchar(10) OUTPUT AS SET @b = N'x'")
    facts = connection.getMetaData()
    assert ("master",) in named(facts.getCatalogs(), "TABLE_CAT")
    assert ("dbo",) in named(facts.getSchemas(), "TABLE_SCHEM")
    assert ("nvarchar",) in named(facts.getTypeInfo(), "TYPE_NAME")
    assert [row[0].split(";")[0] for row in named(facts.getProcedures("master", "dbo", "made%"), "PROCEDURE_NAME")] == [
        "made_up"
    ]
    parameters = named(facts.getProcedureColumns("master", "dbo", "made_up", "%"), "COLUMN_NAME", "TYPE_NAME")
    assert parameters[1:] == [("@a", "int"), ("@b", "nvarchar")]
    assert facts.getDatabaseMajorVersion() == 16


def test_metadata_tells_privileges_and_what_identifies_a_row(connection: Any) -> None:
    facts = connection.getMetaData()
    privileges = named(facts.getTablePrivileges("master", "dbo", "heads"), "GRANTEE", "PRIVILEGE")
    assert ("dbo", "SELECT") in privileges
    columns = named(facts.getColumnPrivileges("master", "dbo", "heads", "co%"), "COLUMN_NAME", "PRIVILEGE")
    assert ("code", "UPDATE") in columns
    assert named(facts.getBestRowIdentifier("master", "dbo", "lines", 0, True), "COLUMN_NAME") == [("head",), ("n",)]


def test_metadata_of_a_prepared_statement_is_known_before_it_runs(connection: Any) -> None:
    statement = connection.prepareStatement("SELECT code, made FROM dbo.heads WHERE id = ? AND code LIKE ?")
    columns, parameters = statement.getMetaData(), statement.getParameterMetaData()
    assert [columns.getColumnTypeName(n) for n in (1, 2)] == ["varchar", "datetime2"]
    assert [parameters.getParameterTypeName(n) for n in (1, 2)] == ["int", "varchar"]
    statement.close()


# ---- statements ------------------------------------------------------------------------------------------------


def test_handles_of_prepared_statements_are_reused_and_given_back(connection: Any) -> None:
    insert = connection.prepareStatement("INSERT dbo.heads (code) VALUES (?)")
    for n in range(4):
        insert.setString(1, f"c{n}")
        assert insert.executeUpdate() == 1
    insert.close()
    select = connection.prepareStatement("SELECT code FROM dbo.heads WHERE id >= ? ORDER BY id")
    for n in range(4):
        select.setInt(1, 10 + 5 * n)
        assert len(rows_of(select.executeQuery())) == 4 - n
    select.close()
    connection.closeUnreferencedPreparedStatementHandles()
    assert query(connection, "SELECT COUNT(*) FROM dbo.heads") == [(4,)]


def test_generated_keys_come_back(jdbc: Jdbc, connection: Any) -> None:
    statement = connection.prepareStatement("INSERT dbo.heads (code) VALUES (?)", 1)
    statement.setString(1, "k")
    assert statement.executeUpdate() == 1
    assert [int(float(row[0])) for row in rows_of(statement.getGeneratedKeys())] == [10]
    statement.close()


def test_batches_tell_the_count_of_each_statement(connection: Any) -> None:
    statement = connection.prepareStatement("UPDATE dbo.heads SET code = ? WHERE id = ?")
    run(connection, "INSERT dbo.heads (code) VALUES ('a'), ('b')")
    for code, number in (("x", 10), ("y", 15), ("z", 99)):
        statement.setString(1, code)
        statement.setInt(2, number)
        statement.addBatch()
    assert list(statement.executeBatch()) == [1, 1, 0]
    statement.close()


@pytest.mark.parametrize("unicode", ["true", "false"])
def test_strings_are_found_whether_sent_as_unicode_or_not(jdbc: Jdbc, sandbox: SandboxServer, unicode: str) -> None:
    with jdbc.connect(sandbox, sendStringParametersAsUnicode=unicode) as connection:
        run(connection, SETUP, "INSERT dbo.heads (code) VALUES ('caf\u00e9'), ('x')")
        statement = connection.prepareStatement(
            "SELECT id, SQL_VARIANT_PROPERTY(?, 'BaseType') FROM dbo.heads WHERE code = ?"
        )
        statement.setString(1, "t")
        statement.setString(2, "caf\u00e9")
        expected = "nvarchar" if unicode == "true" else "varchar"
        assert rows_of(statement.executeQuery()) == [(10, expected)]
        statement.close()


def test_procedure_gives_status_results_and_outputs(connection: Any) -> None:
    run(
        connection,
        "CREATE OR ALTER PROCEDURE dbo.answers @a int, @b nvarchar(10) OUTPUT AS "
        "SELECT @a + 1 AS r; SET @b = @b + N'!'; RETURN 7",
    )
    call = connection.prepareCall("{? = call dbo.answers(?, ?)}")
    call.registerOutParameter(1, 4)
    call.setInt(2, 41)
    call.setString(3, "hey")
    call.registerOutParameter(3, -9)
    assert rows_of(call.executeQuery()) == [(42,)]
    assert (call.getInt(1), call.getString(3)) == (7, "hey!")
    call.close()


@pytest.mark.parametrize("buffering", ["adaptive", "full"])
def test_large_values_stream(jdbc: Jdbc, sandbox: SandboxServer, buffering: str) -> None:
    with jdbc.connect(sandbox, responseBuffering=buffering) as connection:
        text = "SELECT REPLICATE(CAST(N'\u4e2d' AS nvarchar(max)), 300000) AS big, value FROM GENERATE_SERIES(1, 3)"
        statement = connection.createStatement()
        result = statement.executeQuery(text)
        sizes = []
        while result.next():
            sizes.append((len(result.getString(1)), result.getInt(2)))
        statement.close()
        assert sizes == [(300000, 1), (300000, 2), (300000, 3)]


# ---- connection ------------------------------------------------------------------------------------------------


def test_read_only_intent_reaches_the_server(jdbc: Jdbc, sandbox: SandboxServer) -> None:
    with jdbc.connect(sandbox, applicationIntent="ReadOnly", applicationName="reader") as connection:
        assert query(connection, "SELECT APP_NAME()") == [("reader",)]
        spid = query(connection, "SELECT @@SPID")[0][0]
        assert sandbox.engine.sessions[spid].read_only_intent


def test_query_timeout_and_cancel_leave_the_connection_usable(connection: Any) -> None:
    statement = connection.createStatement()
    statement.setQueryTimeout(1)
    with pytest.raises(Py4JJavaError, match="timed out"):
        statement.execute("WAITFOR DELAY '00:01:00'")
    statement.close()
    assert query(connection, "SELECT 1") == [(1,)]


def test_cancel_from_another_thread(connection: Any) -> None:
    statement = connection.createStatement()
    canceller = threading.Timer(0.3, statement.cancel)
    canceller.start()
    with pytest.raises(Py4JJavaError, match="cancel"):
        statement.execute("WAITFOR DELAY '00:01:00'")
    canceller.join()
    statement.close()
    assert query(connection, "SELECT {fn UCASE('x')}, {d '2024-02-29'}")[0][0] == "X"


def test_results_and_counts_of_a_batch_come_in_order(connection: Any) -> None:
    statement = connection.createStatement()
    more = statement.execute("SELECT 1 AS a; INSERT dbo.heads (code) VALUES ('x'), ('y'); SELECT 2 AS b; PRINT 'said'")
    seen: list[object] = []
    while True:
        if more:
            seen.append(rows_of(statement.getResultSet()))
        elif (count := statement.getUpdateCount()) == -1:
            break
        else:
            seen.append(count)
        more = statement.getMoreResults()
    assert seen == [[(1,)], 2, [(2,)]]
    assert statement.getWarnings().getMessage() == "said"
    statement.close()


def test_lock_timeout_is_error_1222(jdbc: Jdbc, sandbox: SandboxServer, connection: Any) -> None:
    run(connection, "INSERT dbo.heads (code) VALUES ('held')")
    connection.setAutoCommit(False)
    run(connection, "UPDATE dbo.heads SET code = 'mine'")
    with jdbc.connect(sandbox, lockTimeout="50") as other, pytest.raises(Py4JJavaError) as failure:
        query(other, "SELECT * FROM dbo.heads")
    assert failure.value.java_exception.getErrorCode() == 1222
    connection.rollback()
    connection.setAutoCommit(True)
