"""Renders records up to the last complete cut, again and again, in a thread beside the loop that captures.

A slow reader holds back this thread and nothing else: what is captured waits in the lake. At most `max.queue.size`
records are handed to standard output at once, and wait there for the reader; an output that remembers gets each batch
as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from threading import Event, Thread

from mssql_cdc.config import Connector
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.outputs import Output, OutputBatch, Progress
from mssql_cdc.records.resume import Resumed, resume
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.records.stream import Rendered
from mssql_cdc.records.write import records_behind
from mssql_cdc.serve.sent import Sent


class Renderer:
    """Writes the records of a connector's databases to an output as cuts become complete."""

    def __init__(
        self,
        connector: Connector,
        output: Output,
        progress: Progress,
        *,
        offsets: Mapping[str, SourceOffset],
        warehouse: str | None,
    ) -> None:
        """Start the thread.

        Args:
            connector: The configuration; its modes shape the records.
            output: Where the records go.
            progress: How far its records reach.
            offsets: Where to resume databases of which the output has nothing yet.
            warehouse: Overrides `delta.warehouse`.
        """
        self.error: BaseException | None = None
        self._connector, self._output, self._progress = connector, output, progress
        self._most = connector.records.queue_size
        self._offsets, self._extensions = offsets, Extensions.of(connector)
        self._resumed: dict[str, Resumed] = {}
        self._known = KnownTables()
        self._sent: dict[str, Sent] = {}
        self._warehouse = warehouse
        self._due = Event()
        self._polled: dict[str, datetime] = {}
        self._polls: dict[str, datetime] = {}  # Those that are still to be processed.
        self._is_last = self._is_stopped = False
        self._thread = Thread(target=self._run, name="renderer", daemon=True)
        self._thread.start()

    def sent(self, database: str) -> Sent:
        """Return what was written of a database since the start."""
        return self._sent.get(database, Sent())

    def wake(self) -> None:
        """Wake the thread: there may be a new cut."""
        self._due.set()

    def polled(self, database: str, at: datetime) -> None:
        """Note that a poll of the source found nothing: a heartbeat may be due (HB-01).

        Args:
            database: The database.
            at: When it was polled.
        """
        interval, known = self._connector.streaming.heartbeat_interval_ms, self._polled.get(database)
        if interval and (known is None or at - known >= timedelta(milliseconds=interval)):
            self._polled[database] = self._polls[database] = at
            self._due.set()

    def finish(self, timeout: float | None = None) -> bool:
        """Let the thread write what is there, and wait for it; return whether it has ended.

        Args:
            timeout: The maximum number of seconds to wait.
        """
        self._is_last = True
        self._due.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Make the thread write no further batch; what it has not written stays in the lake."""
        self._is_stopped = True
        self._due.set()

    def _run(self) -> None:
        try:
            with self._extensions:
                self._follow()
        except BaseException as error:  # noqa: BLE001 - the loop raises it
            self.error = error

    def _follow(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            last = self._is_last
            for database in self._connector.databases:
                self._write(database)
            self._output.keep()
            if last or self._is_stopped:
                return

    def _write(self, database: str) -> None:
        for rendered in self._records(database):
            self._progress = self._progress.at(database, rendered.state)
            batch = OutputBatch(database, rendered.records, self._progress)
            # An output that remembers would store part of a batch as if it were the whole.
            for one in (batch,) if self._output.remembers else batch.parts(self._most):
                if self._is_stopped:
                    return
                self._sent[database] = self.sent(database).writing(one.records)
                self._output.write(one)
                self._sent[database] = self.sent(database).written(one.records)

    def _records(self, database: str) -> Iterator[Rendered]:
        begins = self._begins(database)
        if begins is not None:
            yield from records_behind(
                self._connector,
                database,
                begins,
                warehouse=self._warehouse,
                extensions=self._extensions,
                polled=self._polls.pop(database, None),
                known=self._known,
            )

    def _begins(self, database: str) -> Resumed | None:
        """Return where to resume; None while the lake has not reached the offset."""
        written = self._progress.databases.get(database)
        if written is not None or database not in self._offsets:
            return Resumed(written)
        if database not in self._resumed:
            found = resume(
                self._connector,
                database,
                self._offsets[database],
                warehouse=self._warehouse,
                extensions=self._extensions,
            )
            if found is None:
                return None
            self._resumed[database] = found
        return self._resumed[database]
