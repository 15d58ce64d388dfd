"""Opens an output by its name: to add an output, add it here."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from mssql_cdc.config import Connector
from mssql_cdc.config.delta_settings import DELTA
from mssql_cdc.records.delta_output import DeltaOutput
from mssql_cdc.records.file_output import open_file
from mssql_cdc.records.outputs import JsonLinesStream, Output

STANDARD_OUTPUT = "-"


@contextmanager
def open_output(target: str, connector: Connector) -> Generator[Output]:
    """Open an output, and keep what was written when the block ends without an error.

    Args:
        target: `-` is standard output, `delta:<path or URI>` a Delta table, anything else a file of JSON lines.
        connector: The connector whose records it gets.

    Raises:
        StorageError: The output was changed by something else, or another run writes to it.
    """
    if target == STANDARD_OUTPUT:
        output: Output = JsonLinesStream(sys.stdout.buffer)
        yield output
        output.keep()
    elif target.startswith(DELTA):
        output = DeltaOutput(target.removeprefix(DELTA), connector)
        yield output
        output.keep()
    else:
        with open_file(target) as file:
            yield file
            file.keep()
