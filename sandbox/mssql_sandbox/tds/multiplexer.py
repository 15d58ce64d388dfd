"""MARS: several conversations over one connection, each in an SMP session of its own (MS-TDS 2.2.1.8, MC-SMP).

The session's side of it, one transaction and one environment for all requests, belongs to `exec/lanes.py`.
"""

import asyncio
import logging
from collections import deque

from mssql_sandbox.tds.channel import Channel, Packets
from mssql_sandbox.tds.conversation import Conversation
from mssql_sandbox.tds.packets import split_packets
from mssql_sandbox.tds.session import Session
from mssql_sandbox.tds.smp import Flag, Frames, Packet, Windows
from mssql_sandbox.tds.watching import Watch
from mssql_sandbox.tds.wire import ProtocolError

logger = logging.getLogger(__name__)


class LaneChannel(Packets):
    """One SMP session as a stream of messages; a TDS packet is one DATA packet."""

    def __init__(self, channel: Channel, syn: Packet) -> None:
        super().__init__(limit=channel.message_limit)
        self.packets.spid, self.packets.size = channel.packets.spid, channel.packets.size
        self._channel = channel
        self._windows = Windows(syn)
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self._unsent: deque[bytes] = deque()
        self._all_sent = asyncio.Event()
        self._all_sent.set()

    def heard(self, packet: Packet) -> None:
        """Handle a packet of the client: data for `read`, and window space for waiting output."""
        self._windows.heard(packet)
        if packet.flag is Flag.DATA:
            self._arrived.put_nowait(packet.data)
        elif packet.flag is Flag.FIN:
            self._arrived.put_nowait(b"")
        self._send_what_fits()

    async def read(self) -> bytes:
        """The next packet of the client; none if it has closed this SMP session."""
        data = await self._arrived.get()
        if data:
            self._channel.send(self._windows.consumed())
        return data

    def send(self, data: bytes | bytearray) -> None:
        """Write whole packets; those beyond the client's window wait."""
        self._unsent.extend(split_packets(data))
        self._send_what_fits()

    async def drain(self) -> None:
        """Wait until the client can receive more, in this session and on the socket."""
        await self._all_sent.wait()
        await self._channel.drain()

    def finished(self) -> None:
        """Tell the client that this SMP session has ended."""
        self._channel.send(self._windows.finished())

    def _send_what_fits(self) -> None:
        ready = bytearray()
        while self._unsent and self._windows.open:
            ready += self._windows.wrap(self._unsent.popleft())
        if ready:
            self._channel.send(ready)
        if self._unsent:
            self._all_sent.clear()
        else:
            self._all_sent.set()


class Multiplexer:
    """Runs the conversations of one connection."""

    def __init__(self, channel: Channel, session: Session, *, server_name: str, watch: Watch | None) -> None:
        self._channel = channel
        self._session = session
        self._server_name = server_name
        self._watch = watch
        self._lanes: dict[int, LaneChannel] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken = asyncio.Event()

    async def run(self) -> None:
        """Run until the client leaves, or the connection must end.

        Raises:
            ProtocolError: what came is not SMP, or breaks its rules.
        """
        reading = asyncio.create_task(self._read())
        breaking = asyncio.create_task(self._broken.wait())
        try:
            await asyncio.wait({reading, breaking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = {reading, breaking, *self._tasks}
            ended = reading.done()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if ended:
            reading.result()

    async def _read(self) -> None:
        frames = Frames()
        data = self._channel.take_rest() or await self._channel.read()
        while data:
            for packet in frames.feed(data):
                self._take(packet)
            data = await self._channel.read()

    def _take(self, packet: Packet) -> None:
        if packet.flag is Flag.SYN:
            if packet.session in self._lanes:
                raise ProtocolError(f"SMP session {packet.session} is opened twice")
            lane = self._lanes[packet.session] = LaneChannel(self._channel, packet)
            task = asyncio.create_task(self._converse(packet.session, lane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        lane = self._lanes.get(packet.session)
        if lane is None:
            raise ProtocolError(f"an SMP {packet.flag.name} packet of session {packet.session}, which is not open")
        lane.heard(packet)

    async def _converse(self, number: int, lane: LaneChannel) -> None:
        assert self._session.open_lane is not None, "MARS was granted without it"
        session = self._session.open_lane()
        conversation = Conversation(
            lane, session, server_name=self._server_name, watch=self._watch, enlist=session.enlist
        )
        broken = True
        try:
            broken = await conversation.run()
        except (ProtocolError, ConnectionError) as error:
            logger.info("a connection ended: %s", error)
        finally:
            session.close()
            if broken:
                self._broken.set()
            else:
                del self._lanes[number]
                lane.finished()
