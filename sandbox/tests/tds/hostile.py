"""Clients that send nonsense: their bytes, and how they hear what the server says to it."""

import contextlib
import random
from collections.abc import Iterator

from mssql_sandbox.server import SandboxServer
from tests.tds.raw_client import PRELOGIN, RawClient, raw_client

ENCRYPTING = PRELOGIN[:-1] + b"\1"


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


ROUNDS = 25
