"""The process of a command, which ends without unwinding what still works in it.

The console script and `python -m mssql_cdc.cli` begin here; what a command does, and its exit code, are elsewhere.
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import NoReturn


def entry() -> NoReturn:
    """Run the command of `sys.argv`, and end the process with its exit code.

    Handlers of `atexit` run before, those that remove files with secrets among them: this one is the first that is
    registered, so that it is the last that is called.
    """
    from mssql_cdc.cli.program import main

    codes: list[int] = []
    atexit.register(lambda: leave(codes[0]) if codes else None)
    codes.append(main())
    sys.exit(codes[0])


def leave(code: int) -> NoReturn:
    """End the process at once: its threads wait for a pipe, or are inside native code.

    The interpreter would end under them: a thread in Arrow's code crashed it, one that reads standard input aborts it,
    and one that comes back from deltalake is unwound through Rust, which is a SIGSEGV instead of the exit code (3 of
    13 runs that SIGTERM ended in their first snapshot).
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # Whoever started the process may have closed both.
            stream.flush()
    os._exit(code)
