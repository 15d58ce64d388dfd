"""Opens the databases of a connector for one process, with one Spark session that starts on first use."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from mssql_cdc.capture.database import Database
from mssql_cdc.config import Connector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("mssql_cdc")


class LazySpark:
    """Starts Spark on first use, so that a run without rows, a sensor or a check never starts a JVM.

    If the process already has a session, it is used and left running.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._session: SparkSession | None = None
        self._ours = False

    def __call__(self) -> SparkSession:
        """Return the session, starting it if necessary."""
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


@contextmanager
def open_databases(
    connector: Connector,
    *,
    warehouse: str | None = None,
    log: Callable[[str], None] = logger.info,
    quiet: bool = False,
    lasting: bool = False,
) -> Generator[list[Database], None, None]:
    """Open every database of the connector, with one Spark session that ends with the block.

    Args:
        connector: The configuration.
        warehouse: Overrides `delta.warehouse`.
        log: Receives the log lines.
        quiet: Suppress Spark's own output.
        lasting: The session will run for a long time, so full JIT compilation pays off.
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
    """Make a path from the command line absolute, because workers may run elsewhere; URIs stay unchanged."""
    return given if given is None or "://" in given else str(Path(given).resolve())
