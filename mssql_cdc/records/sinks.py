"""The sinks of records: one class per kind of output, selected by the output's name.

To add a sink, write a class with a `write` method and add it to `open_sink`.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from mssql_cdc.records.record_batch import json_lines


class RecordSink(Protocol):
    """Accepts records in order."""

    def write(self, records: pa.RecordBatch) -> None:
        """Write a batch of records (`record_batch.RECORDS`)."""
        ...


class JsonLines:
    """One JSON object per line, in UTF-8."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output

    def write(self, records: pa.RecordBatch) -> None:
        """Write one line per record."""
        lines = json_lines(records)
        _, offsets, data = lines.buffers()
        if data is not None and len(lines):
            self._output.write(memoryview(data)[: memoryview(offsets).cast("i")[len(lines)]])


@contextmanager
def open_sink(target: str) -> Generator[RecordSink]:
    """Open the sink with this name: `-` is standard output, anything else is the path of a JSON Lines file."""
    if target == "-":
        yield JsonLines(sys.stdout.buffer)
        return
    with Path(target).open("wb") as file:
        yield JsonLines(file)
