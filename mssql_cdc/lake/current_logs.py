"""What one process knows about the logs that updates of current tables read, so that it reads only what is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mssql_cdc.lake.files import DataFile
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.read import BatchSlice
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lake.table_commit import current_log
from mssql_cdc.lake.table_log import TableLog
from mssql_cdc.lake.window import Window, window, written_window

_MOST_APPENDS = 64


@dataclass(slots=True)
class CurrentLogs:
    """What was last seen of the current tables' logs, and what this process has appended to the change logs since."""

    _known: dict[str, TableLog] = field(default_factory=dict[str, TableLog])
    _appended: dict[str, list[_Append]] = field(default_factory=dict[str, list["_Append"]])

    def newest(self, uri: str, storage: Storage) -> TableLog | None:
        """The newest version of a table; None when there is none."""
        known = self._known.pop(uri, None)  # Nothing is known about a log that can no longer be read.
        found = current_log(uri, known, storage)
        if found is not None:
            self.keep(found)
        return found

    def seen(self, uri: str, storage: Storage) -> TableLog | None:
        """The version of a table that was read last; the newest one if none was."""
        return self.known(uri) or self.newest(uri, storage)

    def known(self, uri: str) -> TableLog | None:
        """The version of a table that was read last; None: none was, or it could not be read again."""
        return self._known.get(uri)

    def keep(self, log: TableLog) -> None:
        """Remember a version."""
        self._known[log.uri] = log

    def appended(self, state: TableState, files: Sequence[DataFile]) -> None:
        """Remember the files of a change log's newest commit.

        Args:
            state: The state after the commit.
            files: What it added.
        """
        if state.needs_spark:
            self.forget(state.uri)  # Spark has copied the rows: these files are not part of the table.
            return
        known = self._appended.setdefault(state.uri, [])
        if known and known[-1].batch != state.batch - 1:
            known.clear()
        known.append(_Append(state.batch, tuple(files), state.schema_json))
        del known[:-_MOST_APPENDS]

    def section(self, uri: str, batches: BatchSlice, storage: Storage) -> Window:
        """The section of a change log, from memory if this process has appended all of it.

        Args:
            uri: The folder of the change log.
            batches: The section.
            storage: How to reach the folder.
        """
        known = self._appended.get(uri, [])
        if not known or known[0].batch > batches.after + 1 or known[-1].batch < batches.up_to:
            return window(uri, batches, storage)
        inside = [one for one in known if batches.after < one.batch <= batches.up_to]
        files = [file for one in inside for file in one.files]
        return written_window(uri, known[-1].schema_json, batches, files, storage)

    def forget(self, uri: str) -> None:
        """Forget what was appended to a change log: its files may have been compacted and removed since."""
        self._appended.pop(uri, None)


@dataclass(frozen=True, slots=True)
class _Append:
    batch: int
    files: tuple[DataFile, ...]
    schema_json: str
