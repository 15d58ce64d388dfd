"""The contracts of snapshotters and snapshot queries (SNP-09, SNP-24, SPI-01, SPI-02). Protocols, no code.

`snapshot_extensions.py` calls them. Both are entry points; the constructor gets the keyword argument `properties`, the
connector's configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Snapshotter(Protocol):
    """Debezium's `Snapshotter`: what `snapshot.mode=custom` does.

    An entry point in the group `mssql_cdc.snapshotters`, named by `snapshot.mode.custom.name`. It is queried at every
    survey of the source, so its answers should be quick and may change.

    It may have the methods `snapshot_completed` and `snapshot_aborted`, without arguments: one of them is called when a
    run has ended its part of a snapshot, depending on whether every table was read.
    """

    def should_snapshot_data(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:  # noqa: FBT001
        """Whether rows are read.

        Args:
            offset_exists: False: for tables that are new to the lake. True: at a start, for the tables that it knows.
            snapshot_in_progress: Whether a snapshot has begun but not ended. It is continued in any case.
        """
        ...

    def should_snapshot_schema(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:  # noqa: FBT001
        """Whether the structure of tables that are not captured is kept, for records that describe them.

        The structure of captured tables is always kept: without it their rows could not be read.

        Args:
            offset_exists: Whether the lake has a position of the database.
            snapshot_in_progress: Whether a snapshot has begun but not ended.
        """
        ...

    def should_stream(self) -> bool:
        """Whether changes are captured after the snapshot."""
        ...

    def should_snapshot_on_schema_error(self) -> bool:
        """Whether a lost schema history is rebuilt."""
        ...

    def should_snapshot_on_data_error(self) -> bool:
        """Whether tables that lost changes begin as new ones do."""
        ...


class SnapshotQuery(Protocol):
    """Debezium's `SnapshotQuery`: which statement reads a table.

    An entry point in the group `mssql_cdc.snapshot_queries`, named by `snapshot.query.mode.custom.name`.
    """

    def snapshot_query(self, table: str, columns: Sequence[str]) -> str | None:
        """Return a SELECT statement, or None: no rows are read, and the table streams.

        The statement has no ORDER BY, and its result has these columns; a `*` that selects columns stands for them.
        Rows that it leaves out are not swept from the lake. `SELECT * FROM <the table>` reads the table as usual: in
        chunks, and in full.

        Args:
            table: `db.schema.table`.
            columns: The captured columns.
        """
        ...
