"""The whole stand-in server: puts engine, catalogue, change data capture and TDS together, starts and stops them.

The command line belongs to command.py.
"""

import asyncio
import ipaddress
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from mssql_sandbox.address import Address
from mssql_sandbox.authentication import authenticate
from mssql_sandbox.engine.product import DEFAULT, VERSIONS
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.errors import error
from mssql_sandbox.exec.lanes import Lanes
from mssql_sandbox.exec.security import user_of
from mssql_sandbox.exec.session import Session
from mssql_sandbox.registry import Catalog
from mssql_sandbox.scripts import run_script
from mssql_sandbox.tds.connection import ConnectionSettings
from mssql_sandbox.tds.listener import Listener
from mssql_sandbox.tds.login import Login
from mssql_sandbox.tds.prelogin import EncryptMode
from mssql_sandbox.tds.tls import server_context

ADMINISTRATOR = "sa"
START_SECONDS = 60.0

T = TypeVar("T")


class SandboxServer:
    """A stand-in SQL Server on one address; runs in the event loop that starts it."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        password: str | None = None,
        encrypt: EncryptMode = "login",
        capture_interval: float | None = None,
        scripts: Sequence[Path] = (),
        allow_remote: bool = False,
        engine: Server | None = None,
        version: str = DEFAULT,
    ) -> None:
        """A server that is not started yet.

        Args:
            host: address to listen on. One that other machines can reach needs `allow_remote` and a password.
            port: port to listen on; 0 chooses a free port.
            password: password of `sa`; a random one if None.
            encrypt: TLS "off", for the "login", or "on" for everything.
            capture_interval: seconds that the capture job sleeps between scans; SQL Server's default if None.
            scripts: T-SQL scripts to run before clients may connect.
            allow_remote: allow an address other than loopback.
            engine: an engine to serve; a new one if None.
            version: one of `engine.product.VERSIONS`.

        Raises:
            ValueError: the address needs `allow_remote` and a password.
        """
        _check_address(host, password, allow_remote=allow_remote)
        self.host = host
        self.user = ADMINISTRATOR
        self.password = password if password is not None else secrets.token_urlsafe(18)
        self.engine = engine or Server(version=VERSIONS[version])
        self._wanted_port = port
        self._encrypt: EncryptMode = encrypt
        self._capture_interval = capture_interval
        self._scripts = tuple(scripts)
        self._listener: Listener | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def port(self) -> int:
        """The port on which clients are accepted."""
        assert self._listener is not None, "the server is not started"
        return self._listener.port

    @property
    def address(self) -> Address:
        """How to connect."""
        return Address(self.host, self.port, self.user, self.password)

    async def start(self) -> None:
        """Run the scripts, start the jobs, then accept clients.

        Raises:
            ScriptError: a script failed; nothing listens then.
            OSError: the address cannot be bound.
        """
        self._loop = asyncio.get_running_loop()
        self.engine.catalog = Catalog(self.engine, capture_interval=self._capture_interval)
        self.engine.add_login(self.user, self.password, server_roles={"sysadmin"})
        await self._run_scripts()
        settings = ConnectionSettings(
            sessions=self._open_session,
            encrypt=self._encrypt,
            tls=None if self._encrypt == "off" else server_context(self.host),
            server_name=self.engine.name,
            collation=self.engine.collation,
            version=self.engine.version.wire,
            watch=self.engine.catalog.wire,
        )
        listener = Listener(settings, host=self.host, port=self._wanted_port)
        await listener.start()
        self._listener = listener

    async def stop(self) -> None:
        """End all connections and jobs."""
        if self._listener is not None:
            await self._listener.stop()
            self._listener = None
        if self.engine.catalog is not None:
            self.engine.catalog.close()

    def call(self, function: Callable[[], Awaitable[T]], *, seconds: float = 60.0) -> T:
        """Run a coroutine in the server's event loop from another thread.

        Args:
            function: makes the coroutine.
            seconds: how long it may take.

        Returns:
            The coroutine's result.

        Raises:
            TimeoutError: it took longer, and was cancelled.
        """
        assert self._loop is not None, "the server is not started"

        async def run() -> T:
            async with asyncio.timeout(seconds):
                return await function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    async def _run_scripts(self) -> None:
        if not self._scripts:
            return
        session = Session(self.engine, login=self.user, database="master", application="script")
        try:
            for path in self._scripts:
                await run_script(session, path)
        finally:
            session.close()

    def _open_session(self, login: Login) -> Session:
        """Open the session of a client.

        Raises:
            SqlError: those of `authenticate`, and 4060 for a database in which the login has no user.
        """
        account = authenticate(self.engine, login)
        database = login.database or account.default_database
        if database not in self.engine.databases:
            raise error(4060, name=database)
        session = Session(
            self.engine,
            login=account.name,
            database=database,
            application=login.application,
            host=login.host,
            read_only_intent=login.read_only_intent,
        )
        if user_of(session, session.current_database) is None:
            session.close()
            raise error(4060, name=database)
        session.open_lane = Lanes(session).open
        return session


def _check_address(host: str, password: str | None, *, allow_remote: bool) -> None:
    if reachable_by_others(host) and (not allow_remote or not password):
        raise ValueError(
            f"{host} can be reached by other machines: use a loopback address, or allow_remote=True with a password"
        )


def reachable_by_others(host: str) -> bool:
    """Whether an address is not loopback; host names other than localhost count as reachable."""
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


@contextmanager
def serve_in_thread(server: SandboxServer | None = None) -> Iterator[SandboxServer]:
    """Run the server in a thread of its own until the block ends."""
    server = server or SandboxServer()
    loop = asyncio.new_event_loop()
    started: list[BaseException | None] = []
    ready = threading.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(server.start())
        except BaseException as failure:  # noqa: BLE001 - handed to the thread that waits for it
            started.append(failure)
            ready.set()
        else:
            started.append(None)
            ready.set()
            loop.run_forever()
            loop.run_until_complete(server.stop())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=run, name="sandbox")
    thread.start()
    if not ready.wait(START_SECONDS):
        raise TimeoutError(f"the sandbox did not start within {START_SECONDS} seconds")
    if started[0] is not None:
        thread.join()
        raise started[0]
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(START_SECONDS)
        if thread.is_alive():
            raise TimeoutError(f"the sandbox did not stop within {START_SECONDS} seconds")
