"""The run-time state that closures read: variables, outer rows, the transaction, the statement's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.exec.session_state import SessionState

MAX_DEPTH = 32


class Context:
    """State of one execution of one statement.

    `values` are the variables of the running batch or module by slot, `outer` the current rows of enclosing query
    levels by level, `cache` what is computed once per statement.
    """

    __slots__ = ("_now", "cache", "outer", "session", "transaction", "values")

    def __init__(self, session: SessionState, values: list[Any], transaction: Transaction | None) -> None:
        self.session = session
        self.values = values
        self.transaction = transaction
        self.outer: list[tuple] = [()] * MAX_DEPTH
        self.cache: dict[Any, Any] = {}
        self._now: int | None = None

    @property
    def date_first(self) -> int:
        """SET DATEFIRST (the engine's functions read it)."""
        return self.session.options.date_first

    @property
    def offset_minutes(self) -> int:
        """The server's offset from UTC."""
        return self.session.server.clock.offset_minutes

    @property
    def random(self) -> Any:
        """The session's source of RAND() and NEWID()."""
        return self.session.random

    @property
    def local_ticks(self) -> int:
        """Local time of the statement in 100-ns ticks; the same for every row."""
        if self._now is None:
            self._now = self.session.server.clock.local_ticks()
        return self._now

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """A value made at most once per execution."""
        try:
            return self.cache[key]
        except KeyError:
            value = self.cache[key] = make()
            return value
