"""What the storm needs from a world: a source that can be changed at will, and the connector's database over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from mssql_cdc.capture.database import Database
from mssql_cdc.source.protocol import Source

KEYED, KEYLESS = ("orders", "people"), ("notes",)
TABLES = (*KEYED, *KEYLESS)
"""Every table has the columns `id` and `name`; `id` is the key where there is one."""

Change = tuple[str, int, str | None]
"""Table, `id` and new `name`; None deletes the row."""


class World(Protocol):
    """A captured database and the lake that follows it."""

    database: Database
    merges: bool
    keyed: tuple[str, ...]
    writes: tuple[str, ...]
    interruption: Interruption

    def change(self, *changes: Change) -> None:
        """One transaction: each change inserts, updates or deletes the row with this id."""
        ...

    def move(self, name: str, key: int, to: int) -> None:
        """One transaction that gives a row another id, if there is such a row and the other id is free."""
        ...

    def begin_scan(self) -> None:
        """A scan begins, which sees nothing that comes later; `scan` ends it."""
        ...

    def scan(self, most: int) -> None:
        """One scan of the capture job over at most so many transactions."""
        ...

    def beat(self) -> None:
        """A transaction that no table of the schedule sees, where one is needed to show how far capture has come."""
        ...

    def restart(self) -> None:
        """The server forgets what it keeps in memory only."""
        ...

    def enable(self, name: str, *, more: bool = False) -> None:
        """A further capture instance, if there is room for one; with `more`, of a table with one more column."""
        ...

    def disable(self, name: str, *, oldest_only: bool = False) -> None:
        """Drop the table's capture instances, or the older one of two."""
        ...

    def dark(self) -> set[str]:
        """The tables that no instance captures."""
        ...

    def drop_and_create(self, name: str) -> None:
        """A new, empty table of the same name, under capture again."""
        ...

    def clean_up(self, kept: int) -> None:
        """The cleanup job: only the newest `kept` captured transactions stay in the change tables."""
        ...

    def back_up(self) -> None:
        """Remember the database as it is now."""
        ...

    def restore(self) -> None:
        """Bring the remembered database back."""
        ...

    def rows(self, name: str) -> Counter[tuple[int, str]]:
        """The rows of a source table."""
        ...

    def captured_events(self, name: str) -> Counter[str] | None:
        """Commit LSNs of the table's changes that were captured, as often as there are changes; None: not known."""
        ...

    def open(self) -> AbstractContextManager[object]:
        """Holds while the schedule is played; cleans up at its end."""
        ...


class Interruption:
    """A source in front of the real one: lets something happen between two of the connector's calls, once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._action: Callable[[], None] | None = None
        self._at = 0

    def arm(self, action: Callable[[], None] | None, *, at: int = 0) -> None:
        """Let `action` happen behind `at` further calls that open a session or a reader; None: nothing."""
        self._action, self._at = action, at

    def session(self, catalog: str) -> Any:
        """As the source's."""
        self._interrupt()
        return self._source.session(catalog)

    def change_reader(self, *arguments: Any, **more: Any) -> Any:
        """As the source's."""
        self._interrupt()
        return self._source.change_reader(*arguments, **more)

    def shares(self, reader: Any) -> bool:
        """As the source's."""
        return self._source.shares(reader)

    def share(self, readers: Any) -> Any:
        """As the source's."""
        self._interrupt()
        return self._source.share(readers)

    def chunk_reader(self, catalog: str, wanted: Any) -> Any:
        """As the source's; nobody writes into a table that is locked."""
        if not wanted.under_lock:
            self._interrupt()
        return self._source.chunk_reader(catalog, wanted)

    def _interrupt(self) -> None:
        if self._action is None:
            return
        if self._at:
            self._at -= 1
            return
        action, self._action = self._action, None
        action()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)
