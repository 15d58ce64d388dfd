"""What the storm needs from a world: a source that can be changed at will, and the connector's database over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import SourceError
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import OffsetRow
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.protocol import Source

KEYED, KEYLESS = ("orders", "people"), ("notes",)
TABLES = (*KEYED, *KEYLESS)
"""Every table has the columns `id` and `name`; `id` is the key where there is one."""
PARTS: Mapping[str, Callable[[int], bool]] = {"id < 2": lambda key: key < 2, "id >= 2": lambda key: key >= 2}
"""Conditions that part a table's rows, for filters of signals and statements of the configuration, by `id`."""

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

    def fork_is_hidden(self) -> bool:
        """Whether the login may not see it."""
        ...

    def hide_fork(self) -> None:
        """The login may not see the recovery fork when it asks for the log's end, where a world can do that."""
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

    def rename(self, name: str, to: str) -> None:
        """Give a table another name; it stays what it is, and captured."""
        ...

    def clean_up(self, kept: int, *, only: str | None = None) -> None:
        """The cleanup job, of one table or of all: only the newest `kept` captured transactions stay."""
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

    def captured_columns_by_event(self, name: str) -> Mapping[str, Collection[str]] | None:
        """The columns that the newest instance captured, by commit LSN of the table's changes; None: not known."""
        ...

    def check_emitted(self, name: str, log: Sequence[Mapping[str, Any]]) -> None:
        """Fail if a row of an incremental snapshot in a change log was none of the source, where that is known."""
        ...

    def is_read(self, object_id: int, number: int, end: Lsn, position: Lsn) -> bool:
        """Whether the stream of a table has everything up to `end`, and whatever the snapshot of this number has shown.

        True where that is not known. `position` is where the stream stands.
        """
        ...

    def configure(self, **properties: str) -> None:
        """Give the connector, which is `database` from then on, these properties."""
        ...

    def open(self) -> AbstractContextManager[object]:
        """Holds while the schedule is played; cleans up at its end."""
        ...


MOST_OPENED = 1_000
"""Sessions and readers that must do for a step."""


@dataclass
class Judged:
    """`_offsets` as the judge saw it last."""

    offsets: Offsets | None = None
    rows: list[OffsetRow] = field(default_factory=list[OffsetRow])


class Interruption:
    """A source in front of the real one: lets something happen between two of the connector's calls, once.

    While a table is locked nothing happens, because writers would wait. With `inside`, it may happen between two calls
    of one session.
    """

    def __init__(self, source: Source, object_id: Callable[[str], int | None], *, inside: bool = False) -> None:
        self._source, self._object_id = source, object_id
        self._inside = inside
        self._action: Callable[[], None] | None = None
        self._at = self._within = 0
        self._locked = False
        self.opened = 0
        """What was opened since a step began."""
        self.refused: set[str] = set()
        """Tables whose changes the login may not read."""
        self.denied: set[str] = set()
        """Tables of the source whose chunks it may not read."""
        self.judged = Judged()

    def object_id(self, name: str) -> int | None:
        """The identity of the table that has this name at the source; None: there is none."""
        return self._object_id(name)

    def arm(self, action: Callable[[], None] | None, *, at: int = 0, within: int = 0) -> None:
        """Let `action` happen behind `at` further calls that open a session or a reader; None: nothing.

        Args:
            action: What happens.
            at: How many calls that open something come first.
            within: How many calls of a session come then, if they can be told apart.
        """
        self._action, self._at, self._within = action, at, within if self._inside else 0

    @contextmanager
    def session(self, catalog: str) -> Iterator[Any]:
        """As the source's."""
        self._opens()
        with self._source.session(catalog) as session:
            yield _Session(session, self.calls if self._inside else _nothing, self.denied)

    def change_reader(self, *arguments: Any, **more: Any) -> Any:
        """As the source's."""
        self._opens()
        reader, instance = self._source.change_reader(*arguments, **more), arguments[1]
        return _Refused(instance.name) if instance.schema.table_id.name in self.refused else reader

    def shares(self, reader: Any) -> bool:
        """As the source's."""
        return not isinstance(reader, _Refused) and self._source.shares(reader)

    def share(self, readers: Any) -> Any:
        """As the source's."""
        self._opens()
        return self._source.share(readers)

    def chunk_reader(self, catalog: str, wanted: Any) -> Any:
        """As the source's."""
        self._opens()
        return self._source.chunk_reader(catalog, wanted)

    @contextmanager
    def locked(self, catalog: str, schemas: Sequence[TableSchema]) -> Iterator[Any]:
        """As the source's."""
        with self._source.locked(catalog, schemas) as lock:
            self._locked = True
            try:
                yield lock
            finally:
                self._locked = False

    def calls(self) -> None:
        """A session is asked something."""
        if self._action is None or self._locked or self._at >= 0:
            return
        self._within -= 1
        if not self._within:
            self._happens()

    def _opens(self) -> None:
        """A session or a reader is opened."""
        self.opened += 1
        assert self.opened < MOST_OPENED, "a step does not end"
        if self._action is None or self._locked or self._at < 0:
            return
        self._at -= 1
        if self._at < 0 and not self._within:
            self._happens()

    def _happens(self) -> None:
        action, self._action = self._action, None
        if action is not None:
            action()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


@dataclass(frozen=True)
class _Refused:
    """Reads what the login may not read."""

    name: str

    def read(self) -> Iterator[Any]:
        """As the readers'."""
        raise SourceError(f"The SELECT permission was denied on the object '{self.name}_CT'")


class _Session:
    """A session of the source, each call of which is told beforehand; it plans no chunk of a denied table."""

    def __init__(self, session: Any, calls: Callable[[], None], denied: Collection[str]) -> None:
        self._session, self._calls, self._denied = session, calls, denied

    def next_bound(self, schema: TableSchema, *arguments: Any, **more: Any) -> Any:
        """As the session's."""
        self._calls()
        if schema.table_id.name in self._denied:
            raise SourceError(f"The SELECT permission was denied on the object '{schema.table_id.name}'")
        return self._session.next_bound(schema, *arguments, **more)

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._session, name)

        def told(*arguments: Any, **more: Any) -> Any:
            self._calls()
            return asked(*arguments, **more)

        return told


def _nothing() -> None:
    """Where calls of a session are not told."""
