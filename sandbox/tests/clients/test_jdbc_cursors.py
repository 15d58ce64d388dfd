"""mssql-jdbc with server cursors: sp_cursoropen, sp_cursorprepexec, sp_cursorexecute, sp_cursorfetch, sp_cursor.

`selectMethod=cursor` makes every query a cursor; scrollable and updatable result sets are cursors always.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from mssql_sandbox.server import SandboxServer
from tests.clients.jvm import Jdbc, plain, query, rows_of, run

pytestmark = pytest.mark.timeout(400)

FORWARD_ONLY, SCROLL, SCROLL_SENSITIVE, DYNAMIC = 1003, 1004, 1005, 1006
READ_ONLY, UPDATABLE = 1007, 1008


@pytest.fixture
def connection(jdbc: Jdbc, sandbox: SandboxServer) -> Iterator[Any]:
    with jdbc.connect(sandbox, selectMethod="cursor") as made:
        run(
            made,
            "DROP TABLE IF EXISTS dbo.cursors",
            "CREATE TABLE dbo.cursors (id int NOT NULL PRIMARY KEY, name nvarchar(20) NULL, amount decimal(9,2) NULL)",
            "INSERT dbo.cursors SELECT value, CONCAT('n', value), value * 1.5 FROM GENERATE_SERIES(1, 10)",
        )
        yield made


def opened(connection: Any, text: str, kind: int = SCROLL, guard: int = READ_ONLY, size: int = 3) -> Any:
    """A result set with a fetch size smaller than the result."""
    statement = connection.createStatement(kind, guard)
    statement.setFetchSize(size)
    return statement.executeQuery(text)


@pytest.mark.parametrize("kind", [FORWARD_ONLY, SCROLL, SCROLL_SENSITIVE, DYNAMIC])
def test_rows_come_in_blocks_and_in_order(connection: Any, kind: int) -> None:
    found = rows_of(opened(connection, "SELECT id, name FROM dbo.cursors ORDER BY id", kind))
    assert found == [(n, f"n{n}") for n in range(1, 11)]


def test_empty_cursor_has_columns_and_no_rows(connection: Any) -> None:
    result = opened(connection, "SELECT id, name FROM dbo.cursors WHERE id < 0", FORWARD_ONLY)
    assert result.getMetaData().getColumnName(2) == "name"
    assert rows_of(result) == []


def test_prepared_cursor_is_prepared_once_and_executed_with_other_values(connection: Any) -> None:
    statement = connection.prepareStatement("SELECT id FROM dbo.cursors WHERE id > ? AND name LIKE ? ORDER BY id")
    for bound in (8, 9, 7, 10):
        statement.setInt(1, bound)
        statement.setString(2, "n%")
        assert rows_of(statement.executeQuery()) == [(n,) for n in range(bound + 1, 11)]
    statement.close()


def test_scrollable_result_moves_anywhere(connection: Any) -> None:
    result = opened(connection, "SELECT id FROM dbo.cursors ORDER BY id")
    moves = [
        result.last() and result.getInt(1),
        result.first() and result.getInt(1),
        result.absolute(7) and result.getInt(1),
        result.relative(-3) and result.getInt(1),
        result.previous() and result.getInt(1),
        result.absolute(-2) and result.getInt(1),
        result.next() and result.getInt(1),
        result.next(),
        result.isAfterLast(),
        result.previous() and result.getInt(1),
        result.absolute(99),
        result.absolute(-99),
        result.isBeforeFirst(),
        result.next() and result.getInt(1),
    ]
    result.close()
    assert moves == [10, 1, 7, 4, 3, 9, 10, False, True, 10, False, False, True, 1]


def test_positioned_update_changes_the_row_and_shows_it(connection: Any) -> None:
    result = opened(
        connection, "SELECT id, name AS called, amount FROM dbo.cursors ORDER BY id", SCROLL_SENSITIVE, UPDATABLE
    )
    assert result.absolute(5)
    result.updateString(2, "five")
    result.updateNull(3)
    result.updateRow()
    result.refreshRow()
    seen = (result.getString(2), plain(result.getObject(3)))
    result.close()
    assert seen == ("five", None)
    assert query(connection, "SELECT name, amount FROM dbo.cursors WHERE id = 5") == [("five", None)]


def test_positioned_delete_and_insert(connection: Any) -> None:
    result = opened(connection, "SELECT id, name, amount FROM dbo.cursors", SCROLL_SENSITIVE, UPDATABLE)
    assert result.absolute(2)
    result.deleteRow()
    result.moveToInsertRow()
    result.updateInt("id", 77)
    result.updateString("name", "new")
    result.insertRow()
    result.close()
    found = query(connection, "SELECT id, name FROM dbo.cursors WHERE id IN (2, 77)")
    assert found == [(77, "new")]


def test_keyset_shows_changes_of_others_and_marks_rows_that_are_gone(
    connection: Any, jdbc: Jdbc, sandbox: SandboxServer
) -> None:
    result = opened(connection, "SELECT id, name FROM dbo.cursors ORDER BY id", SCROLL_SENSITIVE, UPDATABLE, 2)
    assert result.next()
    with jdbc.connect(sandbox) as other:
        run(other, "UPDATE dbo.cursors SET name = 'changed' WHERE id = 4", "DELETE dbo.cursors WHERE id = 3")
    assert result.absolute(4)
    assert result.getString(2) == "changed"
    assert result.absolute(3)
    assert result.rowDeleted()
    result.close()


def test_optimistic_update_fails_when_the_row_was_changed_outside(
    connection: Any, jdbc: Jdbc, sandbox: SandboxServer
) -> None:
    """Microsoft's error 16934."""
    result = opened(connection, "SELECT id, name FROM dbo.cursors ORDER BY id", SCROLL_SENSITIVE, UPDATABLE)
    assert result.absolute(6)
    with jdbc.connect(sandbox) as other:
        run(other, "UPDATE dbo.cursors SET name = 'theirs' WHERE id = 6")
    result.updateString(2, "mine")
    with pytest.raises(Py4JJavaError, match="Optimistic concurrency check failed"):
        result.updateRow()
    result.close()
    assert query(connection, "SELECT name FROM dbo.cursors WHERE id = 6") == [("theirs",)]


def test_cursor_over_a_join_is_read_only(connection: Any) -> None:
    text = "SELECT a.id, b.name FROM dbo.cursors a JOIN dbo.cursors b ON a.id = b.id"
    result = opened(connection, text, SCROLL_SENSITIVE, UPDATABLE)
    assert result.next()
    result.updateString(2, "x")
    with pytest.raises(Py4JJavaError, match="READ ONLY"):
        result.updateRow()
    result.close()


def test_batch_over_which_no_cursor_can_be_opened_is_answered_directly(connection: Any) -> None:
    result = opened(connection, "DECLARE @n int = 3; SELECT @n AS n, 'direct' AS how", FORWARD_ONLY)
    assert rows_of(result) == [(3, "direct")]


def test_trigger_fires_for_a_positioned_change(connection: Any) -> None:
    run(
        connection,
        "DROP TABLE IF EXISTS dbo.seen",
        "CREATE TABLE dbo.seen (was nvarchar(20), becomes nvarchar(20))",
        "CREATE OR ALTER TRIGGER dbo.watch ON dbo.cursors AFTER UPDATE AS INSERT dbo.seen SELECT d.name, i.name FROM "
        "deleted d JOIN inserted i ON i.id = d.id",
    )
    result = opened(connection, "SELECT id, name FROM dbo.cursors ORDER BY id", SCROLL_SENSITIVE, UPDATABLE)
    assert result.absolute(1)
    result.updateString(2, "one")
    result.updateRow()
    result.close()
    assert query(connection, "SELECT was, becomes FROM dbo.seen") == [("n1", "one")]
