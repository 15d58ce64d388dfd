"""TLS on memory buffers, and the self-signed certificate of the server.

TLS is driven explicitly because its handshake travels inside TDS packets and because it may end after the login
message; asyncio's own TLS supports neither.
"""

import datetime as dt
import ipaddress
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

_READ_SIZE = 65536


class TlsChannel:
    """The server's end of one TLS connection: bytes in, bytes out, no socket."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def handshake(self, data: bytes) -> tuple[bytes, bool]:
        """Process the client's handshake records; returns the answer and whether the handshake is done.

        Raises:
            ssl.SSLError: the client's records are not acceptable.
        """
        self._incoming.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return self._outgoing.read(), False
        return self._outgoing.read(), True

    def decrypt(self, data: bytes) -> bytes:
        """The plain text of these records."""
        self._incoming.write(data)
        plain = bytearray()
        while True:
            try:
                piece = self._tls.read(_READ_SIZE)
            except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                return bytes(plain)
            if not piece:
                return bytes(plain)
            plain += piece

    def encrypt(self, data: bytes | bytearray) -> bytes:
        """The records of this plain text."""
        view = memoryview(data)
        while view:
            written = self._tls.write(view)
            view = view[written:]
        return self._outgoing.read()


def server_context(host: str) -> ssl.SSLContext:
    """A TLS context with a new self-signed certificate for the host, limited to TLS 1.2.

    With TLS 1.3 drivers send their last handshake record outside a packet while the server still expects
    it inside one, and the login times out (measured with three drivers).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory() as folder:
        # The ssl module reads certificates from files only.
        path = Path(folder) / "server.pem"
        path.touch(mode=0o600)
        path.write_bytes(self_signed_certificate(host))
        context.load_cert_chain(path)
    context.set_alpn_protocols(["tds/8.0"])
    return context


def self_signed_certificate(host: str) -> bytes:
    """Key and certificate as PEM, valid from yesterday for ten years."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    try:
        names.append(x509.IPAddress(ipaddress.ip_address(host)))
    except ValueError:
        names.append(x509.DNSName(host))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) + certificate.public_bytes(serialization.Encoding.PEM)
