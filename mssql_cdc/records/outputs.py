"""The outputs of records: each keeps records together with how far they reach, so that the next run goes on there.

An output that cannot store both at once stores the records first and cuts them off at the stored place when it is
opened: a run that was killed loses and doubles nothing. To add an output (Kafka: a transaction that holds the records
and the progress), write a class with the three members of `Output` and add it to `open_output.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import BinaryIO, Protocol

import pyarrow as pa
from pydantic import TypeAdapter

from mssql_cdc.errors import StorageError
from mssql_cdc.records.record_batch import json_lines
from mssql_cdc.records.state import StreamState


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the records of an output reach: the state of each database's stream.

    `topic_prefix` names the connector, `selection` the tables and the key that the output was begun with.
    """

    topic_prefix: str
    selection: str = "{}"
    databases: dict[str, StreamState] = field(default_factory=dict[str, StreamState])

    @classmethod
    def from_json(cls, text: str) -> Progress:
        """The progress whose `to_json()` this is."""
        return _PROGRESS.validate_json(text)

    def to_json(self) -> str:
        """The progress as text."""
        return _PROGRESS.dump_json(self).decode()

    def at(self, database: str, state: StreamState) -> Progress:
        """Return the progress with another state of one database."""
        return replace(self, databases={**self.databases, database: state})


class Output(Protocol):
    """Takes records in order, and remembers how far they reach."""

    @property
    def kept(self) -> Progress | None:
        """How far the records reach that were kept by earlier runs; None: there are none."""
        ...

    def write(self, records: pa.RecordBatch, progress: Progress) -> None:
        """Take records (`record_batch.RECORDS`) and how far they reach; both are kept together or not at all."""
        ...

    def keep(self) -> None:
        """Keep everything that was written, durably."""
        ...


class JsonLinesStream:
    """One JSON object per line, in UTF-8, into a stream; it remembers nothing."""

    kept: Progress | None = None

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, records: pa.RecordBatch, progress: Progress) -> None:
        """Write one line per record."""
        del progress
        write_lines(records, self._stream)

    def keep(self) -> None:
        """Hand everything to the stream's reader."""
        self._stream.flush()


def write_lines(records: pa.RecordBatch, stream: BinaryIO) -> int:
    """Write one line of JSON per record; return the number of bytes."""
    lines = json_lines(records)
    _, offsets, data = lines.buffers()
    if data is None or not len(lines):
        return 0
    ends = memoryview(offsets).cast("i")
    return stream.write(memoryview(data)[ends[lines.offset] : ends[lines.offset + len(lines)]])


def begin(output: Output, topic_prefix: str, selection: str) -> Progress:
    """Return where an output goes on.

    Args:
        output: The output.
        topic_prefix: The connector's.
        selection: `Selection.of_records`.

    Raises:
        StorageError: It holds the records of another connector, or other tables or another key.
    """
    wanted = Progress(topic_prefix, selection)
    kept = output.kept
    if kept is None:
        return wanted
    if (kept.topic_prefix, kept.selection) != (topic_prefix, selection):
        raise StorageError(
            f"The output holds records of {kept.topic_prefix} with the selection {kept.selection}; expected "
            f"{topic_prefix} with {selection}. Name another output, or select the same again"
        )
    return kept


_PROGRESS: TypeAdapter[Progress] = TypeAdapter(Progress)
