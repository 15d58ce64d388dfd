"""Whether a server can be reached at all: its name, its port, and a first answer, before a driver's login time-out.

A driver reports an unknown host, a closed port and a server that hangs in the same way, after the whole time-out.
Logins and TLS belong to `connect`.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from queue import Empty, Queue
from threading import Thread
from typing import Any

from mssql_cdc.config import Connection
from mssql_cdc.errors import SourceUnavailableError
from mssql_cdc.source.sqlserver.address import DEFAULT_PORT, ServerAddress, address_of

MOST_SECONDS = 4.0
"""A server that takes longer to accept a connection is not there; with the login, a fault is reported within 5 s."""
BROWSER_PORT = 1434
_ASK_AGAIN_SECONDS = 1.0
_DEFAULT_INSTANCE = "MSSQLSERVER"

_PRELOGIN = bytes.fromhex("1201001a0000010000000b00060100110001ff00000000000002")
"""A TDS PRELOGIN packet (MS-TDS 2.2.6.5) with a version and no encryption: every server answers it at once."""


def require_reachable(connection: Connection) -> None:
    """Check that the server's name resolves, that something listens on its port, and that it answers.

    The port of a named instance is queried the way drivers do it. With `encrypt=strict`, a server answers only to TLS,
    so no answer is awaited. Nothing is tried if only the driver knows the address (`address`).

    Raises:
        SourceUnavailableError: one of these fails; the message says which.
    """
    server = address_of(connection)
    if server is None:
        return
    seconds = probe_seconds(connection)
    end = time.monotonic() + seconds
    addresses = _resolved(server, end, seconds)
    port = server.port if server.port is not None else _port_of_instance(server, addresses, end, seconds)
    opened = _connected([(*one[:4], (one[4][0], port, *one[4][2:])) for one in addresses], end)
    place = f"{server.host}:{port}"
    if opened is None:
        raise SourceUnavailableError(
            f"Cannot connect to {place} within {seconds:g} s; check {_properties(server)}, that "
            "SQL Server runs with TCP/IP enabled, and the firewalls in between"
        )
    with opened:
        if not _is_strict(connection) and not _answers(opened, end):
            raise SourceUnavailableError(
                f"{place} accepts connections and does not answer (waited up to {seconds:g} s): check whether "
                f"{server.port_property} is SQL Server's, and whether the server hangs or is still starting"
            )


def _properties(server: ServerAddress) -> str:
    if server.host_property == server.port_property:
        return server.host_property
    return f"{server.host_property} and {server.port_property}"


def _resolved(server: ServerAddress, end: float, seconds: float) -> Sequence[tuple[Any, ...]]:
    """The addresses of the host; a look-up has no time-out of its own, so it runs in a thread."""
    found: Queue[Sequence[tuple[Any, ...]] | OSError] = Queue()

    def look_up() -> None:
        try:
            found.put(socket.getaddrinfo(server.host, server.port or 0, type=socket.SOCK_STREAM))
        except OSError as error:
            found.put(error)

    Thread(target=look_up, name="look-up", daemon=True).start()
    try:
        answer = found.get(timeout=max(end - time.monotonic(), 0.01))
    except Empty:
        raise SourceUnavailableError(
            f"Cannot resolve the host {server.host!r} within {seconds:g} s: DNS does not answer; check "
            f"{server.host_property} and DNS"
        ) from None
    if isinstance(answer, OSError):
        raise SourceUnavailableError(
            f"Cannot resolve the host {server.host!r} ({answer.strerror}); check {server.host_property} and DNS"
        )
    return answer


def _port_of_instance(server: ServerAddress, addresses: Sequence[tuple[Any, ...]], end: float, seconds: float) -> int:
    """The TCP port of a named instance, as the browser service of its host reports it (MC-SQLR)."""
    instance = server.instance or ""
    if not instance or instance.upper() == _DEFAULT_INSTANCE:
        return DEFAULT_PORT
    answer = _browser_answer(instance, addresses, end)
    if answer is None:
        raise SourceUnavailableError(
            f"{server.host} does not tell the port of the instance {instance!r} (waited up to {seconds:g} s): check "
            "database.instance, that the service SQL Server Browser runs, and that UDP port 1434 is open; or set "
            "database.port, which needs neither"
        )
    parts = answer.split(";")
    ports = [after for name, after in pairwise(parts) if name.lower() == "tcp" and after.isdecimal()]
    if not ports:
        raise SourceUnavailableError(
            f"The instance {instance!r} on {server.host} has no TCP port: enable TCP/IP for it in SQL Server "
            "Configuration Manager"
        )
    return int(ports[0])


def _browser_answer(instance: str, addresses: Sequence[tuple[Any, ...]], end: float) -> str | None:
    """What the browser service reports about an instance; None: it is not running, or knows no such instance."""
    request = b"\x04" + instance.encode() + b"\0"
    with selectors.DefaultSelector() as waiting:
        try:
            for family, _, _, _, address in addresses:
                one = socket.socket(family, socket.SOCK_DGRAM)
                one.setblocking(False)
                waiting.register(one, selectors.EVENT_READ, (address[0], BROWSER_PORT, *address[2:]))
            while (left := end - time.monotonic()) > 0:
                for key in list(waiting.get_map().values()):
                    assert isinstance(key.fileobj, socket.socket)
                    with suppress(OSError):
                        key.fileobj.sendto(request, key.data)
                for key, _ in waiting.select(min(left, _ASK_AGAIN_SECONDS)):
                    assert isinstance(key.fileobj, socket.socket)
                    with suppress(OSError):
                        answer = key.fileobj.recv(65_535)
                        if answer[:1] == b"\x05":
                            return answer[3:].decode("ascii", "replace")
            return None
        finally:
            for key in list(waiting.get_map().values()):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()


def probe_seconds(connection: Connection) -> float:
    """How long the server has to accept a connection: `connection.validation.timeout.ms`, if it is set."""
    configured = connection.validation_timeout_ms
    return min(MOST_SECONDS if configured is None else configured / 1000, max(connection.login_timeout_s, 1))


def _is_strict(connection: Connection) -> bool:
    settings = [(one.name, one.value) for one in (*connection.driver_settings, *connection.database_settings)]
    settings += [(one.keyword, one.value) for one in connection.odbc_extra]
    return any(name.lower() in ("encrypt", "encryption") and str(value).lower() == "strict" for name, value in settings)


def _connected(addresses: Sequence[tuple[Any, ...]], end: float) -> socket.socket | None:
    """The first connection that is accepted in time; all are tried at once: a listener may have many addresses."""
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
