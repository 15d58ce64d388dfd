"""Opens the databases of a connector for one process, with one Spark session that starts on first use."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot.begin import is_little
from mssql_cdc.config import Connector
from mssql_cdc.errors import LoginRefusedError, MssqlCdcError, SourceUnavailableError, StorageError
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.storage import Storage
from mssql_cdc.source.registry import open_source
from mssql_cdc.spark.lazy import LazySpark
from mssql_cdc.spark.session import SparkSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("mssql_cdc")


@contextmanager
def open_databases(
    connector: Connector,
    *,
    warehouse: str | None = None,
    log: Callable[[str], None] = logger.info,
    quiet: bool = False,
    lasting: bool = False,
    ahead: bool = False,
) -> Generator[list[Database], None, None]:
    """Open every database of the connector, with one Spark session that ends with the block.

    Args:
        connector: The configuration.
        warehouse: Overrides `delta.warehouse`.
        log: Receives the log lines.
        quiet: Suppress Spark's own output.
        lasting: The session will run for a long time, so full JIT compilation pays off.
        ahead: Start Spark in a thread if there is a large first snapshot, while the caller surveys the source.
    """

    def start() -> SparkSession:
        log("starting Spark")
        confs = connector.spark.read()
        settings = SparkSettings.from_environment(confs=confs, short_lived=not lasting)
        return start_session(settings, quiet=quiet)

    spark = LazySpark(start)
    place = warehouse_path(warehouse)
    connector = real_names(connector, warehouse=place)
    databases = [Database.of(connector, name, spark=spark, warehouse=place, log=log) for name in connector.databases]
    try:
        if ahead:
            Thread(
                target=_begin_early, args=([one.apart() for one in databases], spark), name="ahead", daemon=True
            ).start()
        yield databases
    finally:
        for database in databases:
            database.extensions.close(database.log)
        spark.stop()


def real_names(connector: Connector, *, warehouse: str | None = None) -> Connector:
    """Return the connector with the databases' names as the server spells them (PRE-11).

    If a database's lake exists under the configured name, that is its name: the server is not queried again. Problems
    of a database, or of the server, are reported by the code that reads from it (`preflight`, `survey`).

    Args:
        connector: The configuration.
        warehouse: Overrides `delta.warehouse`.

    Raises:
        LoginRefusedError: The server refuses the login; the next read would only repeat the attempt.
    """
    source, storage, found = open_source(connector), Storage(dict(connector.delta.storage)), list[str]()
    for name in connector.databases:
        layout = Layout(warehouse or connector.delta.warehouse, connector.topic_prefix, name)
        try:
            if not load_offsets(layout, storage).number:
                with source.session(name) as session:
                    found.append(session.require_ready())
        except SourceUnavailableError:
            break
        except LoginRefusedError:
            raise
        except MssqlCdcError:
            continue
    return connector.with_real_names(found)


def require_lake(connector: Connector, *, warehouse: str | None = None) -> None:
    """Refuse a location without a lake, which would look like an empty lake.

    Args:
        connector: The configuration, with the databases' real names.
        warehouse: Overrides `delta.warehouse`.

    Raises:
        StorageError: Nothing was ever captured there from any of the databases.
    """
    place, storage = warehouse or connector.delta.warehouse, Storage(dict(connector.delta.storage))
    layouts = [Layout(place, connector.topic_prefix, name) for name in connector.databases]
    if not any(exists(layout.own("offsets"), storage) for layout in layouts):
        raise StorageError(
            f"{place} has no lake of {connector.topic_prefix} ({', '.join(connector.databases)}): nothing was captured "
            "there. A relative delta.warehouse counts from the current folder; --warehouse names the lake's"
        )


def _begin_early(databases: Sequence[Database], spark: LazySpark) -> None:
    """Start Spark if there is a large first snapshot to take. The caller will hit any error of the source itself."""
    with suppress(MssqlCdcError):
        if any(_has_large_tables(database) for database in databases):
            spark.begin()


def _has_large_tables(database: Database) -> bool:
    """Whether the lake is new and the source has more than a process can read while Spark starts."""
    if database.offsets().entries:
        return False
    with database.session() as session:
        if session.captured() is None:
            return False
        return not is_little(session.estimated_rows(), [table.object_id for table in session.tables()])


def warehouse_path(given: str | None) -> str | None:
    """Make a path from the command line absolute, because workers may run elsewhere; URIs stay unchanged."""
    return given if given is None or "://" in given else str(Path(given).resolve())
