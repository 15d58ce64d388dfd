"""SMP (MC-SMP): packets with which several streams share one connection, and their flow-control windows.

Knows neither TDS nor sockets. Sequence numbers and windows count DATA packets from 1 and wrap around at 32 bits.
"""

import enum
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from mssql_sandbox.tds.wire import ProtocolError

HEADER_SIZE = 16
WINDOW = 4
"""The number of DATA packets that either side may send before an acknowledgement."""
_IDENTIFIER = 0x53
_HEADER = struct.Struct("<BBHIII")
_LONGEST = HEADER_SIZE + 0xFFFF
_NUMBERS = 1 << 32


class Flag(enum.IntEnum):
    """The kind of a packet; exactly one of them."""

    SYN = 1
    ACK = 2
    FIN = 4
    DATA = 8


@dataclass(frozen=True, slots=True)
class Packet:
    """One SMP packet; `window` is the highest sequence number that its sender accepts."""

    flag: Flag
    session: int
    sequence: int
    window: int
    data: bytes = b""

    def encode(self) -> bytes:
        """The packet's bytes."""
        head = _HEADER.pack(
            _IDENTIFIER, self.flag, self.session, HEADER_SIZE + len(self.data), self.sequence, self.window
        )
        return head + self.data


class Frames:
    """Splits the received byte stream into SMP packets."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> Iterator[Packet]:
        """The packets completed by these bytes.

        Raises:
            ProtocolError: no SMP packet, more than one flag, or a length that cannot be.
        """
        received = self._received
        received += data
        while len(received) >= HEADER_SIZE:
            identifier, flags, session, length, sequence, window = _HEADER.unpack_from(received)
            if identifier != _IDENTIFIER:
                raise ProtocolError(f"an SMP packet begins with 0x{identifier:02X}; expected 0x{_IDENTIFIER:02X}")
            if flags not in tuple(Flag):
                raise ProtocolError(f"SMP flags 0x{flags:02X}; expected one of SYN, ACK, FIN and DATA")
            if not HEADER_SIZE <= length <= _LONGEST or (length > HEADER_SIZE) != (flags == Flag.DATA):
                raise ProtocolError(f"an SMP {Flag(flags).name} packet of {length} bytes")
            if len(received) < length:
                return
            body = bytes(received[HEADER_SIZE:length])
            del received[:length]
            yield Packet(Flag(flags), session, sequence, window, body)


class Windows:
    """The sequence numbers and windows of both sides of one SMP session."""

    def __init__(self, syn: Packet) -> None:
        self.session = syn.session
        self._sent = 0
        self._may_send_to = syn.window
        self._received = 0
        self._consumed = 0
        self._told = WINDOW

    @property
    def open(self) -> bool:
        """Whether the client accepts another DATA packet now."""
        return 0 < (self._may_send_to - self._sent) % _NUMBERS < _NUMBERS // 2

    def wrap(self, data: bytes) -> bytes:
        """The next DATA packet; it also carries the client's send window."""
        self._sent = (self._sent + 1) % _NUMBERS
        return self._packet(Flag.DATA, data)

    def finished(self) -> bytes:
        """The FIN packet."""
        return self._packet(Flag.FIN)

    def heard(self, packet: Packet) -> None:
        """Process any packet of the client.

        Raises:
            ProtocolError: DATA out of turn, or beyond the window; a window that shrinks.
        """
        if packet.flag is Flag.DATA:
            expected = (self._received + 1) % _NUMBERS
            if packet.sequence != expected:
                raise ProtocolError(f"SMP session {self.session}: DATA {packet.sequence}; expected {expected}")
            if (self._told - packet.sequence) % _NUMBERS >= _NUMBERS // 2:
                raise ProtocolError(f"SMP session {self.session}: DATA {packet.sequence} beyond window {self._told}")
            self._received = expected
        if (packet.window - self._may_send_to) % _NUMBERS >= _NUMBERS // 2:
            raise ProtocolError(f"SMP session {self.session}: window {packet.window} after {self._may_send_to}")
        self._may_send_to = packet.window

    def consumed(self) -> bytes:
        """A DATA packet was consumed: the ACK that opens the window, once it opens it by two."""
        self._consumed = (self._consumed + 1) % _NUMBERS
        if (self._consumed + WINDOW - self._told) % _NUMBERS < 2:
            return b""
        return self._packet(Flag.ACK)

    def _packet(self, flag: Flag, data: bytes = b"") -> bytes:
        self._told = (self._consumed + WINDOW) % _NUMBERS
        return Packet(flag, self.session, self._sent, self._told, data).encode()
