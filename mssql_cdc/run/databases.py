"""Opens the databases of a connector for one process, on one Spark session that starts when it is first needed."""

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


@contextmanager
def open_databases(
    connector: Connector,
    *,
    warehouse: str | None = None,
    log: Callable[[str], None] = logger.info,
    quiet: bool = False,
    lasting: bool = False,
) -> Generator[list[Database], None, None]:
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
