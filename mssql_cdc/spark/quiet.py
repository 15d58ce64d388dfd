"""Hides the output of a starting JVM: the lines of Ivy and log4j do not help users of the command line.

Nothing relevant is hidden: errors are exceptions, and a failed start shows the entire output.
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
    """Redirect the output of this process and of processes started in the block to a file; show it if the block fails.

    A started process keeps writing to the file until it ends.
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
