"""Keeps one control connection of a database between sessions.

A run polls every `poll.interval.ms`, and connecting, with TLS and a login, costs the server more than most queries.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from mssql_cdc.config import Connection
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.source.sqlserver.connect import Control, open_control
from mssql_cdc.source.sqlserver.replica import ATTEMPTS, NAME, elsewhere

KEPT_SECONDS = 60.0
"""After this time a new connection is made: the name of the server may lead to another replica by then."""


@dataclass(frozen=True, slots=True)
class _Idle:
    control: Control
    until: float
    replica: str | None = None


@dataclass(slots=True)
class KeptControl:
    """The idle connection of one database, if there is one. A session that finds none opens its own.

    `reached` shows whether there has been one: then a database that cannot be opened later is not a mistake. `replica`
    is the readable secondary that the sessions have reached (`replica`; None: the primary): while a session is open,
    others must reach the same one.
    """

    replica: str | None = None
    reached: bool = False
    _open: int = 0
    _idle: _Idle | None = None
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def session(self, connection: Connection, catalog: str) -> Generator[Control]:
        """A connection that is kept if the block succeeds, and closed if it fails.

        Args:
            connection: How to connect.
            catalog: The database, the same in every call.

        Raises:
            SourceUnavailableError, ConfigurationError: the connection cannot be made; see `classify`.
        """
        taken = self._take() or self._reach(connection, catalog)
        try:
            with self._counted():
                yield taken.control
        except BaseException:
            taken.control.close()
            raise
        self._put(taken)

    @contextmanager
    def apart(self, connection: Connection, catalog: str) -> Generator[Control]:
        """A connection to the same replica that nobody else uses and that is closed after the block.

        Args:
            connection: How to connect.
            catalog: The database, the same in every call.

        Raises:
            SourceUnavailableError, ConfigurationError: the connection cannot be made; see `classify`.
        """
        opened = self._reach(connection, catalog).control
        try:
            with self._counted():
                yield opened
        finally:
            opened.close()

    @contextmanager
    def _counted(self) -> Generator[None]:
        with self._lock:
            self._open += 1
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1

    def _reach(self, connection: Connection, catalog: str) -> _Idle:
        """A new connection, to the same readable secondary as before if there are several, or to the primary again."""
        doing = "opening a session"
        for attempt in range(1, ATTEMPTS + 1):
            opened = open_control(connection, catalog, opened_before=self.reached)
            self.reached = True
            until = time.monotonic() + KEPT_SECONDS
            if not connection.read_only:
                return _Idle(opened, until)
            try:
                found = opened.value(NAME, doing="asking for the replica's name")
                with self._lock:
                    is_free = not self._open and (self.replica is None or attempt == ATTEMPTS)
                    if found == self.replica or is_free:
                        self.replica = found
                        return _Idle(opened, until, found)
            except BaseException:
                opened.close()
                raise
            opened.close()
        raise elsewhere(self.replica, doing=doing)

    def _take(self) -> _Idle | None:
        """The idle connection if it still works."""
        with self._lock:
            found, self._idle = self._idle, None
        if found is None:
            return None
        try:
            if time.monotonic() < found.until and found.replica == self.replica:
                found.control.value("SELECT 1", doing="using a connection again")
                return found
        except MssqlCdcError:
            pass  # The server has closed it, or is gone; a new connection shows which.
        found.control.close()
        return None

    def _put(self, taken: _Idle) -> None:
        with self._lock:
            if self._idle is None and not taken.control.altered:
                self._idle = taken
                return
        taken.control.close()
