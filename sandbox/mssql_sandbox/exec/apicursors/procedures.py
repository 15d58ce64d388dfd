"""The sp_cursor family, as drivers call it by number.

Parameters follow Microsoft's documentation ("Cursor stored procedures"); other behaviour that drivers rely on is known
from mssql-jdbc's source: the hidden column ROWSTAT, message 16954 before a direct answer, return status 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.events import Columns, Done, Message, Rows, RpcParameter
from mssql_sandbox.errors import error
from mssql_sandbox.exec.apicursors import changes
from mssql_sandbox.exec.apicursors.cursor import (
    ApiCursor,
    ConcurrencyOption,
    Fetch,
    PreparedCursor,
    ScrollOption,
    cursors_of,
)
from mssql_sandbox.exec.apicursors.messages import cursor_error
from mssql_sandbox.exec.apicursors.rows import ROWSTAT, RowSource, keyset_table, open_copied, open_keyset
from mssql_sandbox.exec.calls.arguments import bind
from mssql_sandbox.exec.calls.prepared import definitions_of, text_of
from mssql_sandbox.exec.calls.texts import run_text
from mssql_sandbox.exec.flow import Answer, Outputs, Steps, StepsTo
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.session_state import CallProcedure, SessionState
from mssql_sandbox.exec.statements.queries import gives_rows
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.parser import parse_parameters

_UPDATE, _DELETE, _INSERT, _REFRESH, _LOCK = 0x01, 0x02, 0x04, 0x08, 0x10
_OPERATIONS = 0x1F
_UNKNOWN_COUNT = -1
_BLOCK = 20
"""Number of rows of a fetch without a count."""
_FETCHES = frozenset(int(kind) for kind in Fetch)
_SKIP_UPDATED = 0x400


def _number(parameters: Sequence[RpcParameter], place: int, otherwise: int = 0) -> int:
    """An integer argument; `otherwise` if it is missing, NULL or DEFAULT."""
    if place >= len(parameters) or parameters[place].value is None or parameters[place].default:
        return otherwise
    return convert(parameters[place].value, parameters[place].type, t.INT)


def _returned(parameters: Sequence[RpcParameter], values: Mapping[int, int]) -> Outputs:
    """The values of the output parameters."""
    return [
        (place, parameters[place].name, t.INT, value)
        for place, value in values.items()
        if place < len(parameters) and parameters[place].output
    ]


# ---- opening ------------------------------------------------------------------------------------------------------


def _cursor_query(frame: Frame) -> ast.Query | None:
    """The query of a text for which a cursor can be opened."""
    statements = [node for node in frame.routine.statements if not isinstance(node, st.SetOption)]
    if len(statements) != 1 or not isinstance(statements[0], st.SelectStatement):
        return None
    query = statements[0].query
    return query if gives_rows(query) else None


def _open(
    session: SessionState, wanted: PreparedCursor, arguments: Sequence[RpcParameter], *, block: int
) -> StepsTo[ApiCursor | None]:
    """Open a cursor and describe its rows; None if the text ran without a cursor. AUTO_FETCH fetches a block."""
    declared = parse_parameters(wanted.definitions)
    routine = session.routine(wanted.text, declared, key=wanted.definitions)
    frame = Frame(session, routine, in_procedure=True)
    query = _cursor_query(frame)
    if query is None:
        if not wanted.concurrency & ConcurrencyOption.ALLOW_DIRECT:
            raise cursor_error(16937)
        yield Message(16954, 1, 10, "Executing SQL directly; no cursor.")
        yield from run_text(session, wanted.text, wanted.definitions, arguments)
        return None
    bind(frame, declared, arguments, query=f"({wanted.definitions}){wanted.text}")
    rows, kind, guard = yield from _row_source(frame, query, wanted.scroll, wanted.concurrency)
    cursor = cursors_of(session).add(rows, kind, guard)
    yield Columns((*rows.columns, ROWSTAT))
    yield rows.sources
    if wanted.scroll & ScrollOption.AUTO_FETCH:
        cursor.move(Fetch.FIRST, 0, block or _BLOCK)
        yield Rows((yield from rows.read(cursor.start, cursor.start + cursor.size)))
    yield _done(session, cursor.size)
    return cursor


def _done(session: SessionState, count: int) -> Done:
    shown = None if session.options.nocount else count
    return Done(shown, "select", session.transactions.current is not None, in_procedure=True)


def _row_source(
    frame: Frame, query: ast.Query, scroll: int, concurrency: int
) -> StepsTo[tuple[RowSource, ScrollOption, ConcurrencyOption]]:
    """The rows, and the actual kind of the cursor: unavailable kinds become static and read-only."""
    wanted = ScrollOption(scroll & 0x1F) or ScrollOption.FORWARD_ONLY
    guard = ConcurrencyOption(concurrency & 0x0F) or ConcurrencyOption.OPTIMISTIC
    fixed = wanted & (ScrollOption.STATIC | ScrollOption.FAST_FORWARD)
    plain_forward = wanted is ScrollOption.FORWARD_ONLY and guard is ConcurrencyOption.READ_ONLY
    table = None if fixed or plain_forward else keyset_table(frame, query)
    if table is None:
        rows = yield from open_copied(frame, query)
        moving = wanted & (ScrollOption.KEYSET | ScrollOption.DYNAMIC)
        return rows, ScrollOption.STATIC if moving else wanted, ConcurrencyOption.READ_ONLY
    keyset = yield from open_keyset(frame, query, table)
    return keyset, ScrollOption.KEYSET if wanted is ScrollOption.DYNAMIC else wanted, guard


def _opened(cursor: ApiCursor | None) -> tuple[int, int, int, int]:
    """Handle, kind, concurrency and row count for the caller; zeros if there is no cursor."""
    if cursor is None:
        return 0, 0, 0, 0
    known = not cursor.forward_only
    return cursor.handle, int(cursor.scroll), int(cursor.concurrency), len(cursor.rows) if known else _UNKNOWN_COUNT


def _cursor_open(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_cursoropen @cursor OUT, @stmt, @scrollopt, @ccopt, @rowcount [, @paramdef, values…]."""
    _require("sp_cursoropen", parameters, ("@cursor", "@stmt"))
    scroll, concurrency = _number(parameters, 2, ScrollOption.FORWARD_ONLY), _number(parameters, 3)
    definitions, values = "", parameters[5:]
    if scroll & ScrollOption.PARAMETERIZED and values:
        definitions, values = definitions_of(values[0]), values[1:]
    wanted = PreparedCursor(text_of(parameters[1]), definitions, scroll, concurrency)
    cursor = yield from _open(session, wanted, values, block=_number(parameters, 4))
    handle, kind, guard, count = _opened(cursor)
    return 0, _returned(parameters, {0: handle, 2: kind, 3: guard, 4: count})


def _cursor_prepare(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_cursorprepare @handle OUT, @params, @stmt, @options, @scrollopt, @ccopt."""
    _require("sp_cursorprepare", parameters, ("@prepared_handle", "@params", "@stmt"))
    prepared = PreparedCursor(
        text_of(parameters[2]), definitions_of(parameters[1]), _number(parameters, 4), _number(parameters, 5)
    )
    session.routine(prepared.text, parse_parameters(prepared.definitions), key=prepared.definitions)
    handle = cursors_of(session).prepare(prepared)
    return 0, _returned(parameters, {0: handle})
    yield


def _cursor_execute(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_cursorexecute @handle, @cursor OUT, @scrollopt, @ccopt, @rowcount, values…."""
    _require("sp_cursorexecute", parameters, ("@prepared_handle", "@cursor"))
    prepared = cursors_of(session).find_prepared(parameters[0].value)
    wanted = replace(
        prepared,
        scroll=_number(parameters, 2, prepared.scroll),
        concurrency=_number(parameters, 3, prepared.concurrency),
    )
    cursor = yield from _open(session, wanted, parameters[5:], block=_number(parameters, 4))
    handle, kind, guard, count = _opened(cursor)
    return 0, _returned(parameters, {1: handle, 2: kind, 3: guard, 4: count})


def _cursor_prepare_execute(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_cursorprepexec @handle OUT, @cursor OUT, @params, @stmt, @scrollopt, @ccopt, @rowcount, values…."""
    _require("sp_cursorprepexec", parameters, ("@prepared_handle", "@cursor", "@params", "@stmt"))
    cursors_of(session).prepared.pop(_number(parameters, 0), None)
    prepared = PreparedCursor(
        text_of(parameters[3]),
        definitions_of(parameters[2]),
        _number(parameters, 4, ScrollOption.FORWARD_ONLY),
        _number(parameters, 5),
    )
    prepared_handle = cursors_of(session).prepare(prepared)
    cursor = yield from _open(session, prepared, parameters[7:], block=_number(parameters, 6))
    handle, kind, guard, count = _opened(cursor)
    return 0, _returned(parameters, {0: prepared_handle, 1: handle, 4: kind, 5: guard, 6: count})


def _cursor_unprepare(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    _require("sp_cursorunprepare", parameters, ("@prepared_handle",))
    cursors_of(session).find_prepared(parameters[0].value)
    del cursors_of(session).prepared[_number(parameters, 0)]
    return 0, []
    yield


# ---- using ----------------------------------------------------------------------------------------------------------


def _cursor_fetch(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_cursorfetch @cursor [, @fetchtype, @rownum, @nrows]."""
    _require("sp_cursorfetch", parameters, ("@cursor",))
    cursor = cursors_of(session).find(parameters[0].value, "sp_cursorfetch")
    kind = _number(parameters, 1, Fetch.NEXT) & ~_SKIP_UPDATED
    if kind not in _FETCHES:
        raise cursor_error(16902, procedure="sp_cursorfetch", parameter="fetchtype")
    if kind == Fetch.INFO:
        return 0, _returned(parameters, {2: max(cursor.start + 1, 0), 3: len(cursor.rows)})
    status = cursor.move(Fetch(kind), _number(parameters, 2), _number(parameters, 3, _BLOCK))
    yield from _buffer(session, cursor)
    return status, _returned(parameters, {2: cursor.start + 1, 3: cursor.size})


def _buffer(session: SessionState, cursor: ApiCursor) -> Steps:
    """The rows of the fetch buffer."""
    start = max(cursor.start, 0)
    rows = yield from cursor.rows.read(start, start + cursor.size)
    yield Columns((*cursor.rows.columns, ROWSTAT))
    if rows:
        yield Rows(rows)
    yield _done(session, len(rows))
    return None


def _cursor(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_cursor @cursor, @optype, @rownum, @table [, values…]."""
    _require("sp_cursor", parameters, ("@cursor", "@optype", "@rownum", "@table"))
    cursor = cursors_of(session).find(parameters[0].value, "sp_cursor")
    operation, row, values = _number(parameters, 1) & _OPERATIONS, _number(parameters, 2), parameters[4:]
    if operation == _UPDATE:
        yield from changes.update(session, cursor, row, values)
    elif operation == _DELETE:
        yield from changes.delete(session, cursor, row)
    elif operation == _INSERT:
        yield from changes.insert(session, cursor, values)
    elif operation == _REFRESH:
        yield from _buffer(session, cursor)
    elif operation == _LOCK:
        yield from changes.lock(session, cursor, row)
    elif operation:
        raise cursor_error(16902, procedure="sp_cursor", parameter="optype")
    return 0, []


def _cursor_option(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_cursoroption @cursor, @code, @value: stores options such as a name."""
    _require("sp_cursoroption", parameters, ("@cursor", "@code", "@value"))
    cursor = cursors_of(session).find(parameters[0].value, "sp_cursoroption")
    cursor.options[_number(parameters, 1)] = parameters[2].value
    return 0, []
    yield


def _cursor_close(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_cursorclose @cursor; -1 closes all."""
    _require("sp_cursorclose", parameters, ("@cursor",))
    cursors = cursors_of(session)
    if _number(parameters, 0) == -1:
        cursors.open.clear()
    else:
        del cursors.open[cursors.find(parameters[0].value, "sp_cursorclose").handle]
    return 0, []
    yield


def _require(procedure: str, parameters: Sequence[RpcParameter], names: Sequence[str]) -> None:
    """Refuse a call with too few parameters: 201."""
    if len(parameters) < len(names):
        raise error(201, name=procedure, parameter=names[len(parameters)])


CURSOR_PROCEDURES: Mapping[str, CallProcedure] = {
    "sp_cursor": _cursor,
    "sp_cursoropen": _cursor_open,
    "sp_cursorprepare": _cursor_prepare,
    "sp_cursorexecute": _cursor_execute,
    "sp_cursorprepexec": _cursor_prepare_execute,
    "sp_cursorunprepare": _cursor_unprepare,
    "sp_cursorfetch": _cursor_fetch,
    "sp_cursoroption": _cursor_option,
    "sp_cursorclose": _cursor_close,
}
