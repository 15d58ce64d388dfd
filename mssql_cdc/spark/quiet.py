"""Hides the output of a starting JVM: the lines of Ivy and log4j do not help users of the command line.

Nothing relevant is hidden: errors are exceptions, and a failed start shows the entire output.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def hidden_output() -> Generator[BinaryIO]:
    """A file for the output of a process that is started in the block; it is shown if the block fails.

    Only that process writes to it, even after the block. This process continues writing to its own outputs, which other
    threads use in the meantime.
    """
    with tempfile.TemporaryFile() as sink:
        try:
            yield sink
        except BaseException:
            sink.seek(0)
            sys.stderr.write(sink.read().decode(errors="replace"))
            raise
