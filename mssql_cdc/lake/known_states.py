"""What was read from Delta tables that have not changed since: they are neither opened nor read again.

Opening a Delta table takes milliseconds, and a connector has hundreds that have not changed since its last step.
Whether one has changed is seen in its log, without reading the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast
from zlib import crc32

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.log import TableState, load_state
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.opened import open_table
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_log import commit_path
from mssql_cdc.schema import TableSchema

T = TypeVar("T")
_KEPT_SECONDS = 60.0
_SPREAD = 32


@dataclass(frozen=True, slots=True)
class _Known:
    """A value that was read from a version; `stamp` distinguishes its commit from that of a table put in its place."""

    folder: Folder
    version: int
    stamp: str
    value: object

    def is_newest(self) -> bool:
        """Whether the log still ends with the same commit."""
        after, own = commit_path(self.version + 1), commit_path(self.version)
        return self.folder.stamp(after) is None and self.folder.stamp(own) == self.stamp


@dataclass(slots=True)
class KnownTables:
    """Values by the tables that they were read from."""

    _known: dict[str, _Known] = field(default_factory=dict[str, _Known])
    _states: dict[str, TableState] = field(default_factory=dict[str, TableState])

    def get(self, uri: str, load: Callable[[], T], storage: Storage = LOCAL) -> T:
        """What `load` returned for this version of the table; `load` is called again after a newer commit.

        Args:
            uri: The table's folder.
            load: Reads the table. It may read a newer version than there was before.
            storage: How to reach the folder.
        """
        known = self._newest(uri)
        if known is not None:
            return cast("T", known.value)
        if not exists(uri, storage):
            self._known.pop(uri, None)
            return load()
        version = open_table(uri, storage).version()
        value = load()
        self.keep(uri, version, value, storage)
        return value

    def last(self, uri: str, kind: type[T]) -> T | None:
        """What was read last, perhaps from an earlier version.

        Args:
            uri: The table's folder.
            kind: The type of the value.
        """
        known = self._known.get(uri)
        return known.value if known is not None and isinstance(known.value, kind) else None

    def state(self, uri: str) -> TableState | None:
        """The state that was kept for the next commit, if the log still ends with it.

        Args:
            uri: The table's folder.
        """
        state, known = self._states.get(uri), self._newest(uri)
        return state if state is not None and known is not None and known.version == state.delta_version else None

    def keep(
        self, uri: str, version: int, value: object, storage: Storage = LOCAL, *, state: TableState | None = None
    ) -> None:
        """Remember a value.

        Args:
            uri: The table's folder.
            version: The Delta version that it was read from.
            value: The value.
            storage: How to reach the folder.
            state: The state of this version, for the next commit.
        """
        self._states.pop(uri, None)
        known = self._known.pop(uri, None)
        folder = known.folder if known is not None else Folder(uri, storage)
        stamp = folder.stamp(commit_path(version))
        if stamp is None:
            return  # Log cleanup has removed the commit.
        self._known[uri] = _Known(folder, version, stamp, value)
        if state is not None:
            self._states[uri] = state

    def _newest(self, uri: str) -> _Known | None:
        """What is known, if the log still ends with it.

        A folder keeps the options that it was opened with. If it cannot be reached, they may have changed since, as
        when a token is renewed: the table is opened again.
        """
        known = self._known.get(uri)
        try:
            return known if known is not None and known.is_newest() else None
        except StorageError:
            self._known.pop(uri, None)
            return None


@dataclass(slots=True)
class KnownStates:
    """The newest known state of each change log, as the stream's writer sees it."""

    _known: KnownTables = field(default_factory=KnownTables)

    def load(self, uri: str, *, owner: str, storage: Storage = LOCAL) -> TableState | None:
        """The known state; `load_state` if the table has changed since.

        Args:
            uri: The table's folder.
            owner: The table's app id.
            storage: How to reach the folder.

        Raises:
            StorageError: The table cannot be opened, or belongs to another connector.
        """

        def fresh() -> TableState | None:
            return load_state(uri, owner=owner, storage=storage)

        state = self._known.get(uri, fresh, storage)
        return state if state is None or state.owner == owner else fresh()

    def keep(self, state: TableState) -> None:
        """Remember the state after a commit."""
        self._known.keep(state.uri, state.delta_version, state, state.storage)


@dataclass(slots=True)
class CaughtUp:
    """The current tables that had every row up to a `_batch` when their logs were last read.

    Only a user who removes or replaces a table takes rows away, which is noticed after `_KEPT_SECONDS` at the latest.
    """

    _known: dict[str, _Reached] = field(default_factory=dict[str, "_Reached"])

    def holds(self, uri: str, newest: TableSchema, up_to: int) -> bool:
        """Whether the table is known to have every row.

        Args:
            uri: The table's folder.
            newest: The newest structure of its rows.
            up_to: The last `_batch` that it must have.
        """
        known = self._known.get(uri)
        return known is not None and (
            known.up_to >= up_to and known.newest == newest and time.monotonic() < known.until
        )

    def keep(self, uri: str, newest: TableSchema, up_to: int) -> None:
        """Remember that the table has every row.

        Args:
            uri: The table's folder.
            newest: The newest structure of its rows.
            up_to: The last `_batch` that it has.
        """
        # Tables that are remembered in the same step are read again in different steps.
        share = 1 - crc32(uri.encode()) % _SPREAD / (2 * _SPREAD)
        self._known[uri] = _Reached(newest, up_to, time.monotonic() + share * _KEPT_SECONDS)

    def forget(self, uri: str) -> None:
        """Forget a table that turned out to lack rows.

        Args:
            uri: The table's folder.
        """
        self._known.pop(uri, None)


@dataclass(frozen=True, slots=True)
class _Reached:
    newest: TableSchema
    up_to: int
    until: float
