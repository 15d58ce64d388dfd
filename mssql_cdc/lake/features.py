"""Table features with which a log that only grows cannot be committed to without Spark (`lake/log.py`).

A user's ALTER TABLE that leaves all rows as they are may add one. `lake/table_log.py` has those of current tables.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltalake import DeltaTable

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.spark_sql import spark_identifier

_ALTERED = frozenset({
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
"""`deltalake` 1.6 adds columns to tables with these, and compacts them."""
_APPENDED = _ALTERED | {"domainMetadata", "typeWidening", "vacuumProtocolCheck"}
"""A commit that only adds files has nothing to do for these."""
_DOWNGRADE = "spark.databricks.delta.restore.protocolDowngradeAllowed"
_IDENTITY = 6
"""The writer version that implies identity columns."""


def writer_features(table: DeltaTable) -> tuple[str, ...]:
    """The features that writers of a table must support.

    Args:
        table: The table.
    """
    protocol = table.protocol()
    if protocol.writer_features is None:
        return ("identityColumns",) if protocol.min_writer_version == _IDENTITY else ()
    return tuple(sorted(protocol.writer_features))


def never_appended(features: Sequence[str]) -> tuple[str, ...]:
    """Those of the features with which only Spark appends."""
    return tuple(name for name in features if name not in _APPENDED)


def never_altered(features: Sequence[str]) -> tuple[str, ...]:
    """Those of the features with which only Spark adds columns or compacts."""
    return tuple(name for name in features if name not in _ALTERED)


def without_spark(uri: str, refused: Sequence[str]) -> StorageError:
    """The error for a commit without Spark to a table with these features; it says how to get rid of them."""
    table = spark_identifier(uri)
    return StorageError(
        f"{uri} has table features with which only Spark writes: {', '.join(refused)}. The connector writes this table "
        f"without Spark; nothing was written. Run ALTER TABLE {table} DROP FEATURE … for each, or, where Delta refuses "
        f"that, SET {_DOWNGRADE}=true and RESTORE TABLE {table} TO VERSION AS OF the last one without them "
        "(DESCRIBE HISTORY lists the versions): no row has come since"
    )
