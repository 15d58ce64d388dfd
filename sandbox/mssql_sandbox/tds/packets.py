"""Packets (MS-TDS 2.2.3.1): splitting messages into packets and reassembling them.

Knows neither the contents of messages nor sockets and TLS.
"""

import enum
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from mssql_sandbox.tds.wire import ProtocolError

HEADER_SIZE = 8
MIN_PACKET_SIZE = 512
MAX_PACKET_SIZE = 32767
DEFAULT_PACKET_SIZE = 4096
_BULK_FACTOR = 4
_HEADER = struct.Struct(">BBHHBB")


class PacketType(enum.IntEnum):
    """The kinds of messages that this server supports."""

    BATCH = 0x01
    RPC = 0x03
    RESPONSE = 0x04
    ATTENTION = 0x06
    BULK_LOAD = 0x07
    TRANSACTION = 0x0E
    LOGIN7 = 0x10
    SSPI = 0x11
    PRELOGIN = 0x12


class Status(enum.IntFlag):
    """Header status bits."""

    END_OF_MESSAGE = 0x01
    IGNORE = 0x02
    RESET_CONNECTION = 0x08
    RESET_KEEP_TRANSACTION = 0x10


# Plain numbers: operators of enumerations cost a microsecond each, and every message passes here.
_END, _IGNORE = Status.END_OF_MESSAGE.value, Status.IGNORE.value
_RESETS = Status.RESET_CONNECTION.value | Status.RESET_KEEP_TRANSACTION.value
_KNOWN_TYPES = frozenset(int(kind) for kind in PacketType)


@dataclass(frozen=True, slots=True)
class Message:
    """A whole message of a client."""

    kind: PacketType
    payload: bytes
    status: int
    """The `Status` bits of all its packets."""

    @property
    def ignored(self) -> bool:
        """The client cancelled while sending: the message must not be executed."""
        return self.status & _IGNORE != 0

    @property
    def resets(self) -> bool:
        """The session is to be reset before this request."""
        return self.status & _RESETS != 0

    @property
    def keeps_transaction(self) -> bool:
        """The reset keeps the open transaction."""
        return self.status & Status.RESET_KEEP_TRANSACTION != 0


class MessageAssembler:
    """Turns the received byte stream into messages; buffers at most `limit` bytes of one message."""

    def __init__(self, *, limit: int) -> None:
        self.limit = limit
        self._received = bytearray()
        self._kind: PacketType | None = None
        self._status = 0
        self._payload = bytearray()

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._received += data

    def next_message(self) -> Message | None:
        """The next whole message, including an attention in the middle of another one; None: feed more.

        Raises:
            ProtocolError: a header that cannot be one, or a message above the limit.
        """
        while (packet := self._next_packet()) is not None:
            message = self._add(*packet)
            if message is not None:
                return message
        return None

    def take_rest(self) -> bytes:
        """Bytes received after the last message, which belong to another layer (raw TLS handshake)."""
        rest = bytes(self._received)
        self._received.clear()
        return rest

    def _next_packet(self) -> tuple[PacketType, int, bytes] | None:
        received = self._received
        if len(received) < HEADER_SIZE:
            # The first byte is enough to distinguish a stray client (HTTP, TLS first) from TDS.
            if received and received[0] not in _KNOWN_TYPES:
                raise ProtocolError(f"packet type 0x{received[0]:02X} is not known")
            return None
        kind, status, length, _, _, _ = _HEADER.unpack_from(received)
        if kind not in _KNOWN_TYPES:
            raise ProtocolError(f"packet type 0x{kind:02X} is not known")
        if not HEADER_SIZE <= length <= MAX_PACKET_SIZE + 1:
            raise ProtocolError(f"a packet of {length} bytes; expected {HEADER_SIZE} to {MAX_PACKET_SIZE}")
        if len(received) < length:
            return None
        body = bytes(received[HEADER_SIZE:length])
        del received[:length]
        return PacketType(kind), status, body

    def _add(self, kind: PacketType, status: int, body: bytes) -> Message | None:
        if kind is PacketType.ATTENTION:
            self._clear()  # the attention abandons a request that is half sent
            return Message(kind, b"", status)
        if self._kind is None:
            self._kind = kind
            self._status = status
        elif kind is not self._kind:
            raise ProtocolError(f"a {kind.name} packet inside a {self._kind.name} message")
        # A bulk load is one message, regardless of its number of rows.
        limit = self.limit * _BULK_FACTOR if kind is PacketType.BULK_LOAD else self.limit
        if len(self._payload) + len(body) > limit:
            raise ProtocolError(f"the {kind.name} message is longer than the limit of {limit} bytes")
        self._payload += body
        if not status & _END:
            return None
        message = Message(kind, bytes(self._payload), self._status | status)
        self._clear()
        return message

    def _clear(self) -> None:
        self._kind = None
        self._status = 0
        self._payload = bytearray()


def split_packets(packets: bytes | bytearray) -> Iterator[bytes]:
    """Split adjacent packets."""
    position = 0
    while position < len(packets):
        length = int.from_bytes(packets[position + 2 : position + 4], "big")
        yield bytes(packets[position : position + length])
        position += length


class PacketWriter:
    """Splits outgoing messages into packets of the negotiated size."""

    def __init__(self, *, spid: int = 0, size: int = DEFAULT_PACKET_SIZE) -> None:
        self.spid = spid
        self.size = size
        self._buffer = bytearray()
        self._number = 0

    def add(self, data: bytes | bytearray) -> None:
        """Append payload to the current message."""
        self._buffer += data

    @property
    def pending(self) -> int:
        """Number of payload bytes not yet sent."""
        return len(self._buffer)

    @property
    def payload(self) -> bytearray:
        """The payload not yet sent, for callers that append much to it directly."""
        return self._buffer

    def full_packets(self, kind: PacketType = PacketType.RESPONSE) -> bytes:
        """All packets that are certainly not the last of their message."""
        body = self.size - HEADER_SIZE
        # Keep one byte, so that the last packet is never empty.
        whole = (len(self._buffer) - 1) // body * body if self._buffer else 0
        if not whole:
            return b""
        pieces: list[bytes | memoryview] = []
        with memoryview(self._buffer) as view:
            for start in range(0, whole, body):
                pieces.append(self._header(kind, 0, self.size))
                pieces.append(view[start : start + body])
            out = b"".join(pieces)
            pieces.clear()  # a buffer with an exported view cannot be shortened
        del self._buffer[:whole]
        return out

    def finish(self, kind: PacketType = PacketType.RESPONSE) -> bytearray:
        """The rest of the message, with the last packet marked as the end."""
        out = bytearray(self.full_packets(kind))
        out += self._header(kind, Status.END_OF_MESSAGE, HEADER_SIZE + len(self._buffer))
        out += self._buffer
        self._buffer.clear()
        self._number = 0
        return out

    def _header(self, kind: PacketType, status: int, length: int) -> bytes:
        self._number = (self._number + 1) & 0xFF
        return _HEADER.pack(kind, status, length, self.spid & 0xFFFF, self._number, 0)
