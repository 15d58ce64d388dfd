"""Ctrl+C, noted: an ODBC call that it interrupts may raise the driver's error instead of KeyboardInterrupt.

pyodbc builds that error in C, where the pending KeyboardInterrupt is lost; a retry would then go on as if nothing had
happened.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """A handler of SIGINT that remembers that it was called."""

    def __init__(self) -> None:
        self.noted = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal, and raise KeyboardInterrupt."""
        self.noted = True
        signal.default_int_handler(number, frame)


@contextmanager
def noted_interrupts() -> Generator[Interrupts]:
    """Note each Ctrl+C until the block ends; other threads than the main one receive none."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    former = signal.signal(signal.SIGINT, interrupts)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, former)


def require_uninterrupted() -> None:
    """Raise KeyboardInterrupt if Ctrl+C was noted: for those who handle an error of the source."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, Interrupts) and handler.noted:
        raise KeyboardInterrupt
