"""Log operations that only Spark supports: creating mapped tables, and appending to those with some features.

`lake/features.py` lists the features. `lake/evolution.py` changes schemas.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mssql_cdc.errors import FencedError, OvertakenError, StorageError
from mssql_cdc.lake.files import DataFile
from mssql_cdc.lake.properties import TIMESTAMP_NTZ
from mssql_cdc.lake.spark_sql import literal, quoted, spark_identifier, sql_type
from mssql_cdc.spark.session import private_session, run_sql
from mssql_cdc.spark.tasks import interruptible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

TXN_APP = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@contextmanager
def conflicts_fenced(uri: str) -> Generator[None]:
    """Convert Delta's exceptions for conflicts with other commits (rule A3).

    Raises:
        FencedError: another run has committed the same txn.
        OvertakenError: another commit got in the way.
    """
    from delta import exceptions as conflicts

    # They have no common base class in Delta, but the package contains nothing else.
    kinds = tuple(getattr(conflicts, name) for name in conflicts.__all__)
    try:
        yield
    except kinds as error:
        what = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        said = f"Another run has changed {uri} at the same time; this run wrote nothing ({what})"
        is_rival = isinstance(error, conflicts.ConcurrentTransactionException)
        raise (FencedError if is_rival else OvertakenError)(said) from error


def fact_confs(facts: Mapping[str, Any]) -> dict[str, str]:
    """The session conf that makes Spark's next Delta commits carry these facts."""
    return {USER_METADATA: json.dumps(dict(facts))}


def txn_confs(app_id: str, version: int, facts: Mapping[str, Any]) -> dict[str, str]:
    """The session confs that make Spark's next Delta commit carry this txn and these facts.

    Args:
        app_id: The app id of the writer.
        version: The version of the txn.
        facts: The facts of the commit.
    """
    return {TXN_APP: app_id, TXN_VERSION: str(version), **fact_confs(facts)}


def create_with_spark(session: SparkSession, uri: str, schema: pa.Schema, properties: Mapping[str, str]) -> None:
    """Create the table with this schema and these properties; nothing happens when it exists.

    Args:
        session: The Spark session.
        uri: The folder of the table.
        schema: The columns.
        properties: The table properties.
    """
    columns = ", ".join(f"{quoted(field.name)} {sql_type(field.type)}" for field in schema)
    # Spark never adds this feature to an existing table automatically, and a datetime column may be added later.
    wanted = {**properties, TIMESTAMP_NTZ: "supported"}
    listed = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in wanted.items())
    with conflicts_fenced(uri), private_session(session) as private:
        run_sql(
            private,
            f"CREATE TABLE IF NOT EXISTS {spark_identifier(uri)} ({columns}) USING delta TBLPROPERTIES ({listed})",
        )


def commit_with_spark(
    session: SparkSession, uri: str, files: Sequence[DataFile], *, app_id: str, facts: Mapping[str, Any]
) -> None:
    """Append the rows of the files in one commit with the txn `app_id` at `facts["batch"]`.

    Spark copies the rows to its own files: such a table costs a second write.
    Spark silently skips the write if the version already exists, so the caller reads the commit back.

    Args:
        session: The Spark session.
        uri: The folder of the table.
        files: The written Parquet files, with the table's names for columns.
        app_id: The app id of the writer.
        facts: The facts of the commit; `batch` is the version of the txn.

    Raises:
        FencedError: another run committed at the same time.
        StorageError: Spark does not find the rows or a column of the files; nothing was written.
    """
    number = facts["batch"]
    with conflicts_fenced(uri), private_session(session, txn_confs(app_id, number, facts)) as private:

        def append() -> None:
            table = private.read.format("delta").load(uri)
            rows = _rows(private, uri, files, table.schema, number) if files else table.limit(0)
            rows.write.format("delta").mode("append").save(uri)

        interruptible(session, append)


def _rows(session: SparkSession, uri: str, files: Sequence[DataFile], schema: StructType, number: int) -> DataFrame:
    """The rows of the files as the table has them, once it is certain that Spark finds all of them."""
    paths = [f"{uri}/{file.path}" for file in files]
    # Spark reads a column that it does not find as NULL, and a change log cannot take rows back.
    unknown = sorted(set(_columns(session.read.parquet(*paths).schema)) - set(_columns(schema)))
    if unknown:
        names = ", ".join(unknown)
        raise StorageError(f"Files for {uri} have columns that the table does not know: {names}; nothing was written")
    rows = session.read.schema(schema).parquet(*paths)
    expected, found = sum(file.rows for file in files), rows.where(rows["_batch"] == number).count()
    if found != expected:
        raise StorageError(
            f"Files for {uri} have {found} rows of batch {number}, expected {expected}; nothing was written"
        )
    return rows


def _columns(schema: StructType, path: str = "") -> Iterator[str]:
    """The paths of all columns, including those within structs."""
    from pyspark.sql.types import StructType

    for field in schema:
        yield f"{path}{field.name}"
        if isinstance(field.dataType, StructType):
            yield from _columns(field.dataType, f"{path}{field.name}.")
