"""Table features that keep `deltalake` from committing to a table; Spark supports them.

A user's ALTER TABLE that leaves all rows as they are may add one. `lake/table_log.py` has those of current tables, to
which `deltalake` does not commit.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltalake import DeltaTable

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.spark_sql import spark_identifier

_WRITTEN = frozenset({
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "columnMapping",
    "deletionVectors",
    "generatedColumns",
    "invariants",
    "timestampNtz",
    "v2Checkpoint",
    "variantType",
    "variantType-preview",
})  # fmt: skip
"""`deltalake` 1.6 commits to tables with these."""
_DOWNGRADE = "spark.databricks.delta.restore.protocolDowngradeAllowed"
_IDENTITY = 6
"""The writer version that implies identity columns."""


def refused_features(table: DeltaTable) -> tuple[str, ...]:
    """The features because of which `deltalake` does not commit to a table; none if it does."""
    protocol = table.protocol()
    if protocol.writer_features is None:
        return ("identityColumns",) if protocol.min_writer_version == _IDENTITY else ()
    return tuple(sorted(set(protocol.writer_features) - _WRITTEN))


def without_spark(uri: str, refused: Sequence[str]) -> StorageError:
    """The error for a commit without Spark to a table with these features; it says how to get rid of them."""
    table = spark_identifier(uri)
    return StorageError(
        f"{uri} has table features with which only Spark writes: {', '.join(refused)}. The connector writes this table "
        f"without Spark; nothing was written. Run ALTER TABLE {table} DROP FEATURE … for each, or, where Delta refuses "
        f"that, SET {_DOWNGRADE}=true and RESTORE TABLE {table} TO VERSION AS OF the last one without them "
        "(DESCRIBE HISTORY lists the versions): no row has come since"
    )
