"""Messages in, packets out: the socket of one client, through TLS if it is on."""

import asyncio
import ssl

from mssql_sandbox.engine.clients import ConnectionFacts
from mssql_sandbox.tds.login import Login
from mssql_sandbox.tds.packets import Message, MessageAssembler, PacketType, PacketWriter
from mssql_sandbox.tds.tls import TlsChannel
from mssql_sandbox.tds.watching import FaultyAnswer
from mssql_sandbox.tds.wire import ProtocolError

_READ_SIZE = 65536
_HANDSHAKE_RECORD = b"\x16"
# Before login, a client has no reason to send more than this.
LOGIN_MESSAGE_LIMIT = 128 * 1024


class Packets:
    """One stream of messages in and packets out: the whole socket, or a session of it under MARS."""

    def __init__(self, *, limit: int) -> None:
        self._assembler = MessageAssembler(limit=limit)
        self.packets = PacketWriter()
        self.faulty: FaultyAnswer | None = None
        """Set while an answer must fail on the wire."""

    async def receive(self) -> Message | None:
        """The next message, or None if the client has gone.

        Raises:
            ProtocolError: what came is not TDS.
            ssl.SSLError: what came is not TLS.
        """
        while (message := self._assembler.next_message()) is None:
            data = await self.read()
            if not data:
                return None
            self._assembler.feed(data)
        return message

    async def read(self) -> bytes:
        """The next bytes from the client; none if it has gone."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Wait until the client can receive more."""
        raise NotImplementedError

    def send(self, data: bytes | bytearray) -> None:
        """Write whole packets."""
        raise NotImplementedError

    async def flush(self) -> None:
        """Send the full packets of the current message and wait until the client can receive more."""
        if self.faulty is not None:
            await self.faulty.send(self.packets.full_packets(), self.send)
        else:
            self.send(self.packets.full_packets())
        await self.drain()
        # drain() does not yield while the socket accepts everything; other tasks, and attentions, need their turn.
        await asyncio.sleep(0)

    def finish_now(self, kind: PacketType = PacketType.RESPONSE) -> None:
        """Send the rest of the message without waiting."""
        self.send(self.packets.finish(kind))

    async def finish_faulty(self) -> bool:
        """Send the rest of an answer that fails; returns whether the connection ends with it."""
        assert self.faulty is not None
        faulty, self.faulty = self.faulty, None
        await faulty.send(self.packets.finish(PacketType.RESPONSE), self.send)
        await self.drain()
        return faulty.fault.cut == "after"

    async def finish(self, kind: PacketType = PacketType.RESPONSE) -> None:
        """Send the rest of the message and wait until the client can receive more."""
        self.finish_now(kind)
        await self.drain()


class Channel(Packets):
    """The socket of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(limit=LOGIN_MESSAGE_LIMIT)
        self._reader = reader
        self._writer = writer
        self._tls: TlsChannel | None = None

    async def read(self) -> bytes:
        """The next bytes from the client, decrypted; none if it has gone."""
        while data := await self._reader.read(_READ_SIZE):
            plain = data if self._tls is None else self._tls.decrypt(data)
            if plain:
                return plain
        return b""

    def take_rest(self) -> bytes:
        """Bytes received after the last message."""
        return self._assembler.take_rest()

    async def drain(self) -> None:
        """Wait until the client can receive more."""
        await self._writer.drain()

    def send(self, data: bytes | bytearray) -> None:
        """Write whole packets."""
        if data:
            self._writer.write(data if self._tls is None else self._tls.encrypt(data))

    @property
    def message_limit(self) -> int:
        """The largest message accepted, in bytes."""
        return self._assembler.limit

    def allow_messages(self, limit: int) -> None:
        """Set the largest message accepted from now on, in bytes."""
        self._assembler.limit = limit

    async def tls_first(self, context: ssl.SSLContext | None) -> bool:
        """Whether the client starts with TLS, as in TDS 8.0 (Encrypt=strict); the handshake is then done.

        Raises:
            ProtocolError: it does, and there is no certificate.
        """
        data = await self._reader.read(_READ_SIZE)
        if data[:1] != _HANDSHAKE_RECORD:
            self._assembler.feed(data)
            return False
        if context is None:
            raise ProtocolError("the client begins with TLS (TDS 8.0, Encrypt=strict), and this server has none")
        tls = TlsChannel(context)
        done = False
        while not done:
            answer, done = tls.handshake(data)
            self._writer.write(answer)
            data = b"" if done else await self._reader.read(_READ_SIZE)
            if not done and not data:
                raise ProtocolError("the client left during the TLS handshake")
        self._tls = tls
        self._assembler.feed(tls.decrypt(b""))
        return True

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Do the handshake, whose records travel inside PRELOGIN packets; later records do not."""
        tls = TlsChannel(context)
        done = False
        while not done:
            message = await self.receive()
            if message is None:
                raise ProtocolError("the client left during the TLS handshake")
            if message.kind is not PacketType.PRELOGIN:
                raise ProtocolError(f"a {message.kind.name} message during the TLS handshake")
            answer, done = tls.handshake(message.payload)
            if answer:
                self.packets.add(answer)
                await self.finish(PacketType.PRELOGIN)
        rest = self._assembler.take_rest()
        self._tls = tls
        self._assembler.feed(tls.decrypt(rest))

    def stop_tls(self) -> None:
        """Continue in clear text: TLS was for the login only."""
        self._tls = None

    def abort(self) -> None:
        """Close the connection at once; unsent data is lost."""
        self._writer.transport.abort()

    def facts(self, login: Login, *, encrypted: bool) -> ConnectionFacts:
        """Both ends of the socket, and the client's description of itself."""
        client, server = self._writer.get_extra_info("peername"), self._writer.get_extra_info("sockname")
        return ConnectionFacts(
            transport="TCP",
            protocol_version=login.tds_version,
            encrypted=encrypted,
            packet_size=login.negotiated_packet_size,
            client_address=client[0] if client else "",
            client_port=client[1] if client else None,
            server_address=server[0] if server else None,
            server_port=server[1] if server else None,
            process_id=login.process_id,
            library=login.library,
            client_version=login.client_version,
        )
