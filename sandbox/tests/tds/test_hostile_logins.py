"""Clients that send nonsense before the login and inside TLS: their own connection may end, the server goes on."""

import contextlib
import random
import socket
import ssl
import struct

import pytest

from mssql_sandbox.server import SandboxServer
from mssql_sandbox.tds.packets import PacketType
from tests.tds.hostile import ENCRYPTING, ROUNDS, hostile, last_words, mutated
from tests.tds.raw_client import HEADERS, PRELOGIN, login7

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("server_is_not_to_blame")]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_bytes(sandbox: SandboxServer, seed: int) -> None:
    chance = random.Random(seed)
    with hostile(sandbox) as client:
        client.socket.sendall(chance.randbytes(chance.randint(1, 3000)))
        client.socket.shutdown(socket.SHUT_WR)
        last_words(client)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 32768, 65535])
def test_packets_of_absurd_lengths(sandbox: SandboxServer, length: int) -> None:
    with hostile(sandbox) as client:
        client.socket.sendall(struct.pack(">BBHHBB", PacketType.PRELOGIN, 1, length, 0, 1, 0) + bytes(16))
        client.socket.shutdown(socket.SHUT_WR)
        last_words(client)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_prelogin_with_errors(sandbox: SandboxServer, seed: int) -> None:
    with hostile(sandbox) as client:
        client.send(PacketType.PRELOGIN, mutated(PRELOGIN, random.Random(seed)))
        client.socket.shutdown(socket.SHUT_WR)
        last_words(client)


def test_message_before_login_is_limited(sandbox: SandboxServer) -> None:
    """A client that is nobody yet cannot make the server keep more than a login needs."""
    with hostile(sandbox) as client:
        client.send(PacketType.PRELOGIN, PRELOGIN)
        client.receive()
        packet = struct.pack(">BBHHBB", PacketType.LOGIN7, 0, 32008, 0, 1, 0) + bytes(32000)
        with contextlib.suppress(OSError):
            for _ in range(40):
                client.socket.sendall(packet)
        client.socket.settimeout(5)
        with contextlib.suppress(ConnectionError):
            assert client.socket.recv(10) == b""


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_login_with_errors(sandbox: SandboxServer, seed: int) -> None:
    chance = random.Random(seed)
    login = login7(user="sa", password=sandbox.password, database="master")
    with hostile(sandbox) as client:
        client.send(PacketType.PRELOGIN, PRELOGIN)
        client.receive()
        client.send(PacketType.LOGIN7, mutated(login, chance) if seed % 4 else login[: chance.randrange(len(login))])
        client.socket.shutdown(socket.SHUT_WR)
        last_words(client)


@pytest.mark.parametrize("kind", [kind for kind in PacketType if kind is not PacketType.PRELOGIN])
def test_other_messages_before_the_login(sandbox: SandboxServer, kind: PacketType) -> None:
    with hostile(sandbox) as client:
        client.send(kind, HEADERS + "SELECT 1".encode("utf-16-le"))
        last_words(client)
        assert client.receive() == b""


@pytest.mark.parametrize("seed", range(12))
def test_handshake_of_random_bytes(sandbox: SandboxServer, seed: int) -> None:
    chance = random.Random(seed)
    with hostile(sandbox) as client:
        client.send(PacketType.PRELOGIN, ENCRYPTING)
        client.receive()
        client.send(PacketType.PRELOGIN, b"\x16\x03\x01" + chance.randbytes(chance.randint(0, 400)))
        client.socket.shutdown(socket.SHUT_WR)
        last_words(client)


@pytest.mark.parametrize("seed", range(12))
def test_garbage_inside_and_after_the_handshake(sandbox: SandboxServer, seed: int) -> None:
    chance = random.Random(seed)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    tls = context.wrap_bio(incoming, outgoing)
    with hostile(sandbox) as client:
        client.send(PacketType.PRELOGIN, ENCRYPTING)
        client.receive()
        for round_ in range(6):
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            else:
                client.socket.sendall(chance.randbytes(200))
                break
            data = outgoing.read()
            client.send(PacketType.PRELOGIN, mutated(data, chance) if round_ == seed % 3 and seed % 2 else data)
            client.socket.settimeout(0.5)  # A server that waits for the rest of a message says nothing.
            with contextlib.suppress(TimeoutError):
                incoming.write(client.receive())
        client.socket.shutdown(socket.SHUT_WR)
        last_words(client)
