"""A client that says exactly the bytes it is told: for what no driver would ever send."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from mssql_sandbox.tds.packets import MessageAssembler, PacketType, PacketWriter

PRELOGIN = bytes.fromhex("00000b0006 010011 0001 ff 0b0000000000 02".replace(" ", ""))
HEADERS = bytes.fromhex("16000000 12000000 0200 0000000000000000 01000000".replace(" ", ""))


def login7(
    *, user: str, password: str, database: str = "", packet_size: int = 4096, version: int = 0x74000004
) -> bytes:
    """A LOGIN7 message."""
    hidden = bytes(((b << 4 | b >> 4) & 0xFF) ^ 0xA5 for b in password.encode("utf-16-le"))
    fields = [b"", user.encode("utf-16-le"), hidden, *[b""] * 5, database.encode("utf-16-le")]
    offset = 94
    table, data = b"", b""
    for field in fields:
        table += struct.pack("<HH", offset + len(data), len(field) // 2)
        data += field
    fixed = struct.pack("<IIIIIBBBBiI", version, packet_size, 7, 1, 0, 0xE0, 3, 0, 0, 0, 0x409)
    rest = bytes(6) + struct.pack("<HHHHHHI", 0, 0, 0, 0, 0, 0, 0)
    body = fixed + table + rest + data
    return struct.pack("<I", len(body) + 4) + body


class RawClient:
    """One socket and the packets on it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._assembler = MessageAssembler(limit=1 << 30)

    def send(self, kind: PacketType, payload: bytes, *, status: int = 0, size: int = 4096) -> None:
        """A message in packets of that size, with extra status bits in its first packet."""
        writer = PacketWriter(size=size)
        writer.add(payload)
        packets = writer.finish(kind)
        packets[1] |= status
        self.socket.sendall(packets)

    def receive(self) -> bytes:
        """The payload of the next message; empty when the server hung up."""
        while (message := self._assembler.next_message()) is None:
            data = self.socket.recv(65536)
            if not data:
                return b""
            self._assembler.feed(data)
        return message.payload

    def log_in(self, password: str, *, user: str = "sa", packet_size: int = 4096) -> bytes:
        """PRELOGIN without encryption, LOGIN7; the server's answer."""
        self.send(PacketType.PRELOGIN, PRELOGIN)
        self.receive()
        self.send(PacketType.LOGIN7, login7(user=user, password=password, packet_size=packet_size))
        return self.receive()

    def batch(self, sql: str, *, status: int = 0) -> None:
        """A SQL batch."""
        self.send(PacketType.BATCH, HEADERS + sql.encode("utf-16-le"), status=status)


@contextmanager
def raw_client(port: int) -> Iterator[RawClient]:
    """A client whose socket is closed at the end."""
    client = RawClient(port)
    try:
        yield client
    finally:
        client.socket.close()


def done(token: int, status: int, *, count: int = 0, command: int = 0) -> bytes:
    """A DONE, as bytes to look for."""
    return struct.pack("<BHHQ", token, status, command, count)
