"""One captured database of one connector: where it is read, where it goes, and what a run needs beside that."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mssql_cdc.config import Connector, reveal
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.storage import Storage
from mssql_cdc.source.sqlserver.source import SqlServerSession, SqlServerSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("mssql_cdc")


class LazySpark:
    """Starts Spark on first use, so that a run without rows, a sensor or a check never pays for a JVM.

    A session that the process already has is used and left running.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._session: SparkSession | None = None
        self._ours = False

    def __call__(self) -> SparkSession:
        """The session."""
        if self._session is None:
            from pyspark.sql import SparkSession

            self._ours = SparkSession.getActiveSession() is None
            self._session = self._start()
        return self._session

    def stop(self) -> None:
        """Stop the session if it was started here."""
        if self._session is not None and self._ours:
            self._session.stop()
        self._session = None


@dataclass(frozen=True, slots=True)
class Database:
    """A captured database. `log` takes one line of progress; `run_id` stands in every commit that is made."""

    connector: Connector
    catalog: str
    source: SqlServerSource
    layout: Layout
    storage: Storage
    spark: Callable[[], SparkSession]
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    log: Callable[[str], None] = logger.info

    @classmethod
    def of(
        cls,
        connector: Connector,
        catalog: str,
        *,
        spark: Callable[[], SparkSession],
        warehouse: str | None = None,
        run_id: str | None = None,
        log: Callable[[str], None] = logger.info,
    ) -> Database:
        """The database `catalog` of a connector; `warehouse` wins over `delta.warehouse`."""
        # Options stay unresolved until a worker needs them; `reveal` is what resolves them there.
        storage = Storage(dict(connector.delta.storage), reveal)  # type: ignore[arg-type]
        layout = Layout(warehouse or connector.delta.warehouse, connector.topic_prefix, catalog)
        source = SqlServerSource(connector)
        return cls(connector, catalog, source, layout, storage, spark, run_id or uuid.uuid4().hex, log)

    def session(self) -> AbstractContextManager[SqlServerSession]:
        """A session on the database, for questions."""
        return self.source.session(self.catalog)

    def named(self, run_id: str) -> Database:
        """The same database for another run."""
        return replace(self, run_id=run_id)


@contextmanager
def open_databases(
    connector: Connector,
    *,
    warehouse: str | None = None,
    log: Callable[[str], None] = logger.info,
    quiet: bool = False,
    lasting: bool = False,
) -> Iterator[list[Database]]:
    """Every database of the connector, on one Spark session of our own that ends with the block.

    `quiet`: what Spark prints of itself is not shown. `lasting`: the session will work for long, so that compiling its
    code well pays.
    """
    from mssql_cdc.spark.quiet import hushed
    from mssql_cdc.spark.session import SparkSettings, start_session

    def start() -> SparkSession:
        log("starting Spark")
        confs = connector.spark.read()
        settings = SparkSettings.from_environment(confs=confs, short_lived=not lasting)
        with hushed() if quiet else nullcontext():
            return start_session(settings)

    spark = LazySpark(start)
    place = warehouse_path(warehouse)
    try:
        yield [Database.of(connector, name, spark=spark, warehouse=place, log=log) for name in connector.databases]
    finally:
        spark.stop()


def warehouse_path(given: str | None) -> str | None:
    """A path or URI from the command line: paths are made absolute, since workers may run elsewhere."""
    return given if given is None or "://" in given else str(Path(given).resolve())
