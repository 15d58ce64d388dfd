"""Whether a server can be reached at all: its name and its port, before a driver spends its login time-out on them.

A driver reports an unknown host and a closed port alike, after the whole time-out. Logins and TLS are `connect`'s.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from typing import Any

from mssql_cdc.config import Connection
from mssql_cdc.errors import SourceUnavailableError

MOST_SECONDS = 4.0
"""A server that takes longer to accept a connection is not there; with the login, a fault is named within 5 s."""


def require_reachable(connection: Connection) -> None:
    """Make sure that the server's name is known and that something listens on its port.

    Nothing is asked about a named instance, which the browser service finds, and about a server that `odbc.*` names.

    Raises:
        SourceUnavailableError: which of the two is wrong.
    """
    own = {setting.keyword.lower() for setting in connection.odbc_extra}
    if connection.port is None or own & {"server", "address", "addr"}:
        return
    host, port, seconds = connection.hostname, connection.port, probe_seconds(connection)
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SourceUnavailableError(
            f"Cannot resolve the host {host!r} ({error.strerror}); check database.hostname and DNS"
        ) from None
    if not _accepts(addresses, seconds):
        raise SourceUnavailableError(
            f"Cannot connect to {host}:{port} within {seconds:g} s; check database.hostname and database.port, that "
            "SQL Server runs with TCP/IP enabled, and the firewalls in between"
        )


def probe_seconds(connection: Connection) -> float:
    """How long the server has to accept a connection: `connection.validation.timeout.ms`, if it is set."""
    configured = connection.validation_timeout_ms
    return min(MOST_SECONDS if configured is None else configured / 1000, max(connection.login_timeout_s, 1))


def _accepts(addresses: Sequence[tuple[Any, ...]], seconds: float) -> bool:
    """Whether one of the addresses accepts a connection in time; all are tried at once, as a listener may have many."""
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as waiting:
        try:
            for family, kind, protocol, _, address in addresses:
                one = socket.socket(family, kind, protocol)
                one.setblocking(False)
                one.connect_ex(address)
                waiting.register(one, selectors.EVENT_WRITE)
            while waiting.get_map() and (left := end - time.monotonic()) > 0:
                for key, _ in waiting.select(left):
                    assert isinstance(key.fileobj, socket.socket)
                    if key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                        return True
                    waiting.unregister(key.fileobj)
                    key.fileobj.close()
            return False
        finally:
            for key in list(waiting.get_map().values()):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()
