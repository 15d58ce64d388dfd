"""Table maintenance: compacts small files and removes files that no retained version needs.

Neither changes a row, a txn or the fence. The callers decide when to run it.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltalake.exceptions import CommitFailedError

from mssql_cdc.errors import ConfigurationError, FencedError
from mssql_cdc.lake.opened import open_table
from mssql_cdc.lake.small_tables import compact_small
from mssql_cdc.lake.spark_log import conflicts_fenced
from mssql_cdc.lake.spark_sql import spark_identifier
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.spark.session import private_session, run_sql
from mssql_cdc.spark.tasks import interruptible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOO_SHORT = re.compile("Invalid retention period|RETENTION_PERIOD_TOO_SHORT|such a low retention period")
_VACUUM_CONFS = {"spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false"}
"""Otherwise, Delta 4.4 ignores RETAIN: files were removed after a week, whatever had been requested."""
FILE_BYTES = 128 * 1024 * 1024


def tidy(uri: str, *, retain_hours: int, storage: Storage = LOCAL) -> tuple[int, int]:
    """Remove old files of a small table, compact the others, and return how many were removed and added; without a JVM.

    Args:
        uri: The folder of the table.
        retain_hours: Keep files that versions of the last hours need.
        storage: The options of the object store.

    Raises:
        FencedError: another run did the same at the same time.
        ConfigurationError: The table keeps its files for longer.
    """
    table = open_table(uri, storage)
    with _retention_kept(uri, retain_hours):
        # Without `full`, it finds removed files in the log, from which the checkpoint a few commits later drops them.
        # Newer files, and those that were removed later, stay (deltalake 1.6.6, `spark/test_maintenance.py`).
        table.vacuum(retention_hours=retain_hours, dry_run=False, full=True)
    try:
        return compact_small(uri, storage)
    except CommitFailedError as error:
        raise FencedError(f"Another run has changed {uri} at the same time; nothing was compacted ({error})") from error


def optimize(session: SparkSession, uri: str, *, file_bytes: int = FILE_BYTES) -> tuple[int, int]:
    """Compact small files up to about `file_bytes`, and return how many files were removed and added.

    Args:
        session: The Spark session.
        uri: The folder of the table.
        file_bytes: The target size of a file in bytes.

    Raises:
        FencedError: another run did the same, or merged into the table, at the same time.
    """
    confs = {"spark.databricks.delta.optimize.maxFileSize": str(file_bytes)}
    with conflicts_fenced(uri), private_session(session, confs) as private:
        rows = interruptible(private, lambda: run_sql(private, f"OPTIMIZE {spark_identifier(uri)}").collect())
    metrics = rows[0]["metrics"]
    return metrics["numFilesRemoved"], metrics["numFilesAdded"]


def vacuum(session: SparkSession, uri: str, *, retain_hours: int) -> None:
    """Remove files that no version of the last `retain_hours` needs: garbage of failed runs, and compacted files.

    Args:
        session: The Spark session.
        uri: The folder of the table.
        retain_hours: Keep files that versions of the last hours need.

    Raises:
        ConfigurationError: The table keeps its files for longer.
    """
    with _retention_kept(uri, retain_hours), private_session(session, _VACUUM_CONFS) as private:
        statement = f"VACUUM {spark_identifier(uri)} RETAIN {retain_hours} HOURS"
        interruptible(private, lambda: run_sql(private, statement).collect())


@contextmanager
def _retention_kept(uri: str, retain_hours: int) -> Generator[None]:
    """Both engines refuse to remove files that the table's own retention keeps, for readers that still need them."""
    try:
        yield
    except Exception as error:
        if not _TOO_SHORT.search(str(error)):
            raise
        raise ConfigurationError(
            f"{uri} keeps removed files longer than {retain_hours} hours, by default 168. Give at least as many, or "
            "set its delta.deletedFileRetentionDuration first"
        ) from error
