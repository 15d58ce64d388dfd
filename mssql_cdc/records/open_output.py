"""Opens an output by its name: one of the built-in ones, or a user's entry point."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from mssql_cdc.config import Connector
from mssql_cdc.config.delta_settings import DELTA, output_name
from mssql_cdc.records.delta_output import DeltaOutput
from mssql_cdc.records.extension_output import open_extension
from mssql_cdc.records.file_output import open_file
from mssql_cdc.records.outputs import JsonLinesStream, Output

STANDARD_OUTPUT = "-"


@contextmanager
def open_output(target: str, connector: Connector, *, create: bool = True) -> Generator[Output]:
    """Open an output, and keep what was written when the block ends without an error.

    Args:
        target: `-` is standard output, `delta:<path or URI>` a Delta table, `<name>:…` an entry point in the group
            `mssql_cdc.outputs`, anything else a file of JSON lines.
        connector: The connector whose records it gets.
        create: Begin a new file or table if there is none. An entry point decides for itself.

    Raises:
        ConfigurationError: No entry point has the name.
        StorageError: There is no output, it was changed by something else, or another run writes to it.
    """
    if target == STANDARD_OUTPUT:
        output: Output = JsonLinesStream(sys.stdout.buffer)
        yield output
        output.keep()
    elif target.startswith(DELTA):
        output = DeltaOutput(target.removeprefix(DELTA), connector, create=create)
        yield output
        output.keep()
    elif (name := output_name(target)) is not None:
        with open_extension(name, target.removeprefix(f"{name}:"), connector) as own:
            yield own
            own.keep()
    else:
        with open_file(target, create=create) as file:
            yield file
