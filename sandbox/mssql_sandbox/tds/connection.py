"""The course of one connection: PRELOGIN, TLS, LOGIN7, then requests until the client leaves (conversation.py).

A malformed message ends at most the connection that sent it.
"""

import asyncio
import logging
import ssl
from dataclasses import dataclass

from mssql_sandbox.engine.collation import Collation
from mssql_sandbox.errors import SqlError
from mssql_sandbox.tds.channel import Channel
from mssql_sandbox.tds.conversation import Conversation
from mssql_sandbox.tds.login import Login, parse_login
from mssql_sandbox.tds.login_response import LOGIN_FAILED, login_accepted, login_refused
from mssql_sandbox.tds.multiplexer import Multiplexer
from mssql_sandbox.tds.packets import Message, PacketType
from mssql_sandbox.tds.prelogin import (
    DEFAULT_VERSION,
    EncryptMode,
    Protection,
    negotiate,
    parse_prelogin,
    prelogin_reply,
)
from mssql_sandbox.tds.session import Session, SessionFactory
from mssql_sandbox.tds.watching import Watch
from mssql_sandbox.tds.wire import ProtocolError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """What all connections of a server share. Limits are in seconds and bytes."""

    sessions: SessionFactory
    encrypt: EncryptMode
    tls: ssl.SSLContext | None
    server_name: str
    collation: Collation | None = None
    version: bytes = DEFAULT_VERSION
    """Major, minor and build, four bytes."""
    watch: Watch | None = None
    login_seconds: float = 15.0
    message_limit: int = 64 * 1024 * 1024


class Connection:
    """One client."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, settings: ConnectionSettings
    ) -> None:
        self._channel = Channel(reader, writer)
        self._settings = settings
        self._session: Session | None = None
        self._mars = False

    async def serve(self) -> None:
        """Talk to the client until it leaves or misbehaves; never raises for anything that a client does."""
        try:
            async with asyncio.timeout(self._settings.login_seconds):
                session = await self._establish()
            if session is not None:
                self._session = session
                await self._talk(session)
        except (ProtocolError, ssl.SSLError, ConnectionError, TimeoutError) as error:
            logger.info("a connection ended: %s", error)
        finally:
            if self._session is not None:
                self._session.close()

    async def _talk(self, session: Session) -> None:
        settings = self._settings
        if self._mars:
            await Multiplexer(self._channel, session, server_name=settings.server_name, watch=settings.watch).run()
            return
        await Conversation(self._channel, session, server_name=settings.server_name, watch=settings.watch).run()

    # -- login -----------------------------------------------------------------------------------------------

    async def _establish(self) -> Session | None:
        strict = await self._channel.tls_first(self._settings.tls)
        message = await self._expect(PacketType.PRELOGIN)
        if message is None:
            return None
        prelogin = parse_prelogin(message.payload)
        self._mars = prelogin.wants_mars
        encryption, protection = negotiate(self._settings.encrypt, prelogin.encryption)
        if strict:
            # The connection is inside TLS already; the encryption option of PRELOGIN has no meaning then.
            encryption, protection = prelogin.encryption, Protection.NOTHING
        self._channel.packets.add(prelogin_reply(prelogin, encryption, self._settings.version))
        await self._channel.finish()
        if protection is not Protection.NOTHING:
            assert self._settings.tls is not None, "encryption was offered without a certificate"
            await self._channel.start_tls(self._settings.tls)
        message = await self._expect(PacketType.LOGIN7)
        if message is None:
            return None
        if protection is Protection.LOGIN:
            self._channel.stop_tls()
        return await self._log_in(parse_login(message.payload), encrypted=strict or protection is Protection.EVERYTHING)

    async def _expect(self, kind: PacketType) -> Message | None:
        message = await self._channel.receive()
        if message is not None and message.kind is not kind:
            raise ProtocolError(f"a {message.kind.name} message where {kind.name} was expected")
        return message

    async def _log_in(self, login: Login, *, encrypted: bool) -> Session | None:
        server_name = self._settings.server_name
        try:
            if not login.spoken:
                raise _unspoken(login)
            session = self._settings.sessions(login)
        except SqlError as reason:
            self._channel.packets.add(login_refused(login, reason, server_name=server_name))
            await self._channel.finish()
            return None
        session.on_kill = self._channel.abort
        session.connection = self._channel.facts(login, encrypted=encrypted)
        self._channel.packets.spid = session.spid
        welcome = login_accepted(
            login,
            database=session.database,
            server_name=server_name,
            collation=self._settings.collation,
            version=self._settings.version,
        )
        self._channel.packets.add(welcome)
        self._channel.finish_now()
        # The size applies from the next message on.
        self._channel.packets.size = login.negotiated_packet_size
        self._channel.allow_messages(self._settings.message_limit)
        return session


def _unspoken(login: Login) -> SqlError:
    return SqlError(
        LOGIN_FAILED,
        f"Login failed for user '{login.user}': the client speaks TDS 0x{login.tds_version:08X}, and this server "
        "7.3, 7.4 and 8.0 (FreeTDS: TDS_Version=7.4).",
        severity=14,
    )
