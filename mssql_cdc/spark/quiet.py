"""Silence for the start of a JVM: what Ivy and log4j print tells a user of the command line nothing.

Nothing is hidden that matters: errors are exceptions, and when the start fails all of it is shown.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

_OUTPUTS = (1, 2)


@contextmanager
def hushed() -> Generator[None, None, None]:
    """Processes that start inside, and this one meanwhile, print into a file; it is shown when the block fails.

    A process keeps the file for as long as it lives.
    """
    with tempfile.TemporaryFile() as sink:
        kept = [os.dup(output) for output in _OUTPUTS]
        _flush()
        for output in _OUTPUTS:
            os.dup2(sink.fileno(), output)
        failed = True
        try:
            yield
            failed = False
        finally:
            _flush()
            for output, own in zip(_OUTPUTS, kept, strict=True):
                os.dup2(own, output)
                os.close(own)
            if failed:
                sink.seek(0)
                sys.stderr.write(sink.read().decode(errors="replace"))


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
