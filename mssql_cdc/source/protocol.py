"""What the rest of the project asks of a source, in neutral words.

A position is opaque here except for its order; only the source makes and reads it. Everything that a Spark task
needs is in a `BatchReader`, which pickles and carries no resolved secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import pyarrow as pa

Position = TypeVar("Position")


class BatchReader(Protocol):
    """Reads one piece of one table; a value that pickles."""

    def read(self) -> Iterator[pa.RecordBatch]:
        """Neutral batches (`schema.neutral_schema`) in order; raises only the classes of `errors`."""
        ...


class SourceSession(Protocol[Position]):
    """A short-lived connection to one catalog of the source, for questions and not for rows."""

    def tables(self) -> Sequence[Any]:
        """The captured tables that the connector's filters let through."""
        ...

    def captured(self) -> Position | None:
        """How far changes can be read now; None before the first one."""
        ...

    def minima(self) -> dict[str, Position | None]:
        """The oldest position that can still be read, by the source's name of the capture."""
        ...


class Source(Protocol[Position]):
    """A kind of source under one connector."""

    def session(self, catalog: str) -> AbstractContextManager[SourceSession[Position]]:
        """A session on one catalog."""
        ...

    def acknowledge(self, catalog: str, position: Position) -> None:
        """Tells the source that everything up to the position is safe."""
        ...
