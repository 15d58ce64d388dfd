"""User-defined outputs: the contract of the entry points in the group `mssql_cdc.outputs`, and how they are called.

docs/extensions.md describes the contract, with an example. `open_output.py` finds the entry point by the name before
the colon.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from mssql_cdc.config import Connector
from mssql_cdc.config.extension_names import ExtensionGroup, ExtensionProperties
from mssql_cdc.errors import MssqlCdcError, StorageError
from mssql_cdc.extensions import load_extension
from mssql_cdc.records.outputs import OutputBatch, Progress

KEEP_BYTES = 64 * 1024 * 1024
"""Records are kept at the latest after this many bytes, so that a killed run repeats little."""
_METHODS = ("configure", "open", "write", "keep", "close")


class OutputExtension(Protocol):
    """Keeps records together with the position after the last one: both or neither."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Receive the connector's properties; called once, before all other methods."""
        ...

    def open(self, target: str) -> str | None:
        """Open what follows the colon in the output's name, for this run alone.

        Returns:
            The position that is kept; None: no records are kept. Nothing may remain of what was not kept.
        """
        ...

    def write(self, database: str, records: pa.RecordBatch, position: str) -> None:
        """Take records of one database, in order; they may be kept immediately, but only all of them.

        Args:
            database: The database.
            records: One or more, with the columns of `record_batch.RECORDS`.
            position: The position after the last one: a text that is opaque to an output.
        """
        ...

    def keep(self) -> None:
        """Durably keep what was written, with the position from the last call of `write`."""
        ...

    def close(self) -> None:
        """Release everything; what was not kept is dropped."""
        ...


class ExtensionOutput:
    """A user-defined output as an `Output`."""

    remembers = True

    def __init__(self, own: OutputExtension, name: str, kept: Progress | None, *, keep_bytes: int) -> None:
        self.kept: Progress | None = kept
        self._own, self._name, self._keep_bytes = own, name, keep_bytes
        self._written: Progress | None = None
        self._bytes = 0

    def write(self, batch: OutputBatch) -> None:
        """Hand records over; the progress of a batch without any is passed on with the next one."""
        if not batch.records.num_rows:
            return
        with _named(self._name):
            self._own.write(batch.database, batch.records, batch.progress.to_json())
        self._written = batch.progress
        self._bytes += batch.records.nbytes
        if self._bytes >= self._keep_bytes:
            self.keep()

    def keep(self) -> None:
        """Keep what was written."""
        if self._written is None:
            return
        with _named(self._name):
            self._own.keep()
        self.kept, self._written, self._bytes = self._written, None, 0


@contextmanager
def open_extension(
    name: str, target: str, connector: Connector, *, keep_bytes: int = KEEP_BYTES
) -> Generator[ExtensionOutput]:
    """Open a user-defined output, and close it when the block ends.

    Args:
        name: The name of the entry point.
        target: What follows the colon.
        connector: The connector whose records it gets.
        keep_bytes: Keep records at the latest after this many bytes.

    Raises:
        ConfigurationError: The entry point is not installed, or cannot be loaded.
        StorageError: It raises another error.
    """
    own: OutputExtension = load_extension(ExtensionGroup.OUTPUTS, name, setting="output", methods=_METHODS)
    with _named(name):
        own.configure(ExtensionProperties(connector.properties))
        position = own.open(target)
        kept = None if position is None else Progress.from_json(position)
    try:
        yield ExtensionOutput(own, name, kept, keep_bytes=keep_bytes)
    finally:
        with _named(name):
            own.close()


@contextmanager
def _named(name: str) -> Generator[None]:
    """Say whose error it is."""
    try:
        yield
    except MssqlCdcError:
        raise
    except Exception as error:
        raise StorageError(f"The output {name} failed: {type(error).__name__}: {error}") from error
