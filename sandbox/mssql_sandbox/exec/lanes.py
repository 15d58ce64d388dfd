"""MARS: several requests of one session at the same time.

A `Lane` runs one request after the other; the lanes of a session share its temporary tables, cursors, handles and its
transaction. A request starts with a copy of the session's environment (SET options, database, @@ERROR, …) and stores it
back when it ends. Statements take turns only at safe points: between rows of a query, and while waiting.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from mssql_sandbox.engine.events import EnvChange, Event, TmRequest
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.transaction_scopes import StatementScopes
from mssql_sandbox.errors import error
from mssql_sandbox.exec.failures import message_of
from mssql_sandbox.exec.flow import Pause, Steps
from mssql_sandbox.exec.parameterisation import Parameteriser
from mssql_sandbox.exec.session import Session
from mssql_sandbox.exec.transactions import SessionTransactions

_ENVIRONMENT = (
    "context_info", "current_database", "cursor_rows", "fetch_status", "identity_insert", "last_error",
    "last_identity", "login", "options", "row_count", "scope_identity", "session_context", "users",
)  # fmt: skip
"""The state that a request copies at its start and stores back at its end."""
_OWN = frozenset({
    "_cancelled", "_enlisted", "_entered", "_home", "_lanes", "_parameteriser", "_scopes", "_waiting", "bulk",
    "pending", "routines", "transactions", "trigger_stack",
})  # fmt: skip
"""The state that a lane never takes from its session."""


class Plans(OrderedDict[Any, Any]):
    """Compiled texts of a lane or its session: discarding them discards those of all lanes."""

    def __init__(self, family: list[Plans]) -> None:
        super().__init__()
        self.family = family
        family.append(self)

    def clear(self) -> None:
        """Discard the plans of all lanes: a table, a permission or a setting has changed."""
        for plans in self.family:
            OrderedDict.clear(plans)


class Lanes:
    """The lanes of one session: those that run a request, and the one that must not be interrupted."""

    __slots__ = ("free", "holder", "home", "plans", "running")

    def __init__(self, home: Session) -> None:
        self.home = home
        self.plans: list[Plans] = []
        self.running: set[Lane] = set()
        self.holder: Lane | None = None
        self.free = asyncio.Event()

    def open(self) -> Lane:
        """Add a lane."""
        if not isinstance(self.home.routines, Plans):
            self.home.routines = Plans(self.plans)
        return Lane(self)

    def hold(self, lane: Lane, *, hold: bool) -> None:
        """Block the other lanes, or unblock them."""
        if hold:
            self.holder = lane
            self.free.clear()
        elif self.holder is lane:
            self.holder = None
            self.free.set()

    def others_in(self, lane: Lane, transaction: Transaction) -> bool:
        """Whether further requests use a transaction."""
        return any(other is not lane and other.transactions.current is transaction for other in self.running)


class LaneTransactions(SessionTransactions):
    """The transaction of a request: the session's, or a separate one that ends with the batch."""

    __slots__ = ("_lane",)

    def __init__(self, lane: Lane) -> None:
        super().__init__(lane)
        self._lane = lane

    def commit(self) -> Iterator[EnvChange]:
        """COMMIT; 3981 while other requests use the transaction."""
        if self.current is not None and self.count == 1 and self._lane.shares(self.current):
            raise error(3981)
        return super().commit()


class Lane(Session):
    """One of the concurrent requests of a MARS client."""

    def __init__(self, lanes: Lanes) -> None:
        # No separate session is opened: spid, login and other properties are those of the home session.
        self._home = lanes.home
        self._lanes = lanes
        self._scopes = StatementScopes()
        self._enlisted = 0
        self._entered: Transaction | None = None
        self._parameteriser = Parameteriser()
        self._cancelled = False
        self._waiting = None
        self.routines = Plans(lanes.plans)
        self.pending = []
        self.trigger_stack = []
        self.bulk = None
        self.transactions = LaneTransactions(self)
        self._take_environment()

    def enlist(self, descriptor: int) -> None:
        """Set the transaction of the next request, 0 for none."""
        self._enlisted = descriptor

    def shares(self, transaction: Transaction) -> bool:
        """Whether other requests of the session use this transaction."""
        return self._lanes.others_in(self, transaction)

    def transaction_request(self, request: TmRequest) -> AsyncGenerator[Event, None]:
        """Begin, commit, roll back or save the session's transaction."""
        return self._drive(self.transactions.request(request), keeps=True)

    def reset(self, *, keep_transaction: bool) -> None:
        """Reset the whole session to the state after login."""
        plans = self._home.routines
        plans.clear()
        self._home.reset(keep_transaction=keep_transaction)
        self._home.routines = plans

    def close(self) -> None:
        """End the request; the session continues."""
        self.cancel()
        self._lanes.running.discard(self)
        self._lanes.hold(self, hold=False)
        self._lanes.plans[:] = [plans for plans in self._lanes.plans if plans is not self.routines]

    # ---- running -------------------------------------------------------------------------------------------

    def _drive(self, steps: Generator[Event | Pause, Any, Any], *, keeps: bool = False) -> AsyncGenerator[Event, None]:
        return super()._drive(self._request(steps, keeps=keeps))

    def _request(self, steps: Generator[Event | Pause, Any, Any], *, keeps: bool) -> Steps:
        """A request from start to end; `keeps`: the transaction that it begins outlives it."""
        shared = self._home.transactions
        if self._enlisted != self._home.transaction_descriptor:
            number = 3971 if self._enlisted else 3989
            yield message_of(error(number, descriptor=f"{self._enlisted:x}"))
            return None
        if keeps and self._lanes.running and shared.current is None:
            yield message_of(error(3988))
            return None
        self._take_environment()
        mine = self.transactions
        self._entered = shared.current
        mine.current, mine.count, mine.isolation = shared.current, shared.count, shared.isolation
        self._lanes.running.add(self)
        try:
            yield from self._turns(steps)
            if not keeps and mine.current is not None and mine.current is not shared.current:
                yield message_of(error(3997))
                yield from mine.rollback()
        finally:
            self._leave()
        return None

    def _turns(self, steps: Generator[Event | Pause, Any, Any]) -> Steps:
        """Run the steps, in the shared transaction with this request's statement scopes, and let others take turns."""
        shared = self._home.transactions.current
        resume: Callable[[], Any] = steps.__next__
        while True:
            if shared is not None and shared.state != "active" and self.transactions.current is shared:
                self.transactions.current, self.transactions.count = None, 0
                resume = partial(steps.throw, error(3980))
            try:
                item = self._step(shared, resume)
            except StopIteration:
                return None
            self._lanes.hold(self, hold=self._scopes.depth > 1)
            try:
                resume = partial(steps.send, (yield item))
                while self._lanes.holder not in (None, self):
                    yield Pause(self._lanes.free.wait)
            except BaseException as failure:  # noqa: BLE001 - handed on to the statement that waits
                resume = partial(steps.throw, failure)

    def _step(self, shared: Transaction | None, resume: Callable[[], Any]) -> Event | Pause:
        if shared is None:
            return resume()
        shared.exchange(self._scopes)
        try:
            return resume()
        finally:
            shared.exchange(self._scopes)

    def _take_environment(self) -> None:
        home = self._home
        self.__dict__.update({name: value for name, value in home.__dict__.items() if name not in _OWN})
        self.options = replace(home.options, others=dict(home.options.others))

    def _leave(self) -> None:
        """Store back the environment for later requests, and the transaction."""
        self._lanes.running.discard(self)
        self._lanes.hold(self, hold=False)
        home, mine = self._home, self.transactions
        for name in _ENVIRONMENT:
            setattr(home, name, getattr(self, name))
        shared = home.transactions
        shared.isolation = mine.isolation
        if shared.current is self._entered:
            open_ = mine.current is not None and mine.current.state == "active"
            shared.current, shared.count = (mine.current, mine.count) if open_ else (None, 0)
        self._scopes.drop(self.server.transactions)
