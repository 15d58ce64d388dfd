"""The image of a database at one moment: taken while the database is in use, put back later.

Objects keep their identity: an image saves their attributes and sets them again, so that references to a table or a
capture instance stay valid. Its rows are those committed when it was taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from mssql_sandbox.cdc.instances import Captured, CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.scan_sessions import ScanHistory
from mssql_sandbox.engine.log import Log
from mssql_sandbox.engine.storage import index_changes
from mssql_sandbox.engine.storage.columns import Column, Computed, Default, Identity
from mssql_sandbox.engine.storage.constraints import Check, ForeignKey
from mssql_sandbox.engine.storage.database import Database, DatabaseOptions
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.objects import NameMap, Principal, Schema, SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.versions import committed_before

_REMEMBERED = (
    Captured, CaptureInstance, Check, Column, Computed, Database, DatabaseCapture, DatabaseOptions, Default, ForeignKey,
    Identity, Index, Log, NameMap, Principal, Schema, SchemaObject,
)  # fmt: skip
_LEFT = frozenset({"active", "entries", "free", "heap", "history", "id", "recovery", "resource", "server", "versions"})
"""Attributes that are not part of an image, or are restored in another way."""


class Image:
    """The state of a database and of its change data capture."""

    def __init__(self, database: Database, capture: DatabaseCapture | None) -> None:
        self.database = database
        self.capture = capture
        self.name = database.name
        self._states: list[tuple[Any, dict[str, Any]]] = []
        self._seen: set[int] = set()
        self._remember(database)
        if capture is not None:
            self._remember(capture)
        sequence = database.server.transactions.sequence
        self._rows = [
            (table, [committed_before(slot, sequence, None) for slot in table.heap]) for table in database.tables()
        ]

    def put_back(self) -> None:
        """Restore the database to the image. No transaction may be open in it."""
        for item, state in self._states:
            for name, value in state.items():
                setattr(item, name, _copied(value))
        transactions = self.database.server.transactions
        transactions.sequence += 1
        for table, rows in self._rows:
            table.heap = list(rows)
            table.free = [place for place, row in enumerate(rows) if row is None]
            table.versions = 0
            table.schema_sequence = transactions.sequence
            table.rebind()
            for index in table.indexes:
                if not index.disabled:
                    index_changes.rebuild_index(table, index)
        self.database.log.active.clear()
        self.database.name = self.name
        if self.capture is not None:
            self.capture.history = ScanHistory()
            self.capture.commit_times.clear()

    def _remember(self, root: object) -> None:
        waiting = [root]
        while waiting:
            item = waiting.pop()
            if not isinstance(item, _REMEMBERED) or id(item) in self._seen:
                continue
            self._seen.add(id(item))
            state = {
                name: _copied(value)
                for name in _attributes(item)
                if name not in _LEFT and (value := getattr(item, name, _LEFT)) is not _LEFT
            }
            self._states.append((item, state))
            waiting.extend(part for value in state.values() for part in _parts(value))

    @property
    def tables(self) -> list[Table]:
        """The tables whose rows the image holds."""
        return [table for table, _ in self._rows]


def _attributes(item: object) -> Iterator[str]:
    """Names of slots and of instance attributes."""
    for cls in type(item).__mro__:
        slots = getattr(cls, "__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots
    yield from getattr(item, "__dict__", ())


def _copied(value: Any) -> Any:
    """A copy of a container; any other value unchanged."""
    return value.copy() if isinstance(value, list | dict | set | deque) else value


def _parts(value: object) -> Iterable[object]:
    """The value itself, or the contents of a container."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _parts(part)
    elif isinstance(value, list | tuple | set):
        for part in value:
            yield from _parts(part)
    else:
        yield value
