"""Reports a run of a connector to OpenLineage: START, RUNNING with its tables and as a keep-alive, COMPLETE or FAIL.

Code that follows databases does so inside `reported`. What events say is in `lineage_events.py`, how they are sent in
`lineage_sender.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.survey import Survey
from mssql_cdc.run.lineage_events import LineageEvents, TableLineage
from mssql_cdc.run.lineage_sender import LineageSender, Make, open_client
from mssql_cdc.schema import TableId

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

ALIVE_SECONDS = 60.0
_END_SECONDS, _INTERRUPTED_SECONDS = 5.0, 1.0
"""How long the end of a run waits for the transport. A process that is told to end has to be quick."""

Saw = Callable[[Database, Survey], None]
"""Called with each survey of a database."""


@contextmanager
def reported(databases: Sequence[Database], *, currents: bool = True) -> Generator[Saw]:
    """Report the block as a run, if the connector enables that; what is yielded must be called with each survey.

    Args:
        databases: The databases of one connector.
        currents: Current tables are updated, too.

    Raises:
        ConfigurationError: The client's configuration cannot be used.
    """
    if not databases or not databases[0].connector.lineage.enabled:
        yield _ignore
        return
    connector, log = databases[0].connector, databases[0].log
    client = open_client(connector.lineage.file, log)
    run = _Run(LineageEvents(connector), currents=currents)
    sender = LineageSender(client, alive=run.alive, alive_seconds=ALIVE_SECONDS, log=log)
    sender.send(run.event("START"))
    try:
        yield partial(run.saw, sender)
    except Exception as error:
        sender.close(run.event("FAIL", run.tables, str(error)), patience=_END_SECONDS)
        raise
    except BaseException:
        sender.close(run.event("COMPLETE", run.tables), patience=_INTERRUPTED_SECONDS)
        raise
    sender.close(run.event("COMPLETE", run.tables), patience=_END_SECONDS)


def _ignore(database: Database, seen: Survey) -> None:
    del database, seen


class _Run:
    """What has been reported of the tables in this run."""

    def __init__(self, events: LineageEvents, *, currents: bool) -> None:
        self._events, self._currents = events, currents
        self._known: dict[tuple[str, TableId], TableLineage] = {}
        self._is_running = False

    @property
    def tables(self) -> tuple[TableLineage, ...]:
        """The tables that were seen, with their last structures."""
        return tuple(self._known.values())

    def event(self, state: str, tables: Sequence[TableLineage] = (), error: str | None = None) -> Make:
        """Return a callable that builds an event that happens now."""
        return partial(self._events.build, state, datetime.now(UTC), tables, error)

    def alive(self) -> RunEvent:
        """The keep-alive event of this moment."""
        return self.event("RUNNING")()

    def saw(self, sender: LineageSender, database: Database, seen: Survey) -> None:
        """Report the tables that are new, or whose structure has changed."""
        if not self._is_running:
            self._is_running = True
            sender.send(self.event("RUNNING"))
        for table, lake in seen.tables.items():
            schema, known = lake.captured.newest.schema, self._known.get((database.catalog, table))
            if known is not None and known.schema.same_structure(schema):
                continue
            has_current = self._currents and bool(schema.key_columns)
            outputs = (lake.home.changes, lake.home.current) if has_current else (lake.home.changes,)
            found = self._known[database.catalog, table] = TableLineage(schema, outputs)
            sender.send(self.event("RUNNING", [found]))
