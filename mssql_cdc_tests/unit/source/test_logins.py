"""A server that answers and then hangs is named after the login time-out, whatever the driver does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pyodbc
import pytest

from mssql_cdc.config import Connection
from mssql_cdc.errors import SourceUnavailableError
from mssql_cdc.source.sqlserver import bulk, connect, logins
from mssql_cdc_tests.unit.config.samples import connector_with

FREETDS, PACKAGED = "FreeTDS", "the packaged driver"
SLOW = r"The login to database 'shop' on 127\.0\.0\.1:\d+ did not end within 1 s.*driver\.loginTimeout"


def prelogin_answer(request: bytes) -> bytes:
    """The answer to a PRELOGIN packet (MS-TDS 2.2.6.5), with the encryption that the client asks for."""
    options, place, encryption = request[8:], 0, b"\2"
    while options[place] != 0xFF:
        if options[place] == 1:
            encryption = options[int.from_bytes(options[place + 1 : place + 3])].to_bytes()
        place += 5
    values = [(0, bytes([16, 0, 3, 232, 0, 0])), (1, encryption), (2, b"\0"), (3, b""), (4, b"\0")]
    head, body = b"", b""
    for token, value in values:
        head += bytes([token]) + (5 * len(values) + 1 + len(body)).to_bytes(2) + len(value).to_bytes(2)
        body += value
    payload = head + b"\xff" + body
    return b"\4\1" + (8 + len(payload)).to_bytes(2) + bytes([0, 0, 1, 0]) + payload


@contextmanager
def hanging_server() -> Generator[int]:
    """The port of a server that answers each PRELOGIN and nothing else, until the block ends."""
    opened: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                opened.append(client)
                threading.Thread(target=answer, args=(client,), daemon=True).start()

    def answer(client: socket.socket) -> None:
        with suppress(OSError):
            client.sendall(prelogin_answer(client.recv(4096)))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            for one in opened:
                one.close()


def to(port: int, **properties: str) -> Connection:
    given = {"database.hostname": "127.0.0.1", "database.port": str(port), "driver.loginTimeout": "1"}
    login = {"database.user": "reader", "database.password": "sesame"}
    return connector_with({**given, **login, **properties}).connection


@pytest.mark.feature("PRE-05")
@pytest.mark.parametrize("encrypt", ["true", "false"])
@pytest.mark.parametrize("driver", [FREETDS, PACKAGED])
def test_a_server_that_hangs_within_the_login_is_named_with_the_property_to_change(driver: str, encrypt: str):
    """Microsoft's driver waited for ever while TLS did not go on; FreeTDS twice as long as it might."""
    path = FREETDS if driver == FREETDS and FREETDS in pyodbc.drivers() else connect._packaged_driver()
    if path is None:
        pytest.skip(f"{driver} is not installed")
    with hanging_server() as port, pytest.raises(SourceUnavailableError, match=SLOW):
        connect.open_control(to(port, **{"odbc.Driver": path, "database.encrypt": encrypt}), "shop")


def test_a_login_for_bulk_rows_is_bounded_alike():
    with (
        hanging_server() as port,
        pytest.raises(SourceUnavailableError, match=SLOW),
        bulk.open_bulk(to(port), "shop", by_rows=False),
    ):
        pass


def test_no_more_logins_hang_than_a_few(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logins, "MOST_HANGING", 1)
    over = threading.Event()
    connection = to(1)
    with pytest.raises(SourceUnavailableError, match=SLOW):
        logins.log_in(connection, "shop", lambda: over.wait(60))
    with pytest.raises(SourceUnavailableError, match="1 earlier logins still hang, so none was tried"):
        logins.log_in(connection, "shop", lambda: pytest.fail("it is tried"))
    over.set()
    (left,) = (one for one in threading.enumerate() if one.name.endswith("left behind"))
    left.join()
    assert logins.log_in(connection, "shop", lambda: 7) == 7


def test_what_a_login_raises_is_raised():
    def refuse() -> None:
        raise KeyError("refused")

    with pytest.raises(KeyError, match="refused"):
        logins.log_in(to(1), "shop", refuse)
