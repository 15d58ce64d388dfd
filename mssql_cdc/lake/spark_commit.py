"""Committing already written files with Spark, for tables with features that `deltalake` cannot commit to.

That is type widening alone today. Spark copies the rows into files of its own; it costs a second write, and keeps one
widened column from ending the capture of its table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mssql_cdc.lake.files import DataFile
from mssql_cdc.spark.session import private_session
from mssql_cdc.spark.tasks import interruptible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TXN_APP = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def txn_confs(app_id: str, version: int, facts: Mapping[str, Any]) -> dict[str, str]:
    """The session confs that make Spark's next Delta commit carry this txn and these facts."""
    return {TXN_APP: app_id, TXN_VERSION: str(version), USER_METADATA: json.dumps(dict(facts))}


def commit_with_spark(
    session: SparkSession, uri: str, files: Sequence[DataFile], *, app_id: str, facts: Mapping[str, Any]
) -> None:
    """Append the rows of the files in one commit with the txn `app_id` at `facts["batch"]`.

    Spark skips the write silently when the version is there already: the caller reads the commit back.
    """
    with private_session(session, txn_confs(app_id, facts["batch"], facts)) as private:
        table = private.read.format("delta").load(uri)
        paths = [f"{uri}/{file.path}" for file in files]
        rows = private.read.schema(table.schema).parquet(*paths) if paths else table.limit(0)
        interruptible(session, lambda: rows.write.format("delta").mode("append").save(uri))
