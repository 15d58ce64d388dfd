"""Clients that send nonsense once they have logged in: their own connection may end, the server and the others go on.

After each of them a well-behaved client gets its answer, and the server has logged nothing as its own fault.
"""

import random
import socket
import struct
from collections.abc import Callable

import pytest

from mssql_sandbox.server import SandboxServer
from mssql_sandbox.tds.packets import PacketType
from mssql_sandbox.tds.wire import us_varchar
from tests.tds.hostile import ROUNDS, hostile, last_words, mutated
from tests.tds.raw_client import HEADERS, raw_client

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("server_is_not_to_blame")]

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
