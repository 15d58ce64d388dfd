"""Notes Ctrl+C and SIGTERM: an ODBC call that they interrupt may raise the driver's error, not KeyboardInterrupt.

pyodbc builds that error in C, where the pending KeyboardInterrupt is lost; a retry would then continue as if nothing
had happened. SIGTERM is how a service manager ends a process; without a handler, the first process of a container does
not even receive it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

SIGNALS = signal.SIGINT, signal.SIGTERM


class Interrupts:
    """A handler for SIGINT and SIGTERM that remembers the first one it was called for."""

    def __init__(self) -> None:
        self.noted: signal.Signals | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal, and raise KeyboardInterrupt."""
        self.noted = self.noted or signal.Signals(number)
        signal.default_int_handler(number, frame)


@contextmanager
def noted_interrupts() -> Generator[Interrupts]:
    """Note each signal until the block ends; threads other than the main one receive none."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    former = [signal.signal(number, interrupts) for number in SIGNALS]
    try:
        yield interrupts
    finally:
        for number, handler in zip(SIGNALS, former, strict=True):
            signal.signal(number, handler)


def require_uninterrupted() -> None:
    """Raise KeyboardInterrupt if a signal was noted: for code that handles an error of the source."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, Interrupts) and handler.noted:
        raise KeyboardInterrupt
