"""The address of a server: host and port, host and instance, or as `odbc.Server` writes it. `reach` tries it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mssql_cdc.config import Connection

DEFAULT_PORT = 1433
_OWN = frozenset({"server", "address", "addr", "network address", "servername", "dsn", "filedsn"})
"""The keywords of `odbc.*` that say where the server is, each in place of `database.hostname`."""
_LOCAL = {"(local)", ".", "localhost"}


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A host with a port, or with an instance whose port the host reports; the properties are those that set them."""

    host: str
    port: int | None
    instance: str | None
    host_property: str = "database.hostname"
    port_property: str = "database.port"


def is_own(connection: Connection) -> bool:
    """Whether `odbc.*` says where the server is."""
    return any(setting.keyword.lower() in _OWN for setting in connection.odbc_extra)


def address_pairs(connection: Connection, *, freetds: bool) -> Sequence[tuple[str, str]]:
    """The keywords of the connection string for host and port; none where `odbc.*` has its own.

    With a port, a named instance is found without the browser service (HA-06).

    Args:
        connection: Its properties.
        freetds: Whether FreeTDS is the driver, which has a keyword for the port.
    """
    if is_own(connection):
        return []
    host, port = connection.hostname, connection.port
    if port is not None:
        return [("SERVER", host), ("PORT", str(port))] if freetds else [("SERVER", f"tcp:{host},{port}")]
    return [("SERVER", f"{host}\\{connection.instance}" if connection.instance else host)]


def address_of(connection: Connection) -> ServerAddress | None:
    """Where the driver will connect to over TCP; None where only the driver knows."""
    own = {one.keyword.lower(): one for one in connection.odbc_extra if one.keyword.lower() in {*_OWN, "port"}}
    if not _OWN & set(own):
        return ServerAddress(connection.hostname, connection.port, connection.instance)
    named = [own[keyword] for keyword in ("server", "address", "addr", "network address") if keyword in own]
    if len(named) != 1 or {"servername", "dsn", "filedsn"} & set(own):
        return None
    port = own["port"].read().strip() if "port" in own else None
    return _parsed(named[0].read().strip(), port, f"odbc.{named[0].keyword}")


def _parsed(text: str, port: str | None, name: str) -> ServerAddress | None:
    r"""The parts of `[tcp:]host[\instance][,port]`; None for other protocols, and for what cannot be parsed."""
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() == "tcp":
        text = rest
    elif colon and scheme.lower() in {"np", "lpc", "admin"}:
        return None
    place, _, after = text.partition(",")
    host, _, instance = place.partition("\\")
    port = after.strip() or port
    host = "localhost" if host.strip().lower() in _LOCAL else host.strip()
    if not host or ":" in host or host.startswith("(") or (port is not None and not port.isdecimal()):
        return None
    found = int(port) if port is not None else None if instance.strip() else DEFAULT_PORT
    return ServerAddress(host, found, instance.strip() or None, name, name)
