"""LOGIN7 (MS-TDS 2.2.6.4): the client's identity and its requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mssql_sandbox.tds.packets import DEFAULT_PACKET_SIZE, MAX_PACKET_SIZE, MIN_PACKET_SIZE
from mssql_sandbox.tds.wire import ProtocolError, Reader, decode_utf16

TDS_7_3_B = 0x730B0003
TDS_7_4 = 0x74000004
TDS_8_0 = 0x08000000
FEATURE_UTF8 = 0x0A

_FIXED_PART = 36
_READ_ONLY_INTENT = 0x20
_INTEGRATED_SECURITY = 0x80
_HAS_EXTENSION = 0x10
_CHANGE_PASSWORD = 0x01
_NEW_PASSWORD = 86
"""The offset and length of the new password."""
_FEATURE_TERMINATOR = 0xFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The login request of a client; packet size 0 means that the server chooses."""

    tds_version: int
    packet_size: int
    user: str
    password: str = field(repr=False)
    host: str
    application: str
    server: str
    library: str
    language: str
    database: str
    read_only_intent: bool
    integrated_security: bool
    features: Mapping[int, bytes]
    client_version: int = 0
    process_id: int = 0
    new_password: str | None = field(default=None, repr=False)
    """The new password (fChangePassword)."""

    @property
    def spoken(self) -> bool:
        """Whether this server supports the client's version of TDS: 7.3 (SQL Server 2008), 7.4 and 8.0."""
        return self.tds_version >= TDS_7_3_B or self.tds_version == TDS_8_0

    @property
    def negotiated_packet_size(self) -> int:
        """The requested size, within the limits of TDS."""
        if self.packet_size == 0:
            return DEFAULT_PACKET_SIZE
        return min(max(self.packet_size, MIN_PACKET_SIZE), MAX_PACKET_SIZE)


def parse_login(payload: bytes) -> Login:
    """The LOGIN7 message.

    Raises:
        ProtocolError: lengths or offsets outside the message.
    """
    reader = Reader(payload)
    reader.skip(4)
    version = reader.u32()
    packet_size = reader.u32()
    client_version, process_id = reader.u32(), reader.u32()
    reader.skip(4)  # connection id
    _, flags2, type_flags, flags3 = reader.take(4)
    reader.position = _FIXED_PART
    fields = [_field(reader) for _ in range(9)]
    changed = _field(Reader(payload, _NEW_PASSWORD)) if flags3 & _CHANGE_PASSWORD else None
    host, user, password, application, server, extension, library, language, database = fields
    return Login(
        tds_version=version,
        packet_size=packet_size,
        user=_text(payload, user),
        password=_reveal(_slice(payload, password[0], password[1] * 2)),
        host=_text(payload, host),
        application=_text(payload, application),
        server=_text(payload, server),
        library=_text(payload, library),
        language=_text(payload, language),
        database=_text(payload, database),
        read_only_intent=bool(type_flags & _READ_ONLY_INTENT),
        integrated_security=bool(flags2 & _INTEGRATED_SECURITY),
        features=_features(payload, extension) if flags3 & _HAS_EXTENSION else {},
        client_version=client_version,
        process_id=process_id,
        new_password=None if changed is None else _reveal(_slice(payload, changed[0], changed[1] * 2)),
    )


def _field(reader: Reader) -> tuple[int, int]:
    offset = reader.u16()
    return offset, reader.u16()


def _slice(payload: bytes, offset: int, length: int) -> bytes:
    if offset + length > len(payload):
        raise ProtocolError(f"a LOGIN7 field of {length} bytes at offset {offset} lies outside the message")
    return payload[offset : offset + length]


def _text(payload: bytes, where: tuple[int, int]) -> str:
    offset, length = where
    return decode_utf16(_slice(payload, offset, length * 2))


def _reveal(hidden: bytes) -> str:
    """Decode the password: XOR 0xA5, then swap the halves of each byte."""
    plain = bytes(((byte ^ 0xA5) << 4 | (byte ^ 0xA5) >> 4) & 0xFF for byte in hidden)
    return decode_utf16(plain)


def _features(payload: bytes, where: tuple[int, int]) -> dict[int, bytes]:
    offset, length = where
    if length == 0:
        return {}
    start = int.from_bytes(_slice(payload, offset, 4), "little")
    if start > len(payload):
        raise ProtocolError(f"the LOGIN7 feature list at offset {start} lies outside the message")
    reader = Reader(payload, start)
    features: dict[int, bytes] = {}
    while (feature := reader.u8()) != _FEATURE_TERMINATOR:
        features[feature] = reader.take(reader.u32())
    return features
