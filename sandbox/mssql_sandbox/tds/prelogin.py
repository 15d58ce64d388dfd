"""PRELOGIN (MS-TDS 2.2.6.5): versions and negotiation of encryption.

The encryption matrix was measured with FreeTDS, Microsoft's ODBC Driver 18 and mssql-jdbc.
"""

import enum
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mssql_sandbox.engine.product import ProductVersion
from mssql_sandbox.tds.wire import ProtocolError, Reader

DEFAULT_VERSION = ProductVersion().wire
EncryptMode = Literal["off", "login", "on"]

_VERSION, _ENCRYPTION, _INSTANCE, _THREAD, _MARS, _FEDERATED = 0, 1, 2, 3, 4, 6
_TERMINATOR = 0xFF


class Encryption(enum.IntEnum):
    """The values of the ENCRYPTION option."""

    OFF = 0
    ON = 1
    NOT_SUPPORTED = 2
    REQUIRED = 3


class Protection(enum.Enum):
    """What TLS protects after the handshake."""

    NOTHING = "nothing"
    LOGIN = "login"
    EVERYTHING = "everything"


_E = Encryption
# The server's mode and the client's byte determine the server's byte.
_REPLIES: Mapping[EncryptMode, Mapping[Encryption, Encryption]] = {
    "off": dict.fromkeys(_E, _E.NOT_SUPPORTED),
    "login": {_E.OFF: _E.OFF, _E.ON: _E.ON, _E.NOT_SUPPORTED: _E.NOT_SUPPORTED, _E.REQUIRED: _E.ON},
    "on": {_E.OFF: _E.REQUIRED, _E.ON: _E.ON, _E.NOT_SUPPORTED: _E.REQUIRED, _E.REQUIRED: _E.ON},
}


@dataclass(frozen=True, slots=True)
class Prelogin:
    """The client's options before login."""

    encryption: Encryption
    wants_federated: bool
    wants_mars: bool
    options: Mapping[int, bytes]


def parse_prelogin(payload: bytes) -> Prelogin:
    """The options of a client's PRELOGIN message.

    Raises:
        ProtocolError: no list of options, or an encryption byte that is none.
    """
    reader = Reader(payload)
    options: dict[int, bytes] = {}
    while (token := reader.u8()) != _TERMINATOR:
        offset, length = struct.unpack(">HH", reader.take(4))
        if offset + length > len(payload):
            raise ProtocolError(f"PRELOGIN option {token} lies outside the message")
        options[token] = payload[offset : offset + length]
    encryption = options.get(_ENCRYPTION, bytes((Encryption.NOT_SUPPORTED,)))
    if len(encryption) != 1 or encryption[0] not in tuple(Encryption):
        raise ProtocolError(f"PRELOGIN asks for encryption {encryption.hex()}; expected 00, 01, 02 or 03")
    return Prelogin(Encryption(encryption[0]), _FEDERATED in options, options.get(_MARS) == b"\x01", options)


def negotiate(mode: EncryptMode, client: Encryption) -> tuple[Encryption, Protection]:
    """The server's ENCRYPTION byte, and what TLS will protect."""
    reply = _REPLIES[mode][client]
    if reply is Encryption.NOT_SUPPORTED:
        return reply, Protection.NOTHING
    return reply, Protection.LOGIN if reply is Encryption.OFF else Protection.EVERYTHING


def prelogin_reply(prelogin: Prelogin, encryption: Encryption, version: bytes = DEFAULT_VERSION) -> bytes:
    """The server's PRELOGIN options; FEDAUTHREQUIRED is answered only if requested; MARS is granted if requested.

    `version`: four bytes, major, minor and build; what drivers show as the version of the DBMS.
    """
    options: list[tuple[int, bytes]] = [
        (_VERSION, version + b"\0\0"),
        (_ENCRYPTION, bytes((encryption,))),
        (_INSTANCE, b"\0"),
        (_THREAD, b""),
        (_MARS, bytes((prelogin.wants_mars,))),
    ]
    if prelogin.wants_federated:
        options.append((_FEDERATED, b"\0"))
    offset = 5 * len(options) + 1
    head, body = bytearray(), bytearray()
    for token, value in options:
        head += struct.pack(">BHH", token, offset + len(body), len(value))
        body += value
    return bytes(head) + bytes((_TERMINATOR,)) + bytes(body)
