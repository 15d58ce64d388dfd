"""Reading and writing the little-endian primitives of all TDS structures.

`Reader` checks lengths sent by a client against the received bytes, and all parsers of client data use it; so a
malformed message ends as `ProtocolError` and never as an allocation.
"""

import codecs
import struct

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_U64 = struct.Struct("<Q")


STREAM_INCORRECT = 4002


class ProtocolError(Exception):
    """The client sent bytes that are not TDS; its connection must end. `number` is the server's error for it."""

    def __init__(self, text: str, *, number: int = STREAM_INCORRECT) -> None:
        super().__init__(text)
        self.number = number


class Reader:
    """A cursor over one received message; reading past the end raises `ProtocolError`."""

    __slots__ = ("_data", "_end", "position")

    def __init__(self, data: bytes | bytearray | memoryview, position: int = 0, end: int | None = None) -> None:
        self._data = data if isinstance(data, bytes) else memoryview(data)
        self._end = len(data) if end is None else end
        self.position = position

    @property
    def remaining(self) -> int:
        """Bytes not yet read."""
        return self._end - self.position

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        start = self.position
        end = start + count
        if end > self._end:
            raise self._beyond(count)
        self.position = end
        return bytes(self._data[start:end])

    def skip(self, count: int) -> None:
        """Skip `count` bytes."""
        self._advance(count)

    def u8(self) -> int:
        """One byte, unsigned."""
        position = self.position
        if position >= self._end:
            raise self._beyond(1)
        self.position = position + 1
        return self._data[position]

    def peek(self) -> int:
        """The next byte without consuming it."""
        if self.position >= self._end:
            raise self._beyond(1)
        return self._data[self.position]

    def u16(self) -> int:
        """Two bytes, unsigned."""
        return _U16.unpack_from(self._data, self._advance(2))[0]

    def u32(self) -> int:
        """Four bytes, unsigned."""
        return _U32.unpack_from(self._data, self._advance(4))[0]

    def i32(self) -> int:
        """Four bytes, signed."""
        return _I32.unpack_from(self._data, self._advance(4))[0]

    def u64(self) -> int:
        """Eight bytes, unsigned."""
        return _U64.unpack_from(self._data, self._advance(8))[0]

    def text(self, characters: int) -> str:
        """UTF-16 text of that many code units."""
        return decode_utf16(self.take(characters * 2)) if characters else ""

    def b_varchar(self) -> str:
        """Text with a one-byte length in code units."""
        characters = self.u8()
        return decode_utf16(self.take(characters * 2)) if characters else ""

    def us_varchar(self) -> str:
        """Text with a two-byte length in code units."""
        return self.text(self.u16())

    def _advance(self, count: int) -> int:
        position = self.position
        if count > self._end - position:
            raise self._beyond(count)
        self.position = position + count
        return position

    def _beyond(self, count: int) -> ProtocolError:
        return ProtocolError(
            f"a field of {count} bytes at offset {self.position} goes beyond the message of {self._end} bytes"
        )


def decode_utf16(data: bytes) -> str:
    """UTF-16 text; lone surrogates are kept, as SQL Server stores any code unit."""
    if len(data) % 2:
        raise ProtocolError(f"UTF-16 text has an odd number of bytes: {len(data)}")
    # bytes.decode() would look up the codec and run Python code each time.
    return codecs.utf_16_le_decode(data, "surrogatepass", True)[0]


def encode_utf16(text: str) -> bytes:
    """UTF-16 bytes of a text, lone surrogates included."""
    return text.encode("utf-16-le", "surrogatepass")


def b_varchar(text: str) -> bytes:
    """Text with a one-byte length in code units; longer text is truncated."""
    encoded = encode_utf16(text)[:510]
    return bytes((len(encoded) // 2,)) + encoded


def us_varchar(text: str) -> bytes:
    """Text with a two-byte length in code units; longer text is truncated."""
    encoded = encode_utf16(text)[:131070]
    return _U16.pack(len(encoded) // 2) + encoded


def b_varbyte(data: bytes) -> bytes:
    """Bytes with a one-byte length."""
    return bytes((len(data),)) + data
