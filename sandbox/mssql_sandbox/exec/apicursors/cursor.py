"""One open server cursor: its kind, and the position of its fetch buffer.

A buffer is the block of rows that the last fetch returned; fetches are relative to it. The rules of FETCH_FIRST to
FETCH_PREV_NOADJUST are those of sp_cursorfetch (Microsoft's documentation of the system stored procedures); return
status 2 of an adjusted move is known from mssql-jdbc's source.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mssql_sandbox.errors import error
from mssql_sandbox.exec.apicursors.messages import cursor_error
from mssql_sandbox.exec.apicursors.rows import RowSource
from mssql_sandbox.exec.session_state import SessionState

MAX_CURSORS = 5_000
_FIRST_HANDLE = 180_150_003
ADJUSTED = 2


class ScrollOption(enum.IntFlag):
    """The requested kind of a cursor and, from 0x1000 on, further options."""

    KEYSET = 0x01
    DYNAMIC = 0x02
    FORWARD_ONLY = 0x04
    STATIC = 0x08
    FAST_FORWARD = 0x10
    PARAMETERIZED = 0x1000
    AUTO_FETCH = 0x2000
    AUTO_CLOSE = 0x4000


class ConcurrencyOption(enum.IntFlag):
    """The concurrency option of a cursor."""

    READ_ONLY = 0x01
    SCROLL_LOCKS = 0x02
    OPTIMISTIC = 0x04
    OPTIMISTIC_VALUES = 0x08
    ALLOW_DIRECT = 0x2000


class Fetch(enum.IntEnum):
    """The kinds of fetches."""

    FIRST = 0x01
    NEXT = 0x02
    PREV = 0x04
    LAST = 0x08
    ABSOLUTE = 0x10
    RELATIVE = 0x20
    REFRESH = 0x80
    INFO = 0x100
    PREV_NOADJUST = 0x200


@dataclass(slots=True)
class ApiCursor:
    """An open cursor. `start` is the zero-based position of the buffer's first row, -1 before all rows."""

    handle: int
    rows: RowSource
    scroll: ScrollOption
    concurrency: ConcurrencyOption
    options: dict[int, object] = field(default_factory=dict)
    start: int = -1
    size: int = 0

    @property
    def forward_only(self) -> bool:
        """Whether only the next rows can be fetched."""
        return bool(self.scroll & (ScrollOption.FORWARD_ONLY | ScrollOption.FAST_FORWARD))

    def move(self, fetch: Fetch, row: int, count: int) -> int:
        """Position the buffer and return the status. 16911 for a fetch that forward-only cursors do not have."""
        if self.forward_only and fetch not in (Fetch.NEXT, Fetch.REFRESH, Fetch.INFO, Fetch.FIRST):
            raise cursor_error(16911, procedure="sp_cursorfetch", fetch=fetch.name)
        if fetch in (Fetch.REFRESH, Fetch.INFO):
            return 0
        total, count = len(self.rows), max(count, 0)
        start, stop = _MOVES[fetch](self, row, count)
        status = 0
        if start < 0 and fetch is not Fetch.PREV_NOADJUST and stop > 0:
            # A move before the first row returns the first rows instead, and reports the adjustment.
            start, stop, status = 0, count, ADJUSTED
        elif start < 0 and (fetch is Fetch.PREV or row < 0):
            start, stop, status = 0, count, ADJUSTED
        start, stop = max(start, -1), min(stop, total)
        self.start, self.size = min(start, total), max(stop - max(start, 0), 0)
        return status

    def place(self, row: int) -> int:
        """The position of the buffer's `row`-th row (from 1); 16930 if it is not in the buffer."""
        if not 1 <= row <= self.size:
            raise cursor_error(16930)
        return self.start + row - 1


def _next(cursor: ApiCursor, _row: int, count: int) -> tuple[int, int]:
    start = cursor.start + cursor.size if cursor.size else max(cursor.start, 0)
    return start, start + count


def _first(_cursor: ApiCursor, _row: int, count: int) -> tuple[int, int]:
    return (0, count) if count else (-1, -1)


def _last(cursor: ApiCursor, _row: int, count: int) -> tuple[int, int]:
    total = len(cursor.rows)
    return (max(total - count, 0), total) if count else (total, total)


def _previous(cursor: ApiCursor, _row: int, count: int) -> tuple[int, int]:
    return cursor.start - count, cursor.start


def _previous_unadjusted(cursor: ApiCursor, _row: int, count: int) -> tuple[int, int]:
    if cursor.start <= 0:
        return -1, -1
    return max(cursor.start - count, 0), cursor.start


def _absolute(cursor: ApiCursor, row: int, count: int) -> tuple[int, int]:
    start = row - 1 if row >= 0 else len(cursor.rows) + row
    return (start, start + count) if row else (-1, -1)


def _relative(cursor: ApiCursor, row: int, count: int) -> tuple[int, int]:
    start = cursor.start + row
    return start, start + count


_MOVES: Mapping[Fetch, Callable[[ApiCursor, int, int], tuple[int, int]]] = {
    Fetch.FIRST: _first,
    Fetch.NEXT: _next,
    Fetch.PREV: _previous,
    Fetch.LAST: _last,
    Fetch.ABSOLUTE: _absolute,
    Fetch.RELATIVE: _relative,
    Fetch.PREV_NOADJUST: _previous_unadjusted,
}


@dataclass(slots=True)
class PreparedCursor:
    """A statement behind a handle of sp_cursorprepare or sp_cursorprepexec, with the options it was prepared with."""

    text: str
    definitions: str
    scroll: int = 0
    concurrency: int = 0


@dataclass(slots=True)
class ApiCursors:
    """Open cursors and prepared ones of a session."""

    open: dict[int, ApiCursor] = field(default_factory=dict)
    prepared: dict[int, PreparedCursor] = field(default_factory=dict)
    _handles: itertools.count[int] = field(default_factory=lambda: itertools.count(_FIRST_HANDLE, 2))
    _prepared_handles: itertools.count[int] = field(default_factory=lambda: itertools.count(1_073_741_824))

    def add(self, rows: RowSource, scroll: ScrollOption, concurrency: ConcurrencyOption) -> ApiCursor:
        """Open a cursor; 701 if there are too many."""
        if len(self.open) >= MAX_CURSORS:
            raise error(701, pool="default")
        cursor = ApiCursor(next(self._handles), rows, scroll, concurrency)
        self.open[cursor.handle] = cursor
        return cursor

    def find(self, handle: object, procedure: str) -> ApiCursor:
        """An open cursor; 16909 for an unknown handle."""
        found = self.open.get(handle) if isinstance(handle, int) else None
        if found is None:
            raise cursor_error(16909, procedure=procedure, handle=_hexadecimal(handle))
        return found

    def prepare(self, prepared: PreparedCursor) -> int:
        """Store a prepared cursor and return its handle."""
        if len(self.prepared) >= MAX_CURSORS:
            raise error(701, pool="default")
        handle = next(self._prepared_handles)
        self.prepared[handle] = prepared
        return handle

    def find_prepared(self, handle: object) -> PreparedCursor:
        """A prepared cursor; 8179 for an unknown handle."""
        found = self.prepared.get(handle) if isinstance(handle, int) else None
        if found is None:
            raise error(8179, handle=handle)
        return found


def _hexadecimal(handle: object) -> str:
    return f"{handle:x}" if isinstance(handle, int) else "0"


def cursors_of(session: SessionState) -> ApiCursors:
    """The cursors of a session."""
    found = session.api_cursors
    assert isinstance(found, ApiCursors)
    return found
