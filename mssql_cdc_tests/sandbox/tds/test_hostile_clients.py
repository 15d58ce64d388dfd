"""Clients that send nonsense at every stage: their own connection may end, the server and the others go on.

After each of them a well-behaved client gets its answer, and the server has logged nothing as its own fault.
"""

import contextlib
import logging
import random
import socket
import ssl
import struct
from collections.abc import Callable, Iterator

import pytest

from mssql_cdc.sandbox.server import SandboxServer
from mssql_cdc.sandbox.tds.packets import PacketType
from mssql_cdc.sandbox.tds.wire import us_varchar
from mssql_cdc_tests.sandbox.tds.raw_client import HEADERS, PRELOGIN, RawClient, login7, raw_client

pytestmark = pytest.mark.timeout(240)

ROUNDS = 25
ENCRYPTING = PRELOGIN[:-1] + b"\1"
PARAMETERS = (
    b"\0\0\x26\x04\x04\x07\0\0\0",  # int
    b"\0\0\xe7\x10\0\x09\x04\xd0\0\x34\x04\0a\0b\0",  # nvarchar(8)
    b"\0\0\xe7\xff\xff\x09\x04\xd0\0\x34\x04\0\0\0\0\0\0\0\x04\0\0\0a\0b\0\0\0\0\0",  # nvarchar(max)
    b"\0\0\x6a\x05\x09\x02\x05\x01\x10\x27\0\0",  # decimal(9, 2)
    b"\0\0\x2a\x07\x08\0\0\0\0\0\x80\x9a\x0b",  # datetime2(7)
    b"\0\0\xf3\x03d\0b\0o\0\x01p\0\x01\0\0\0\0\0\0\0\x26\x04\0\0\x01\x04\x01\0\0\0\0",  # rows of a table type
    b"\0\0\x62\x49\x1f\0\0\x06\0\0\0\x38\0\x07\0\0\0",  # sql_variant
    b"\0\0\xf1\0\x04\0\0\0\0\0\0\0\x04\0\0\0<\0a\0\0\0\0\0",  # xml
)
COLUMNS = b"\x81\x02\0" + b"\0\0\0\0\x09\0\x26\x04\x01a\0" + b"\0\0\0\0\x09\0\xe7\x10\0\x09\x04\xd0\0\x34\x01b\0"
BULK = COLUMNS + b"\xd1\x04\x01\0\0\0\x02\0x\0" + b"\xd2\x02\x04\x02\0\0\0" + b"\xfd\0\0\0\0" + bytes(8)


@pytest.fixture(autouse=True)
def server_is_not_to_blame(sandbox: SandboxServer, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What every test here is about."""
    yield
    with raw_client(sandbox.port) as client:
        assert b"\xad" in client.log_in(sandbox.password)
        client.batch("SELECT 7")
        assert b"\xd1\x04\x07\0\0\0" in client.receive()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a few of them changed, left out, doubled, or the end missing."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not found:
            break
        place = chance.randrange(len(found))
        kind = chance.randrange(5)
        if kind == 0:
            found[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)))
        elif kind == 1:
            del found[place : place + chance.randint(1, 4)]
        elif kind == 2:
            found[place:place] = chance.randbytes(chance.randint(1, 4))
        elif kind == 3:
            found[place : place + 4] = b"\xff\xff\xff\xff"
        else:
            del found[place:]
    return bytes(found)


def last_words(client: RawClient) -> None:
    """Hear what the server answers, if it does, and that it answers or hangs up within the time limit."""
    client.socket.settimeout(3)
    with contextlib.suppress(OSError):
        client.receive()


@contextlib.contextmanager
def hostile(sandbox: SandboxServer) -> Iterator[RawClient]:
    """A client which may be cut off while it talks."""
    with raw_client(sandbox.port) as client, contextlib.suppress(OSError):
        yield client


# ---- before the login -------------------------------------------------------------------------------------------


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


# ---- TLS ----------------------------------------------------------------------------------------------------------


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
            client.socket.settimeout(3)
            with contextlib.suppress(TimeoutError):
                incoming.write(client.receive())
        client.socket.shutdown(socket.SHUT_WR)
        last_words(client)


# ---- after the login ------------------------------------------------------------------------------------------------


def requests(sandbox: SandboxServer, seed: int, make: Callable[[random.Random], tuple[PacketType, bytes, int]]) -> None:
    """Log in, then send messages with errors until the server hangs up, with an attention now and then."""
    chance = random.Random(seed)
    with hostile(sandbox) as client:
        client.log_in(sandbox.password)
        for _ in range(5):
            kind, payload, status = make(chance)
            client.send(kind, payload, status=status)
            if chance.random() < 0.2:
                client.send(PacketType.ATTENTION, b"")
            last_words(client)
        client.socket.shutdown(socket.SHUT_WR)
        last_words(client)


@pytest.mark.parametrize("seed", range(10))
def test_batches_with_errors(sandbox: SandboxServer, seed: int) -> None:
    def make(chance: random.Random) -> tuple[PacketType, bytes, int]:
        return (
            PacketType.BATCH,
            mutated(HEADERS + "SELECT 1 AS a".encode("utf-16-le"), chance),
            chance.choice((0, 2, 8, 16)),
        )

    requests(sandbox, seed, make)


def call(parameter: bytes, name: bytes = b"") -> bytes:
    """A call of sp_executesql with one parameter."""
    text = "SELECT @p".encode("utf-16-le")
    statement = b"\0\0\xe7\x40\x1f\x09\x04\xd0\0\x34" + struct.pack("<H", len(text)) + text
    declared = "@p sql_variant".encode("utf-16-le")
    definitions = b"\0\0\xe7\x40\x1f\x09\x04\xd0\0\x34" + struct.pack("<H", len(declared)) + declared
    return HEADERS + (name or b"\xff\xff\x0a\0") + b"\0\0" + statement + definitions + parameter


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_calls_with_corrupt_parameters(sandbox: SandboxServer, seed: int) -> None:
    def make(chance: random.Random) -> tuple[PacketType, bytes, int]:
        return PacketType.RPC, call(mutated(chance.choice(PARAMETERS), chance)), 0

    requests(sandbox, seed, make)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_calls_with_errors_anywhere(sandbox: SandboxServer, seed: int) -> None:
    names = [b"", *(b"\xff\xff" + struct.pack("<H", number) for number in range(20)), us_varchar("sp_columns_100")]

    def make(chance: random.Random) -> tuple[PacketType, bytes, int]:
        data = call(chance.choice(PARAMETERS), chance.choice(names))
        return PacketType.RPC, mutated(data, chance) if chance.random() < 0.7 else data, 0

    requests(sandbox, seed, make)


@pytest.mark.parametrize("seed", range(10))
def test_transaction_requests_with_errors(sandbox: SandboxServer, seed: int) -> None:
    def make(chance: random.Random) -> tuple[PacketType, bytes, int]:
        return PacketType.TRANSACTION, mutated(HEADERS + b"\x05\0\0\0", chance), 0

    requests(sandbox, seed, make)


@pytest.mark.parametrize("seed", range(20))
def test_bulk_loads_with_errors(sandbox: SandboxServer, seed: int) -> None:
    def make(chance: random.Random) -> tuple[PacketType, bytes, int]:
        if chance.random() < 0.5:
            text = (
                "DROP TABLE IF EXISTS #b; CREATE TABLE #b (a int, b nvarchar(8)) INSERT BULK #b (a int, b nvarchar(8))"
            )
            return PacketType.BATCH, HEADERS + text.encode("utf-16-le"), 0
        return PacketType.BULK_LOAD, mutated(BULK, chance), 0

    requests(sandbox, seed, make)


def test_bulk_load_itself_is_right(sandbox: SandboxServer) -> None:
    """Without its errors the message used above is stored."""
    with raw_client(sandbox.port) as client:
        client.log_in(sandbox.password)
        client.batch("CREATE TABLE #b (a int, b nvarchar(8)) INSERT BULK #b (a int, b nvarchar(8))")
        client.receive()
        client.send(PacketType.BULK_LOAD, BULK)
        assert struct.pack("<Q", 2) in client.receive()
        client.batch("SELECT a FROM #b WHERE b IS NULL")
        assert b"\xd1\x04\x02\0\0\0" in client.receive()


@pytest.mark.parametrize(
    ("parameter", "number"),
    [
        (b"\0\0\x99", 8009),
        (b"\0\0\x26\x03\x03\0\0\0", 8016),
        (b"\0\0\x2a\x09\0", 8016),
        (b"\0\0\x6a\x11\x27\x02\0", 8016),
        (b"\0\0\x28\x02\0\0", 8016),
        (b"\0\0\x6d\x08\x08" + struct.pack("<d", float("nan")), 8023),
    ],
)
def test_corrupt_parameters_have_the_servers_numbers(sandbox: SandboxServer, parameter: bytes, number: int) -> None:
    """8009 unknown type, 8016 impossible length or metadata, 8023 no value of the type (sys.messages)."""
    with raw_client(sandbox.port) as client:
        client.log_in(sandbox.password)
        client.send(PacketType.RPC, call(parameter))
        assert struct.pack("<i", number) in client.receive()


def test_too_many_parameters_are_8003(sandbox: SandboxServer) -> None:
    with raw_client(sandbox.port) as client:
        client.log_in(sandbox.password)
        client.send(PacketType.RPC, call(b"\0\0\x26\x04\x04\x07\0\0\0" * 2200))
        assert struct.pack("<i", 8003) in client.receive()


def test_too_many_prepared_statements_are_701(sandbox: SandboxServer) -> None:
    with raw_client(sandbox.port) as client:
        client.log_in(sandbox.password)
        spid = max(sandbox.engine.sessions)
        prepared = sandbox.engine.sessions[spid].prepared
        prepared.known.update(dict.fromkeys(range(10**6, 10**6 + 20_000), prepared))  # type: ignore[arg-type]
        client.send(PacketType.RPC, call(b"").replace(b"\xff\xff\x0a\0", b"\xff\xff\x0b\0", 1))
        assert client.receive()
        handle = b"\0\x01\x26\x04\0"
        text = "SELECT 1".encode("utf-16-le")
        statement = b"\0\0\xe7\x40\x1f\x09\x04\xd0\0\x34" + struct.pack("<H", len(text)) + text
        nothing = b"\0\0\xe7\x40\x1f\x09\x04\xd0\0\x34\xff\xff"
        client.send(PacketType.RPC, HEADERS + b"\xff\xff\x0b\0\0\0" + handle + nothing + statement)
        assert struct.pack("<i", 701) in client.receive()
