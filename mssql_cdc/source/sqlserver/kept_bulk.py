"""Keeps bulk connections between ranges; small tables are read together over them (`shared_read`).

A new connection costs the server more, with TLS and a login, than the hundred rows that it is often opened for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from mssql_cdc.config import Connection
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.source.sqlserver.bulk import ArrowBulk, connect_bulk
from mssql_cdc.source.sqlserver.kept import KEPT_SECONDS

_MOST = 2
"""How many are kept: a range is read over two at most."""


@dataclass(slots=True)
class Lent:
    """A connection while it is read from; `is_spent`: it is closed afterwards, and not kept."""

    bulk: ArrowBulk
    until: float
    is_spent: bool = False


@dataclass(slots=True)
class KeptBulks:
    """The idle bulk connections of one database; each has been rolled back, and is at most `KEPT_SECONDS` old."""

    _idle: list[Lent] = field(default_factory=list[Lent])
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def lend(
        self, connection: Connection, catalog: str, *, fetch_rows: int | None, require: Callable[[ArrowBulk], None]
    ) -> Generator[Lent]:
        """A connection that is kept if the block succeeds, and closed if it fails.

        Args:
            connection: How to connect.
            catalog: The database, the same in every call.
            fetch_rows: The number of rows per fetch, the same in every call.
            require: What must hold for the connection. A kept one for which it does not hold is replaced: the server
                has closed it, or it leads to a replica that lags.

        Raises:
            SourceUnavailableError, ConfigurationError: the connection cannot be made; see `classify`.
            MssqlCdcError: what `require` raises on a new connection.
        """
        lent = self._take(require) or self._connect(connection, catalog, fetch_rows, require)
        try:
            yield lent
            if not lent.is_spent:
                lent.bulk.rollback()
        except BaseException:
            lent.bulk.close()
            raise
        self._put(lent)

    def _take(self, require: Callable[[ArrowBulk], None]) -> Lent | None:
        with self._lock:
            found = self._idle.pop() if self._idle else None
        if found is None:
            return None
        try:
            if time.monotonic() < found.until:
                require(found.bulk)
                return found
        except MssqlCdcError:
            pass  # A new connection shows whether the old one was the problem.
        except BaseException:
            found.bulk.close()
            raise
        found.bulk.close()
        return None

    def _connect(
        self, connection: Connection, catalog: str, fetch_rows: int | None, require: Callable[[ArrowBulk], None]
    ) -> Lent:
        until = time.monotonic() + KEPT_SECONDS
        bulk = connect_bulk(connection, catalog, fetch_rows=fetch_rows)
        try:
            require(bulk)
        except BaseException:
            bulk.close()
            raise
        return Lent(bulk, until)

    def _put(self, lent: Lent) -> None:
        with self._lock:
            if not lent.is_spent and len(self._idle) < _MOST:
                self._idle.append(lent)
                return
        lent.bulk.close()
