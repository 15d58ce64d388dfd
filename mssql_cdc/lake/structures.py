"""`_structures`: the tables that the initial snapshot saw and did not capture, for schema change records only.

The structure of captured tables is in `_schema_history`; nothing that reads or writes rows depends on this table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.small_tables import retry_overtaken, small_table
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.schema import TableId, TableStructure


@dataclass(frozen=True, slots=True)
class SeenStructure:
    """A structure, and when it was read."""

    structure: TableStructure
    at: datetime


@retry_overtaken
def record_structures(
    layout: Layout, found: Sequence[TableStructure], *, at: datetime, storage: Storage = LOCAL
) -> None:
    """Write what a snapshot saw; this replaces what an earlier attempt wrote.

    Args:
        layout: Where the database's tables are.
        found: The structures.
        at: When they were read.
        storage: How to reach the tables.

    Raises:
        FencedError: Other runs kept writing.
    """
    table = small_table(layout, "structures", storage)
    rows = [
        {
            "catalog": one.table_id.catalog,
            "schema": one.table_id.schema,
            "name": one.table_id.name,
            "structure": one.to_json(),
            "at": at,
        }
        for one in found
    ]
    table.append(table.state(), rows, {"kind": "structures"})


def load_structures(layout: Layout, storage: Storage = LOCAL) -> list[SeenStructure]:
    """Return what the last attempt wrote; nothing if the lake never held any."""
    rows = small_table(layout, "structures", storage).rows()
    last = rows[-1]["_batch"] if rows else 0
    return [
        SeenStructure(
            TableStructure.from_json(TableId(row["catalog"], row["schema"], row["name"]), row["structure"]), row["at"]
        )
        for row in rows
        if row["_batch"] == last
    ]
