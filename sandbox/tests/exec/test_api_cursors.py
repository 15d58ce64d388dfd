"""The sp_cursor family without a driver: kinds, moves, changes, errors (Microsoft: "Cursor stored procedures")."""

from __future__ import annotations

import pytest

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import Message, ReturnStatus, RpcParameter
from tests.exec.conftest import Answer, Client

KEYSET, DYNAMIC, FORWARD, STATIC, FAST = 1, 2, 4, 8, 16
READ_ONLY, LOCKS, OPTIMISTIC = 1, 2, 4
FIRST, NEXT, PREV, LAST, ABSOLUTE, RELATIVE, REFRESH, INFO, PREV_NOADJUST = 1, 2, 4, 8, 16, 32, 128, 256, 512


def number(value: int | None, *, output: bool = False) -> RpcParameter:
    return RpcParameter("", t.INT, value, output=output)


def text(value: str | None) -> RpcParameter:
    return RpcParameter("", t.nvarchar(4000), value)


def prepare_table(sql: Client) -> None:
    sql("CREATE TABLE dbo.c (id int NOT NULL PRIMARY KEY, name nvarchar(10))")
    sql("INSERT dbo.c SELECT value, CONCAT('n', value) FROM GENERATE_SERIES(1, 10)")


def opened(
    sql: Client, statement: str = "SELECT id, name FROM dbo.c", kind: int = KEYSET, guard: int = OPTIMISTIC
) -> Answer:
    """sp_cursoropen; outputs are handle, kind, guard, row count."""
    return sql.rpc(
        "sp_cursoropen", number(None, output=True), text(statement), number(kind, output=True),
        number(guard, output=True), number(0, output=True),
    )  # fmt: skip


def fetched(sql: Client, handle: object, kind: int, row: int = 0, count: int = 3) -> list[int | None]:
    """The ids of a fetch."""
    answer = sql.rpc("sp_cursorfetch", number(handle), number(kind), number(row), number(count))  # type: ignore[arg-type]
    assert answer.errors == []
    return [found[0] for found in answer.rows]


@pytest.mark.parametrize(
    ("statement", "asked", "given"),
    [
        ("SELECT id FROM dbo.c", (KEYSET, OPTIMISTIC), (KEYSET, OPTIMISTIC, 10)),
        ("SELECT id FROM dbo.c", (DYNAMIC, LOCKS), (KEYSET, LOCKS, 10)),
        ("SELECT id FROM dbo.c", (STATIC, OPTIMISTIC), (STATIC, READ_ONLY, 10)),
        ("SELECT id FROM dbo.c", (FAST, READ_ONLY), (FAST, READ_ONLY, -1)),
        ("SELECT COUNT(*) FROM dbo.c", (KEYSET, OPTIMISTIC), (STATIC, READ_ONLY, 1)),
        ("SELECT DISTINCT name FROM dbo.c", (DYNAMIC, OPTIMISTIC), (STATIC, READ_ONLY, 10)),
        ("SELECT 1 UNION SELECT 2", (KEYSET, LOCKS), (STATIC, READ_ONLY, 2)),
    ],
)
def test_a_cursor_becomes_what_its_query_allows_and_says_so(
    sql: Client, statement: str, asked: tuple[int, int], given: tuple[int, int, int]
) -> None:
    prepare_table(sql)
    assert tuple(opened(sql, statement, *asked).outputs[1:]) == given


def test_opening_describes_the_rows_and_their_status(sql: Client) -> None:
    prepare_table(sql)
    answer = opened(sql)
    assert [column.name for column in answer.columns.columns] == ["id", "name", "ROWSTAT"]
    assert answer.rows == []


@pytest.mark.parametrize(
    ("moves", "seen"),
    [
        ([(NEXT, 0, 4), (NEXT, 0, 4), (NEXT, 0, 4), (NEXT, 0, 4)], [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10], []]),
        ([(LAST, 0, 2), (PREV, 0, 2), (FIRST, 0, 2)], [[9, 10], [7, 8], [1, 2]]),
        ([(ABSOLUTE, 5, 2), (RELATIVE, 2, 1), (RELATIVE, -6, 2)], [[5, 6], [7], [1, 2]]),
        ([(ABSOLUTE, -3, 2), (REFRESH, 0, 0)], [[8, 9], [8, 9]]),
        ([(FIRST, 0, 0), (NEXT, 0, 2)], [[], [1, 2]]),
        ([(LAST, 0, 0), (PREV_NOADJUST, 0, 3)], [[], [8, 9, 10]]),
        ([(NEXT, 0, 3), (PREV_NOADJUST, 0, 3), (NEXT, 0, 1)], [[1, 2, 3], [], [1]]),
        ([(ABSOLUTE, 99, 2), (PREV, 0, 2)], [[], [9, 10]]),
    ],
)
def test_fetches_move_the_buffer(sql: Client, moves: list[tuple[int, int, int]], seen: list[list[int]]) -> None:
    prepare_table(sql)
    handle = opened(sql, kind=STATIC, guard=READ_ONLY).outputs[0]
    assert [fetched(sql, handle, *move) for move in moves] == seen


def test_a_move_before_the_first_row_shows_the_first_rows_and_says_so(sql: Client) -> None:
    """Return status 2, which mssql-jdbc looks for."""
    prepare_table(sql)
    handle = opened(sql).outputs[0]
    answer = sql.rpc("sp_cursorfetch", number(handle), number(RELATIVE), number(-5), number(2))  # type: ignore[arg-type]
    assert [row[0] for row in answer.rows] == [1, 2]
    assert [event.value for event in answer.events if isinstance(event, ReturnStatus)] == [2]


def test_info_tells_position_and_size(sql: Client) -> None:
    prepare_table(sql)
    handle = opened(sql).outputs[0]
    fetched(sql, handle, ABSOLUTE, 4)
    asked = (number(handle), number(INFO), number(0, output=True), number(0, output=True))  # type: ignore[arg-type]
    assert sql.rpc("sp_cursorfetch", *asked).outputs == [4, 10]


def test_rows_that_are_gone_are_marked_and_others_shown_as_they_are(sql: Client) -> None:
    prepare_table(sql)
    handle = opened(sql).outputs[0]
    sql("DELETE dbo.c WHERE id = 2")
    sql("UPDATE dbo.c SET name = N'new' WHERE id = 3")
    answer = sql.rpc("sp_cursorfetch", number(handle), number(FIRST), number(0), number(3))  # type: ignore[arg-type]
    assert answer.rows == [(1, "n1", 1), (None, None, 2), (3, "new", 1)]


def change(sql: Client, handle: object, operation: int, row: int, **values: str) -> Answer:
    """sp_cursor with named columns."""
    columns = [RpcParameter(f"@{name}", t.nvarchar(20), value) for name, value in values.items()]
    return sql.rpc("sp_cursor", number(handle), number(operation), number(row), text(""), *columns)  # type: ignore[arg-type]


def test_positioned_changes(sql: Client) -> None:
    prepare_table(sql)
    handle = opened(sql).outputs[0]
    fetched(sql, handle, ABSOLUTE, 4, 2)
    assert change(sql, handle, 1, 2, name="five").errors == []
    assert change(sql, handle, 2, 1).errors == []
    assert change(sql, handle, 4, 0, id="77", name="added").errors == []
    assert sql("SELECT id, name FROM dbo.c WHERE id IN (4, 5, 77)").rows == [(5, "five"), (77, "added")]


@pytest.mark.parametrize(
    ("call", "errors"),
    [
        (lambda sql, handle: change(sql, handle, 1, 9, name="x"), [16930]),
        (lambda sql, handle: change(sql, handle, 1, 1, absent="x"), [207]),
        (lambda sql, handle: change(sql, handle, 1, 1, name="far too long a name"), [2628]),
        (lambda sql, handle: change(sql, handle, 17, 1), [16902]),
        (lambda sql, _: sql.rpc("sp_cursorfetch", number(5)), [16909]),
        (lambda sql, _: sql.rpc("sp_cursorclose", number(5)), [16909]),
        (lambda sql, handle: sql.rpc("sp_cursorfetch", number(handle), number(3)), [16902]),
        (lambda sql, _: sql.rpc("sp_cursorexecute", number(9), number(0, output=True)), [8179]),
        (lambda sql, _: sql.rpc("sp_cursoropen", number(0, output=True)), [201]),
        (lambda sql, _: opened(sql, "UPDATE dbo.c SET name = 'x'"), [16937]),
    ],
)
def test_what_cannot_be_done_has_the_servers_number(sql: Client, call: object, errors: list[int]) -> None:
    prepare_table(sql)
    handle = opened(sql).outputs[0]
    fetched(sql, handle, FIRST)
    assert call(sql, handle).errors == errors  # type: ignore[operator]


def test_read_only_and_forward_only_cursors_refuse(sql: Client) -> None:
    prepare_table(sql)
    handle = opened(sql, kind=FAST, guard=READ_ONLY).outputs[0]
    fetched(sql, handle, NEXT)
    assert change(sql, handle, 2, 1).errors == [16929]
    assert sql.rpc("sp_cursorfetch", number(handle), number(LAST)).errors == [16911]  # type: ignore[arg-type]


def test_direct_answer_is_announced(sql: Client) -> None:
    answer = sql.rpc(
        "sp_cursoropen", number(0, output=True), text("DECLARE @a int = 4 SELECT @a"), number(FORWARD), number(0x2001)
    )
    assert [event.number for event in answer.events if isinstance(event, Message)] == [16954]
    assert answer.rows == [(4,)]
    assert answer.outputs == [0]


def test_prepared_cursor_takes_parameters(sql: Client) -> None:
    prepare_table(sql)
    first = sql.rpc(
        "sp_cursorprepexec", number(0, output=True), number(0, output=True), text("@p int"),
        text("SELECT id FROM dbo.c WHERE id >= @p"), number(0x1000 | STATIC), number(READ_ONLY), number(0, output=True),
        number(9),
    )  # fmt: skip
    prepared, handle, count = first.outputs
    assert (fetched(sql, handle, NEXT), count) == ([9, 10], 2)
    again = sql.rpc(
        "sp_cursorexecute", number(prepared), number(0, output=True), number(STATIC), number(READ_ONLY),  # type: ignore[arg-type]
        number(0, output=True), number(10),
    )  # fmt: skip
    assert fetched(sql, again.outputs[0], NEXT) == [10]
    assert sql.rpc("sp_cursorunprepare", number(prepared)).errors == []  # type: ignore[arg-type]
    assert sql.rpc("sp_cursorunprepare", number(prepared)).errors == [8179]  # type: ignore[arg-type]


def test_cursors_are_closed_one_by_one_or_all(sql: Client) -> None:
    prepare_table(sql)
    handles = [opened(sql).outputs[0] for _ in range(3)]
    assert sql.rpc("sp_cursorclose", number(handles[0])).errors == []  # type: ignore[arg-type]
    assert sql.rpc("sp_cursorclose", number(-1)).errors == []
    assert sql.rpc("sp_cursorfetch", number(handles[1])).errors == [16909]  # type: ignore[arg-type]


def test_cursors_work_from_transact_sql(sql: Client) -> None:
    """The form in which Microsoft's documentation shows them."""
    prepare_table(sql)
    answer = sql(
        "DECLARE @cursor int, @scroll int = 8, @guard int = 1, @rows int; "
        "EXEC sp_cursoropen @cursor OUTPUT, N'SELECT id FROM dbo.c', @scroll OUTPUT, @guard OUTPUT, @rows OUTPUT; "
        "EXEC sp_cursorfetch @cursor, 2, 0, 2; EXEC sp_cursorclose @cursor; SELECT @rows"
    )
    assert answer.errors == []
    assert answer.sets[1:] == [[(1, 1), (2, 1)], [(10,)]]


def test_prepared_statements_work_from_transact_sql(sql: Client) -> None:
    answer = sql(
        "DECLARE @h int; EXEC sp_prepare @h OUTPUT, N'@a int', N'SELECT @a + 1'; EXEC sp_execute @h, 4; "
        "EXEC sp_unprepare @h; EXEC sp_prepexec @h OUTPUT, N'@b int', N'SELECT @b * 2', 21"
    )
    assert answer.errors == []
    assert answer.sets == [[(5,)], [(42,)]]
