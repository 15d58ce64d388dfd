"""Writes the records of one database to the connector's output (`delta.records.output`), alongside the capturing run.

A separate thread renders what complete cuts have brought, so that a slow or broken output delays nothing. The output is
open only while it is written to: the run that follows continues writing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Thread

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import BusyOutputError, ConfigurationError, FencedError, MssqlCdcError
from mssql_cdc.records.cuts import Cuts, first_after
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.open_output import open_output
from mssql_cdc.records.outputs import OutputBatch, begin
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.write import database_records

AGAIN_SECONDS = 1.0
"""How soon an output that another run has open is tried again; each further pause is twice as long."""
MOST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Written:
    """The result of an attempt to write.

    Attributes:
        count: the number of records that it wrote.
        total: the number of the database's records in the output; None: unknown.
        commit_lsn: the commit position of the last one.
        lag_seconds: the age of the oldest complete cut whose records the output lacks.
        error: why it ended early; None: the output has everything up to the last complete cut, or was closed before.
    """

    count: int = 0
    total: int | None = None
    commit_lsn: str | None = None
    lag_seconds: float = 0.0
    error: Exception | None = None


Tell = Callable[[Written], None]


class RecordsOutput:
    """Writes records when it is woken."""

    def __init__(self, database: Database, *, warehouse: str | None, tell: Tell) -> None:
        """Prepare; nothing is opened.

        Args:
            database: The database.
            warehouse: Overrides `delta.warehouse`.
            tell: Receives the result of each attempt, in the thread that made it.
        """
        self._database, self._warehouse, self._tell = database.apart(), warehouse, tell
        self._extensions: Extensions | None = None
        self._state: StreamState | None = None
        self._due = Event()
        self._is_last = self._is_stopped = False
        self._thread: Thread | None = None

    def wake(self) -> None:
        """Signal that there may be a new cut."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._run, name="records", daemon=True)
            self._thread.start()
        self._due.set()

    def close(self, patience: float) -> None:
        """Let the thread write what is there, and wait; after that, it ends with the batch that it is writing.

        Args:
            patience: The maximum number of seconds to wait for what is there, and then again for that batch.
        """
        if self._thread is not None:
            self._is_last = True
            self._due.set()
            self._thread.join(patience)
            self._is_stopped = True
            self._thread.join(patience)
        if self._extensions is not None:
            self._extensions.post_processors.close()

    def write(self) -> Written:
        """Write everything up to the last complete cut now, in this thread; report the result and return it."""
        found = self._write()
        if not isinstance(found.error, BusyOutputError | FencedError):  # Another run writes the same records.
            self._tell(found)
        return found

    def _run(self) -> None:
        pause: float | None = None
        while True:
            self._due.wait(pause)
            self._due.clear()
            last = self._is_last
            busy = isinstance(self.write().error, BusyOutputError | FencedError)
            if last or self._is_stopped:
                return
            # The run that has the output open may have missed the newest cut, and nothing else wakes this thread.
            pause = min((pause or AGAIN_SECONDS / 2) * 2, MOST_SECONDS) if busy else None

    def _write(self) -> Written:
        connector, catalog = self._database.connector, self._database.catalog
        count, error = 0, None
        try:
            connector.require_rendered()
            self._extensions = self._extensions or Extensions.of(connector)
            target = connector.delta.records_output_of(catalog)
            if target is None:
                raise ConfigurationError("delta.records.output is not set")
            with open_output(target, connector) as output:
                progress = begin(output, connector.topic_prefix, Selection().of_records)
                self._state = progress.databases.get(catalog)
                records = database_records(
                    connector,
                    catalog,
                    warehouse=self._warehouse,
                    state=self._state,
                    extensions=self._extensions,
                    known=self._database.tables,
                )
                for rendered in records:
                    progress = progress.at(catalog, rendered.state)
                    output.write(OutputBatch(catalog, rendered.records, progress))
                    count += rendered.records.num_rows
                    self._state = rendered.state
                    if self._is_stopped:
                        break
        except Exception as caught:  # noqa: BLE001 (any: an output must not end capture)
            error = caught
        try:
            return self._written(count, error)
        except Exception as caught:  # noqa: BLE001 (any: nobody would notice the end of the thread)
            return Written(count, error=error or caught)

    def _written(self, count: int, error: Exception | None) -> Written:
        state = self._state
        offset = state.source_offset() if state is not None else None
        total = state.records if state is not None else None
        return Written(count, total, offset["commit_lsn"] if offset else None, self._lag(), error)

    def _lag(self) -> float:
        """Return the age of the oldest complete cut that the state does not contain."""
        position = self._state.position if self._state is not None else ""
        try:
            lacking = first_after(Cuts(self._database.offsets().recorded), position)
        except MssqlCdcError:
            return 0.0  # The lake cannot be read; the tables' own lags show that.
        return 0.0 if lacking is None else round((datetime.now(UTC) - lacking.at).total_seconds(), 3)
