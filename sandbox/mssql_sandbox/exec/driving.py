"""Driving a request: runs its steps, awaits pauses, passes events on, handles attentions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from mssql_sandbox.engine.events import Event, Message
from mssql_sandbox.exec.flow import Cancelled, Pause, Steps
from mssql_sandbox.exec.session_state import SessionState


def _thrower(steps: Steps) -> Callable[[], Any]:
    """Resumes a cancelled request by throwing the signal into it."""
    return lambda: steps.throw(Cancelled())


class DrivenSession(SessionState):
    """A session that can run the steps of a request, one request at a time."""

    def cancel(self) -> None:
        """End waits; the running request stops at its next event."""
        self._cancelled = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.cancel()

    async def _drive(self, steps: Generator[Event | Pause, Any, Any]) -> AsyncGenerator[Event, None]:
        """Pass on events and await pauses."""
        self._cancelled = False
        resume: Callable[[], Any] = steps.__next__
        try:
            while True:
                try:
                    item = resume()
                except StopIteration:
                    break
                if type(item) is Pause:
                    resume = await self._pause(item, steps)
                    continue
                for event in self.pending:
                    yield event
                self.pending.clear()
                yield item  # type: ignore[misc]
                resume = _thrower(steps) if self._cancelled else steps.__next__
            for event in self.pending:
                yield event
            self.pending.clear()
        except Cancelled:
            if self.killed:
                yield Message(596, 1, 21, "Cannot continue the execution because the session is in the kill state.")
        finally:
            steps.close()
            self.try_depth = 0

    async def _pause(self, pause: Pause, steps: Generator[Event | Pause, Any, Any]) -> Callable[[], Any]:
        """Await a pause; returns how to resume the generator."""
        self._waiting = asyncio.ensure_future(pause.wait())
        try:
            result = await self._waiting
        except asyncio.CancelledError:
            driver = asyncio.current_task()
            # An attention ends the wait; if the connection itself ends, its task has to end too.
            if not self._cancelled or (driver is not None and driver.cancelling()):
                raise
            return _thrower(steps)
        except Exception as failure:  # noqa: BLE001 - handed on to the statement that waits
            return lambda failure=failure: steps.throw(failure)
        finally:
            self._waiting = None
        return lambda: steps.send(result)

    def breathe(self) -> Steps:
        """Let other tasks run once in a while, and notice an attention, in loops without events."""
        self._loops = getattr(self, "_loops", 0) + 1
        if self._loops % 256 == 0:
            yield Pause(lambda: asyncio.sleep(0))
            if self._cancelled:
                raise Cancelled
        return None
