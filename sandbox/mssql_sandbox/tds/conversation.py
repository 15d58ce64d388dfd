"""Requests and their answers, one after the other, until the client leaves.

Requests run in one task while another keeps reading, so that an attention is noticed in time. Everything before the
first request (PRELOGIN, TLS, LOGIN7) belongs to connection.py.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable

from mssql_sandbox.engine.events import EnvChange, Event
from mssql_sandbox.engine.events import Message as MessageEvent
from mssql_sandbox.errors import SqlError
from mssql_sandbox.tds import tokens
from mssql_sandbox.tds.channel import Packets
from mssql_sandbox.tds.decoders import InvalidValueError
from mssql_sandbox.tds.packets import Message, PacketType
from mssql_sandbox.tds.requests import parse_batch, parse_rpc, parse_transaction_request, read_headers
from mssql_sandbox.tds.response import Response
from mssql_sandbox.tds.rowsets import read_bulk_load
from mssql_sandbox.tds.session import Session
from mssql_sandbox.tds.tokens import DoneStatus, DoneToken
from mssql_sandbox.tds.watching import FaultyAnswer, Request, Watch, call_request
from mssql_sandbox.tds.wire import STREAM_INCORRECT, ProtocolError, Reader

logger = logging.getLogger(__name__)

_PIPELINED_REQUESTS = 4
_TURN_SECONDS = 0.05
_INCORRECT_STREAM = "The incoming tabular data stream (TDS) protocol stream is incorrect. "
_INCORRECT_CALL = "The incoming tabular data stream (TDS) remote procedure call (RPC) protocol stream is incorrect. "


class Conversation:
    """One stream of requests and the session that runs them.

    Under MARS each request names its transaction: `enlist` is called before it runs.
    """

    def __init__(
        self,
        channel: Packets,
        session: Session,
        *,
        server_name: str,
        watch: Watch | None,
        enlist: Callable[[int], None] | None = None,
    ) -> None:
        self._channel = channel
        self._session = session
        self._server_name = server_name
        self._watching = watch
        self._enlist = enlist
        self._requests: asyncio.Queue[Message] = asyncio.Queue(_PIPELINED_REQUESTS)
        self._outstanding = 0
        self._attention = False

    async def run(self) -> bool:
        """Answer until the client leaves (False) or the connection must end (True).

        Raises:
            ProtocolError: what came is no request.
            ConnectionError: the client has gone.
        """
        session = self._session
        reading = asyncio.create_task(self._read(session))
        answering = asyncio.create_task(self._answer_all(session))
        try:
            done, _ = await asyncio.wait({reading, answering}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            session.cancel()
            for task in (reading, answering):
                task.cancel()
            await asyncio.wait({reading, answering})
        for task in done:
            task.result()
        return answering in done

    async def _read(self, session: Session) -> None:
        while (message := await self._channel.receive()) is not None:
            if message.kind is PacketType.ATTENTION and self._outstanding:
                self._attention = True
                session.cancel()
                continue
            if message.kind is not PacketType.ATTENTION:
                self._outstanding += 1
            await self._requests.put(message)

    async def _answer_all(self, session: Session) -> None:
        while True:
            message = await self._requests.get()
            if message.kind is PacketType.ATTENTION:
                self._acknowledge(session)
                await self._channel.drain()
            elif await self._answer(session, message):
                return

    async def _answer(self, session: Session, message: Message) -> bool:
        """Answer a request; True if the connection must end."""
        response = Response(
            self._channel.packets,
            server_name=self._server_name,
            rpc=message.kind is PacketType.RPC,
        )
        broken = await self._execute(session, message, response)
        if self._attention or message.ignored:
            response.abandon()
        else:
            response.finish(in_transaction=session.transaction_descriptor != 0)
        cut = await self._channel.finish_faulty() if self._channel.faulty else self._channel.finish_now()
        self._outstanding -= 1
        if self._attention:
            # The answer to the request ends first; the attention has a separate message.
            self._attention = False
            self._acknowledge(session)
        await self._channel.drain()
        return broken or response.fatal or bool(cut)

    def _acknowledge(self, session: Session) -> None:
        status = DoneStatus.ATTENTION
        if session.transaction_descriptor:
            status |= DoneStatus.IN_TRANSACTION
        self._channel.packets.add(tokens.done(DoneToken.DONE, status))
        self._channel.finish_now()

    async def _execute(self, session: Session, message: Message, response: Response) -> bool:
        """Run the request into the response; True if the connection must end."""
        if message.ignored:
            return False
        try:
            if message.resets:
                session.reset(keep_transaction=message.keeps_transaction)
                await self._write(response, EnvChange("reset"))
            await self._run(session, message, response)
        except ProtocolError as error:
            stream = _INCORRECT_STREAM if error.number == STREAM_INCORRECT else _INCORRECT_CALL
            await self._write(response, MessageEvent(error.number, 2, 16, f"{stream}{error}"))
            return True
        except InvalidValueError as error:
            await self._write(response, MessageEvent(8023, 1, 16, f"{_INCORRECT_CALL}{error}"))
        except SqlError as error:
            event = MessageEvent(
                error.number, error.state, error.severity, error.message, error.procedure, max(error.line, 1)
            )
            await self._write(response, event)
        except ConnectionError:
            raise
        except Exception as error:
            # A fault of the engine must not affect other clients: report it to this one and end its connection.
            logger.exception("a request failed for a reason that is no SQL error")
            text = f"A system assertion check has failed: {type(error).__name__}: {error}"
            await self._write(response, MessageEvent(3624, 1, 20, text))
        return False

    async def _run(self, session: Session, message: Message, response: Response) -> None:
        kind, payload = message.kind, message.payload
        if self._enlist is not None:
            self._enlist(read_headers(Reader(payload)))
        if kind is PacketType.BATCH:
            text = parse_batch(payload)
            self._watch(session, lambda: Request("batch", text=text))
            await self._pump(session.batch(text), response)
        elif kind is PacketType.RPC:
            for call in parse_rpc(payload):
                if self._attention:
                    return
                response.start_call()
                self._watch(session, lambda call=call: call_request(call.name, call.parameters))
                if call.execute:
                    await self._pump(session.rpc(call.name, call.parameters), response)
                response.end_call(in_transaction=session.transaction_descriptor != 0)
                if response.fatal:
                    return
        elif kind is PacketType.BULK_LOAD:
            data = read_bulk_load(payload)
            self._watch(session, lambda: Request("bulk", text=f"{len(data.rows)} rows of {', '.join(data.names)}"))
            await self._pump(session.bulk_load(data), response)
        elif kind is PacketType.TRANSACTION:
            request = parse_transaction_request(payload)
            self._watch(session, lambda: Request("transaction", request.kind, request.name))
            await self._pump(session.transaction_request(request), response)
        else:
            raise ProtocolError(f"{kind.name} messages are not supported after the login")

    def _watch(self, session: Session, request: Callable[[], Request]) -> None:
        """Show the request to the watcher, which may order a fault for its answer."""
        watch = self._watching
        if watch is None or not watch.active:
            return
        fault = watch.request(session.spid, request())
        if fault is None:
            return
        self._channel.faulty = FaultyAnswer(fault)
        if fault.cut == "before":
            raise ConnectionAbortedError("cut before the request was run, as ordered")

    async def _pump(self, events: AsyncGenerator[Event, None], response: Response) -> None:
        turn_ends = time.monotonic() + _TURN_SECONDS
        async with contextlib.aclosing(events):
            if self._attention:
                return
            async for event in events:
                await self._write(response, event)
                if self._attention or response.fatal:
                    return
                if time.monotonic() > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = time.monotonic() + _TURN_SECONDS

    async def _write(self, response: Response, event: Event) -> None:
        for _ in response.add(event):
            await self._channel.flush()
            if self._attention:
                return
