"""Servers that cannot be reached are told apart before a driver waits for its login time-out."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from mssql_cdc.config import Connector
from mssql_cdc.errors import SourceUnavailableError
from mssql_cdc.source.sqlserver import reach
from mssql_cdc.source.sqlserver.address import ServerAddress, address_of
from mssql_cdc.source.sqlserver.reach import require_reachable
from mssql_cdc_tests.unit.config.samples import connector_with


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


def at(listener: socket.socket, **properties: str) -> Connector:
    return connector_with(
        {
            "database.hostname": "127.0.0.1",
            "database.port": str(listener.getsockname()[1]),
            "connection.validation.timeout.ms": "300",
            **properties,
        }
    )


@pytest.mark.feature("PRE-05")
def test_a_server_that_accepts_and_never_answers_is_named(listener: socket.socket):
    with pytest.raises(SourceUnavailableError, match=r"accepts connections and does not answer .*database\.port"):
        require_reachable(at(listener).connection)


def test_a_server_that_hangs_up_is_named(listener: socket.socket):
    def hang_up() -> None:
        opened, _ = listener.accept()
        opened.close()

    caller = threading.Thread(target=hang_up)
    caller.start()
    with pytest.raises(SourceUnavailableError, match="does not answer"):
        require_reachable(at(listener).connection)
    caller.join()


def test_a_server_that_answers_is_left_to_the_driver(listener: socket.socket):
    heard: list[bytes] = []

    def answer() -> None:
        opened, _ = listener.accept()
        with opened:
            heard.append(opened.recv(100))
            opened.sendall(b"\x04")

    server = threading.Thread(target=answer)
    server.start()
    require_reachable(at(listener).connection)
    server.join()
    assert heard[0][0] == 0x12
    assert int.from_bytes(heard[0][2:4]) == len(heard[0])


@pytest.mark.parametrize("name", ["driver.encrypt", "database.encrypt", "odbc.Encrypt"])
def test_no_answer_is_waited_for_where_tls_comes_first(listener: socket.socket, name: str):
    require_reachable(at(listener, **{name: "strict"}).connection)


def test_a_look_up_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch):
    """A resolver without an answering server takes minutes, and has no time-out of its own."""
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60) and [])
    try:
        settings = {"database.hostname": "db.example.com", "connection.validation.timeout.ms": "200"}
        with pytest.raises(SourceUnavailableError, match=r"'db\.example\.com' within 0\.2 s.*database\.hostname"):
            require_reachable(connector_with(settings).connection)
    finally:
        over.set()


INSTANCE = {"database.hostname": "127.0.0.1", "database.instance": "prod", "connection.validation.timeout.ms": "300"}


@contextmanager
def browser(monkeypatch: pytest.MonkeyPatch, answer: str | None) -> Generator[list[bytes]]:
    """A browser service that says this of the instance `prod`, and nothing of another one."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(5)
        monkeypatch.setattr(reach, "BROWSER_PORT", opened.getsockname()[1])

        def serve() -> None:
            request, place = opened.recvfrom(100)
            asked.append(request)
            if answer is not None and request == b"\x04prod\0":
                text = answer.encode()
                opened.sendto(b"\x05" + len(text).to_bytes(2, "little") + text, place)

        server = threading.Thread(target=serve)
        server.start()
        yield asked
        server.join()


def test_the_port_of_a_named_instance_is_asked_for_and_tried(monkeypatch: pytest.MonkeyPatch, listener: socket.socket):
    port = listener.getsockname()[1]
    told = f"ServerName;DB;InstanceName;prod;IsClustered;No;Version;16.0.1000.6;tcp;{port};np;pipe;;"
    with (
        browser(monkeypatch, told) as asked,
        pytest.raises(SourceUnavailableError, match=f"127.0.0.1:{port} accepts connections and does not answer"),
    ):
        require_reachable(connector_with(INSTANCE).connection)
    assert asked == [b"\x04prod\0"]


def test_an_instance_that_nobody_tells_of_is_named(monkeypatch: pytest.MonkeyPatch):
    says = r"does not tell the port of the instance 'prod'.*database\.instance.*Browser.*database\.port"
    with browser(monkeypatch, None), pytest.raises(SourceUnavailableError, match=says):
        require_reachable(connector_with(INSTANCE).connection)


def test_an_instance_without_tcp_is_named(monkeypatch: pytest.MonkeyPatch):
    told = "ServerName;DB;InstanceName;prod;IsClustered;No;Version;16.0.1000.6;np;pipe;;"
    with browser(monkeypatch, told), pytest.raises(SourceUnavailableError, match="enable TCP/IP"):
        require_reachable(connector_with(INSTANCE).connection)


def test_the_host_of_an_instance_that_is_unknown_is_named_as_such():
    settings = {**INSTANCE, "database.hostname": "no-such-host.invalid", "connection.validation.timeout.ms": "4000"}
    with pytest.raises(SourceUnavailableError, match=r"Cannot resolve the host 'no-such-host\.invalid'"):
        require_reachable(connector_with(settings).connection)


def test_the_server_of_odbc_is_tried_and_named(listener: socket.socket):
    port = listener.getsockname()[1]
    settings = at(listener, **{"database.hostname": "no-such-host.invalid", "odbc.Server": f"tcp:127.0.0.1,{port}"})
    with pytest.raises(SourceUnavailableError, match=r"does not answer.*odbc\.Server"):
        require_reachable(settings.connection)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"odbc.Server": "db"}, ("db", 1433, None)),
        ({"odbc.Server": "db,1444"}, ("db", 1444, None)),
        ({"odbc.Server": "tcp:db,1444"}, ("db", 1444, None)),
        ({"odbc.Addr": "db", "odbc.Port": "1444"}, ("db", 1444, None)),
        ({"odbc.Server": "db\\prod"}, ("db", None, "prod")),
        ({"odbc.Server": "db\\prod,1444"}, ("db", 1444, "prod")),
        ({"odbc.Server": "(local)"}, ("localhost", 1433, None)),
        ({"odbc.Server": "(localdb)\\v11"}, None),
        ({"odbc.Server": "np:\\\\db\\pipe\\sql"}, None),
        ({"odbc.Servername": "in-freetds-conf"}, None),
        ({"odbc.DSN": "shop"}, None),
        ({"database.instance": "prod"}, ("db.example.com", None, "prod")),
    ],
    ids=str,
)
def test_an_address_is_read_as_drivers_write_it(given: dict[str, str], expected: tuple[str, int | None, str] | None):
    found = address_of(connector_with(given).connection)
    assert found == (None if expected is None else ServerAddress(*expected, *_properties(given)))


def _properties(given: dict[str, str]) -> tuple[str, str]:
    named = next((name for name in given if name in {"odbc.Server", "odbc.Addr"}), None)
    return (named, named) if named else ("database.hostname", "database.port")
