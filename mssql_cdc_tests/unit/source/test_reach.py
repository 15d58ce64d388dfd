"""Servers that cannot be reached are told apart before a driver waits for its login time-out."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from mssql_cdc.config import Connector
from mssql_cdc.errors import SourceUnavailableError
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
