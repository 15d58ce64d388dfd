"""SIGTERM: the same as Ctrl+C, but a requested end, and by force if the process cannot end by itself.

A kill at any moment loses nothing, so force does no harm.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from mssql_cdc.run.interrupts import Interrupts

END_SECONDS = 2.5
"""The time that the process has to end by itself."""
TELL_SECONDS = 0.25
"""The time for reporting an end by force; both together are less than three seconds."""


class EndSignal:
    """A handler for SIGTERM.

    Python calls handlers in the main thread, between two of its own instructions: not while a library is committing to
    a store that does not answer. A thread learns of the signal at once, and ends the process if nothing else does.
    """

    def __init__(self, interrupt: object, *, forced: Callable[[], None] = lambda: None) -> None:
        """Install the handler, in the main thread.

        Args:
            interrupt: The handler of Ctrl+C.
            forced: Reports, in a thread of its own, that the process ends by force.
        """
        self.noted = False
        self._told_at = 0.0
        self._interrupt = interrupt
        told, tells = os.pipe()
        os.set_blocking(tells, False)
        signal.set_wakeup_fd(tells, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self)
        threading.Thread(target=_watch, args=(told, forced), name="end", daemon=True).start()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl+C was noted."""
        return isinstance(self._interrupt, Interrupts) and self._interrupt.noted is not None

    @property
    def seconds(self) -> float:
        """The time since SIGTERM was noted."""
        return time.monotonic() - self._told_at

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal and interrupt the loop."""
        self.noted, self._told_at = True, time.monotonic()
        if callable(self._interrupt):
            self._interrupt(signal.SIGINT, frame)
        del number


def _watch(told: int, forced: Callable[[], None]) -> None:
    while number := os.read(told, 1):
        if number[0] == signal.SIGTERM:
            time.sleep(END_SECONDS)
            teller = threading.Thread(target=forced, name="forced", daemon=True)
            teller.start()
            teller.join(TELL_SECONDS)  # The reader of the report may be what does not answer.
            os._exit(0)
