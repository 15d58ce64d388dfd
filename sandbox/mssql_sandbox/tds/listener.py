"""The listening socket: accepts clients, serves each in its own task, and stops them all."""

import asyncio
import contextlib
import logging

from mssql_sandbox.tds.connection import Connection, ConnectionSettings

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 1000
_WRITE_BUFFER = 512 * 1024


class Listener:
    """Serves TDS on one address within the running event loop."""

    def __init__(self, settings: ConnectionSettings, *, host: str, port: int) -> None:
        self._settings = settings
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port; if 0 was requested, the one that the system chose."""
        assert self._server is not None, "the listener is not started"
        return self._server.sockets[0].getsockname()[1]

    async def start(self) -> None:
        """Bind and accept.

        Raises:
            OSError: the address cannot be bound.
        """
        self._server = await asyncio.start_server(self._accept, self._host, self._port)

    async def stop(self) -> None:
        """End all connections and the listening socket."""
        if self._server is None:
            return
        self._server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        await self._server.wait_closed()
        self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            logger.warning("a client was turned away: %d connections are open", MAX_CONNECTIONS)
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None, "asyncio calls this in a task"
        self._connections.add(task)
        writer.transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        try:
            await Connection(reader, writer, self._settings).serve()
        except asyncio.CancelledError:
            writer.transport.abort()  # the server stops without waiting for clients that do not read
        except Exception:
            logger.exception("a connection failed for a reason that the client has not given")
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
