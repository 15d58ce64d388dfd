"""A session that answers from a script: the protocol layer's other side, without an engine.

`echo` sends the parameters of a call back as one row, so that every type can be seen to travel both ways.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import cast

from mssql_sandbox.engine import types
from mssql_sandbox.engine.events import (
    Columns,
    Done,
    EnvChange,
    Event,
    OutputParameter,
    ProcDone,
    ReturnStatus,
    Rows,
    RpcParameter,
    TmRequest,
)
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.errors import error
from mssql_sandbox.tds.connection import ConnectionSettings
from mssql_sandbox.tds.listener import Listener
from mssql_sandbox.tds.login import Login
from mssql_sandbox.tds.prelogin import EncryptMode
from mssql_sandbox.tds.session import Session
from mssql_sandbox.tds.tls import server_context

PASSWORD = "a; b'c \"d"
Script = Callable[[str], AsyncIterator[Event]]


@dataclass
class Log:
    """What the sessions of one server were asked, in order."""

    logins: list[Login] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)
    calls: list[tuple[str, list[RpcParameter]]] = field(default_factory=list)
    transactions: list[TmRequest] = field(default_factory=list)
    resets: list[bool] = field(default_factory=list)
    closed: int = 0
    open: list["ScriptedSession"] = field(default_factory=list)


class ScriptedSession:
    """Answers batches and calls from the script, transactions by counting descriptors."""

    spid = 51
    database = "master"

    def __init__(self, log: Log, script: Script) -> None:
        self._log = log
        self._script = script
        self._descriptors = iter(range(1, 1000))
        self._cancelled = asyncio.Event()
        self.transaction_descriptor = 0
        self.on_kill: Callable[[], None] | None = None
        log.open.append(self)

    async def batch(self, sql: str) -> AsyncGenerator[Event, None]:
        if sql.startswith("sp_datatype_info_100"):
            for event in type_sizes(int(sql.split()[1].split(",", maxsplit=1)[0])):
                yield event
            return
        self._log.batches.append(sql)
        async for event in self._answer(sql):
            yield event

    async def rpc(self, name: str, parameters: list[RpcParameter]) -> AsyncGenerator[Event, None]:
        self._log.calls.append((name, parameters))
        values = [] if name == "sp_prepare" else parameters[1:] if name == "sp_execute" else parameters
        if name in {"sp_prepexec", "sp_executesql"}:
            first = 3 if name == "sp_prepexec" else 2
            statement, values = str(parameters[first - 1 if first == 3 else 0].value), parameters[first:]
            if "?" not in statement and "@P" not in statement:
                async for event in self._answer(statement):
                    yield event
                values = []
        if "sp_datatype_info_100" in name:
            for event in type_sizes(int(str(parameters[0].value))):
                yield event
        elif values and name != "sp_unprepare":
            yield Columns(tuple(ResultColumn(f"c{n}", value.type) for n, value in enumerate(values)))
            yield Rows([tuple(value.value for value in values)])
            yield Done(1, in_procedure=True)
        yield ReturnStatus(0)
        if name in {"sp_prepexec", "sp_prepare"}:
            yield OutputParameter("", 0, types.INT, 7)
        yield ProcDone()

    async def transaction_request(self, request: TmRequest) -> AsyncGenerator[Event, None]:
        self._log.transactions.append(request)
        old = self.transaction_descriptor
        begins = request.kind == "begin" or request.begin_next
        self.transaction_descriptor = next(self._descriptors) if begins else 0
        if request.kind == "commit" or request.kind == "rollback":
            yield EnvChange(request.kind, 0, old)
        if begins:
            yield EnvChange("begin", self.transaction_descriptor, 0)

    def reset(self, *, keep_transaction: bool) -> None:
        self._log.resets.append(keep_transaction)

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self._log.closed += 1
        self._log.open.remove(self)

    async def _answer(self, sql: str) -> AsyncIterator[Event]:
        self._cancelled.clear()
        if sql == "kill":
            for session in self._log.open:
                if session is not self and session.on_kill is not None:
                    session.on_kill()
        if sql == "wait" or sql.startswith("WAITFOR"):
            await self._cancelled.wait()
            return
        async for event in self._script(sql):
            yield event


SIZES = {12: ("varchar", 8000), -9: ("nvarchar", 4000), -3: ("varbinary", 8000), 93: ("datetime2", 27)}


def type_sizes(odbc_type: int) -> Iterator[Event]:
    """The first three columns of sp_datatype_info_100: drivers ask for the largest sizes at connect."""
    yield Columns(
        (
            ResultColumn("TYPE_NAME", types.nvarchar(128)),
            ResultColumn("DATA_TYPE", types.SMALLINT),
            ResultColumn("PRECISION", types.INT),
        )
    )
    name, size = SIZES[odbc_type]
    yield Rows([(name, odbc_type, size)])
    yield Done(1, in_procedure=True)


async def select_one(_: str) -> AsyncIterator[Event]:
    """SELECT 1 AS x, whatever was asked."""
    yield Columns((ResultColumn("x", types.INT),))
    yield Rows([(1,)])
    yield Done(1)


@contextlib.contextmanager
def serving(
    script: Script = select_one, *, encrypt: EncryptMode = "off", login_seconds: float = 15.0
) -> Iterator[tuple[int, Log]]:
    """A listener in a thread of its own; its port and what it was asked."""
    log = Log()

    def open_session(login: Login) -> Session:
        if login.password != PASSWORD:
            raise error(18456, login=login.user)
        if login.database == "absent":
            raise error(4060, name=login.database)
        log.logins.append(login)
        return cast("Session", ScriptedSession(log, script))

    settings = ConnectionSettings(
        sessions=open_session,
        encrypt=encrypt,
        tls=None if encrypt == "off" else server_context("127.0.0.1"),
        server_name="SANDBOX",
        login_seconds=login_seconds,
    )
    started = threading.Event()
    loop = asyncio.new_event_loop()
    listener = Listener(settings, host="127.0.0.1", port=0)

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(listener.start())
        started.set()
        loop.run_forever()
        loop.run_until_complete(listener.stop())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert started.wait(10), "the listener has not started"
        yield listener.port, log
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        assert not thread.is_alive(), "the listener has not stopped"
