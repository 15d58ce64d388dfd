"""The interface between protocol and execution: what a connection needs from a session."""

from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from mssql_sandbox.engine.clients import ConnectionFacts
from mssql_sandbox.engine.events import BulkData, Event, RpcParameter, TmRequest
from mssql_sandbox.tds.login import Login


class Session(Protocol):
    """One logged-in client; runs one request at a time and reports by events."""

    on_kill: Callable[[], None] | None
    """Set by the connection: called by a KILL of the session, on the event loop's thread."""

    connection: ConnectionFacts
    """Set by the connection: how the client is connected."""

    open_lane: "Callable[[], Lane] | None"
    """Opens one of several concurrent streams of requests (MARS)."""

    @property
    def spid(self) -> int:
        """The server's number of the session."""
        ...

    @property
    def database(self) -> str:
        """The current database."""
        ...

    @property
    def transaction_descriptor(self) -> int:
        """The open transaction, 0 for none."""
        ...

    def batch(self, sql: str) -> AsyncGenerator[Event, None]:
        """Run a batch of SQL text."""
        ...

    def rpc(self, name: str, parameters: list[RpcParameter]) -> AsyncGenerator[Event, None]:
        """Call a procedure."""
        ...

    def bulk_load(self, data: BulkData) -> AsyncGenerator[Event, None]:
        """Store the rows of a bulk load that an INSERT BULK statement announced."""
        ...

    def transaction_request(self, request: TmRequest) -> AsyncGenerator[Event, None]:
        """Begin, commit, roll back or save a transaction."""
        ...

    def reset(self, *, keep_transaction: bool) -> None:
        """Reset the session to the state after login."""
        ...

    def cancel(self) -> None:
        """End waits; the running request stops soon."""
        ...

    def close(self) -> None:
        """Roll back and release everything."""
        ...


class Lane(Session, Protocol):
    """A MARS client's session in each of its SMP sessions."""

    def enlist(self, descriptor: int) -> None:
        """Set the transaction of the next request, 0 for none."""
        ...


SessionFactory = Callable[[Login], Session]
"""Makes the session of a client, or raises `SqlError` (18456 wrong password, 4060 no such database)."""
