"""One captured database of a connector: its source, its destination, and the other context that a run needs."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mssql_cdc.capture.loaded_extensions import LoadedExtensions
from mssql_cdc.config import Connector
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.gaps import Gap, acknowledge_gaps
from mssql_cdc.lake.history import SchemaHistory, load_history
from mssql_cdc.lake.known_states import CaughtUp, KnownStates, KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.named_gaps import gaps_by_name
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Stamp
from mssql_cdc.lake.storage import Storage
from mssql_cdc.source.protocol import Source, SourceSession
from mssql_cdc.source.registry import open_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("mssql_cdc")


def _ignore(told: Mapping[str, Any]) -> None:
    del told


@dataclass(frozen=True, slots=True)
class Database:
    """A captured database. `log` receives progress lines, `run_id` is part of every commit.

    `notify` receives each notification once it is written, `signalled` the row of `_signals` of each signal, and
    what became of it if it had no effect.

    `tables`, `states`, `current_logs` and `caught_up` are what is known about the small tables, the change logs and the
    current tables' Delta logs; `extensions` are the user-defined ones that were loaded.
    """

    connector: Connector
    catalog: str
    source: Source
    layout: Layout
    storage: Storage
    spark: Callable[[], SparkSession]
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    log: Callable[[str], None] = logger.info
    notify: Callable[[Mapping[str, Any]], None] = field(default=_ignore, compare=False)
    signalled: Callable[[Mapping[str, Any]], None] = field(default=_ignore, compare=False)
    tables: KnownTables = field(default_factory=KnownTables, compare=False)
    states: KnownStates = field(default_factory=KnownStates, compare=False)
    current_logs: CurrentLogs = field(default_factory=CurrentLogs, compare=False)
    caught_up: CaughtUp = field(default_factory=CaughtUp, compare=False)
    extensions: LoadedExtensions = field(default_factory=LoadedExtensions, compare=False)

    @classmethod
    def of(
        cls,
        connector: Connector,
        catalog: str,
        *,
        spark: Callable[[], SparkSession],
        source: Source | None = None,
        warehouse: str | None = None,
        run_id: str | None = None,
        log: Callable[[str], None] = logger.info,
    ) -> Database:
        """Build the database `catalog` of a connector.

        Args:
            connector: The configuration.
            catalog: The database's name.
            spark: Returns the session; called when the first Spark job is due.
            source: The source of changes; by default the one that `connector.class` names.
            warehouse: Overrides `delta.warehouse`.
            run_id: Part of every commit; random by default.
            log: Receives progress lines.
        """
        storage = Storage(dict(connector.delta.storage))
        layout = Layout(warehouse or connector.delta.warehouse, connector.topic_prefix, catalog)
        source, redact = source or open_source(connector), connector.redact

        def redacted(line: str) -> None:
            log(redact(line))

        return cls(connector, catalog, source, layout, storage, spark, run_id or uuid.uuid4().hex, redacted)

    def offsets(self) -> Offsets:
        """The newest `_offsets` (`load_offsets`); only what is new since the last time is read."""
        return load_offsets(self.layout, self.storage, known=self.tables)

    def history(self) -> SchemaHistory:
        """The newest schema history (`load_history`), read again only if it has changed."""
        return load_history(self.layout, self.storage, known=self.tables)

    def acknowledge_gaps(self, tables: Collection[str] | None, *, by: str) -> list[Gap]:
        """Acknowledge the open gaps of these tables, and return them.

        Args:
            tables: The tables by their newest names (`TableId.text`); None: all.
            by: Who acknowledges them.
        """
        gaps = None
        if tables is not None:
            known = gaps_by_name(self.layout, self.offsets(), self.history().versions, self.storage)
            gaps = [gap for name in tables for gap in known.get(name, ())]
        return acknowledge_gaps(self.layout, gaps, by=by, run_id=self.run_id, storage=self.storage)

    def session(self) -> AbstractContextManager[SourceSession]:
        """Open a session on the database, for queries."""
        return self.source.session(self.catalog)

    def stamp(self, epoch: int) -> Stamp:
        """Return the stamp of a step that is recorded now."""
        return Stamp(at=datetime.now(UTC), run_id=self.run_id, epoch=epoch)

    def apart(self) -> Database:
        """Return the same database for another thread, which must not share what this one knows about the tables."""
        return replace(
            self, tables=KnownTables(), states=KnownStates(), current_logs=CurrentLogs(), caught_up=CaughtUp()
        )

    def named(self, run_id: str) -> Database:
        """Return the same database for another run."""
        return replace(self, run_id=run_id)
