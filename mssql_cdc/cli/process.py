"""Ends a command's process without unwinding what is still running in it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """End the process at once: its threads may be waiting for a pipe, or be inside native code.

    The interpreter would end under them: a thread in Arrow's code crashed it, one that reads standard input aborts it,
    and one that returns from deltalake is unwound through Rust, which is a SIGSEGV instead of the exit code (3 of
    13 runs that SIGTERM ended in their first snapshot).
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # Whoever started the process may have closed both.
            stream.flush()
    os._exit(code)
