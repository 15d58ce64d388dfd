"""Where a followed connector begins: at its lake, at offsets that the lake contains, or by taking over at offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.take_over import take_over
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.offsets import load_offsets
from mssql_cdc.records.source_offsets import SourceOffset

_TAKES_OVER = "recovery"
"""The mode that builds a lost schema history anew from the source (SNP-06)."""


def take_over_if_lost(databases: Sequence[Database], offsets: Mapping[str, SourceOffset]) -> None:
    """Set up the lake of databases that have an offset and no lake, if `snapshot.mode` allows it.

    To Debezium, this is a lost schema history.

    Args:
        databases: The databases.
        offsets: Where they are to resume.

    Raises:
        ConfigurationError: `snapshot.mode` does not allow it.
        DataLostError: The source no longer has the changes behind an offset.
    """
    for database in databases:
        offset = offsets.get(database.catalog)
        if offset is None or load_offsets(database.layout, database.storage).entries:
            continue
        mode = database.connector.snapshot.mode
        if offset.commit is None or offset.is_unfinished_snapshot or mode == "always":
            continue
        if mode != _TAKES_OVER:
            raise ConfigurationError(
                f"The schema history is missing: {database.catalog} has an offset, but {database.layout.root} has no "
                f"lake. Run mssql-cdc take-over, set snapshot.mode={_TAKES_OVER}, or leave the offsets out to begin "
                "with a snapshot"
            )
        tables = take_over(database, offset.commit, again=offset.change_lsn is not None)
        database.log(f"{database.catalog}: took over {len(tables)} tables at {offset.commit.text}")
