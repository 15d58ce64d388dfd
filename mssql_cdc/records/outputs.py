"""What an output of records is: it keeps records together with how far they reach, so the next run continues there.

An output that cannot store both at once stores the records first and cuts them off at the stored place when it is
opened: a run that was killed neither loses nor duplicates anything. Here: the contract (docs/extensions.md describes it
for authors of outputs), and the one output that keeps nothing. Not here: the other outputs, and how a name leads to one
(`open_output.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Protocol

import pyarrow as pa
from pydantic import TypeAdapter

from mssql_cdc.errors import StorageError
from mssql_cdc.records.record_batch import json_lines
from mssql_cdc.records.state import StreamState

_EVERYTHING = "{}"
"""`Selection.of_records` of the whole stream."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the records of an output reach: the state of each database's stream.

    `topic_prefix` names the connector, `selection` the tables and the key that the output was begun with.
    """

    topic_prefix: str
    selection: str = _EVERYTHING
    databases: dict[str, StreamState] = field(default_factory=dict[str, StreamState])

    @classmethod
    def from_json(cls, text: str) -> Progress:
        """Return the progress from the text that `to_json()` returned."""
        return _PROGRESS.validate_json(text)

    def to_json(self) -> str:
        """Return the progress as text."""
        return _PROGRESS.dump_json(self).decode()

    @property
    def is_of_part(self) -> bool:
        """Whether the output has only a part of the stream."""
        return self.selection != _EVERYTHING

    def at(self, database: str, state: StreamState) -> Progress:
        """Return the progress with another state of one database."""
        return replace(self, databases={**self.databases, database: state})


@dataclass(frozen=True, slots=True)
class OutputBatch:
    """Records of one database, which are kept as a whole or not at all.

    Attributes:
        database: The database.
        records: The records (`record_batch.RECORDS`), in order; there may be none.
        progress: How far the output reaches with the last of them. A run cannot continue after any other of them.
    """

    database: str
    records: pa.RecordBatch
    progress: Progress

    @property
    def first_number(self) -> int:
        """The place of the first record among those of its database, from 0 on."""
        return self.progress.databases[self.database].records - self.records.num_rows

    def parts(self, most: int) -> Iterator[OutputBatch]:
        """Yield the batch in parts, for an output that remembers nothing: the progress of a part means nothing.

        Args:
            most: The maximum number of records in a part.
        """
        for start in range(0, max(self.records.num_rows, 1), most):
            yield replace(self, records=self.records.slice(start, most))


class Output(Protocol):
    """Takes records in order, and remembers how far they reach.

    What was written but not kept may be dropped at any time: the next run begins after `kept` and writes it again.
    """

    @property
    def remembers(self) -> bool:
        """Whether it keeps records and how far they reach. One that does not gets batches in parts (`parts`)."""
        ...

    @property
    def kept(self) -> Progress | None:
        """How far the kept records reach, including those of earlier runs; None: there are none."""
        ...

    def write(self, batch: OutputBatch) -> None:
        """Take a batch; the output may keep it and all earlier ones, but no part of one."""
        ...

    def keep(self) -> None:
        """Keep every batch that was written, durably."""
        ...


class JsonLinesStream:
    """One JSON object per line, in UTF-8, to a stream; it remembers nothing."""

    remembers = False
    kept: Progress | None = None

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, batch: OutputBatch) -> None:
        """Write one line per record."""
        write_lines(batch.records, self._stream)

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
    """Return where an output continues.

    Args:
        output: The output.
        topic_prefix: The connector's.
        selection: `Selection.of_records`.

    Raises:
        StorageError: It holds the records of another connector, of other tables or of another key.
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


def no_output(target: str) -> StorageError:
    """Return the error for a missing output that was asked for what it has kept."""
    return StorageError(f"There is no output {target}. Name one to which mssql-cdc records has written records")


_PROGRESS: TypeAdapter[Progress] = TypeAdapter(Progress)
