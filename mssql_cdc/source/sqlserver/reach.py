"""Whether a server can be reached at all: its name, its port, and a first answer, before a driver's login time-out.

A driver reports an unknown host, a closed port and a server that hangs alike, after the whole time-out. Logins and TLS
are `connect`'s.
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


_PRELOGIN = bytes.fromhex("1201001a0000010000000b00060100110001ff00000000000002")
"""A TDS PRELOGIN packet (MS-TDS 2.2.6.5) with a version and no encryption: every server answers it at once."""


def require_reachable(connection: Connection) -> None:
    """Make sure that the server's name is known, that something listens on its port, and that it answers.

    Nothing is asked about a named instance, which the browser service finds, and about a server that `odbc.*` names.
    With `encrypt=strict` a server answers to TLS only, so no answer is waited for.

    Raises:
        SourceUnavailableError: which of the three is wrong.
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
    end = time.monotonic() + seconds
    opened = _connected(addresses, end)
    if opened is None:
        raise SourceUnavailableError(
            f"Cannot connect to {host}:{port} within {seconds:g} s; check database.hostname and database.port, that "
            "SQL Server runs with TCP/IP enabled, and the firewalls in between"
        )
    with opened:
        if not _is_strict(connection) and not _answers(opened, end):
            raise SourceUnavailableError(
                f"{host}:{port} accepts connections and does not answer (waited up to {seconds:g} s): check whether "
                "database.port is SQL Server's, and whether the server hangs or is still starting"
            )


def probe_seconds(connection: Connection) -> float:
    """How long the server has to accept a connection: `connection.validation.timeout.ms`, if it is set."""
    configured = connection.validation_timeout_ms
    return min(MOST_SECONDS if configured is None else configured / 1000, max(connection.login_timeout_s, 1))


def _is_strict(connection: Connection) -> bool:
    settings = [(one.name, one.value) for one in (*connection.driver_settings, *connection.database_settings)]
    settings += [(one.keyword, one.value) for one in connection.odbc_extra]
    return any(name.lower() in ("encrypt", "encryption") and str(value).lower() == "strict" for name, value in settings)


def _connected(addresses: Sequence[tuple[Any, ...]], end: float) -> socket.socket | None:
    """The first connection that is accepted in time; all are tried at once, as a listener may have many addresses."""
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
                    waiting.unregister(key.fileobj)
                    if key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                        return key.fileobj
                    key.fileobj.close()
            return None
        finally:
            for key in list(waiting.get_map().values()):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()


def _answers(opened: socket.socket, end: float) -> bool:
    """Whether the server answers the first packet of a login; what it answers is the driver's business."""
    opened.settimeout(max(end - time.monotonic(), 0.01))
    try:
        opened.sendall(_PRELOGIN)
        return bool(opened.recv(1))
    except OSError:
        return False
