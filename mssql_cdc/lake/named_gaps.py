"""The open gaps of the ledger by their tables' present names: the ledger has the names of its time (A9, B15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mssql_cdc.lake.gaps import Gap, open_gaps
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Reached
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.schema import TableSchema


def gaps_by_name(
    layout: Layout, offsets: Offsets, versions: Mapping[str, Sequence[TableSchema]], storage: Storage = LOCAL
) -> dict[str, list[Gap]]:
    """Return the unacknowledged gaps by the newest name of their tables (`TableId.text`).

    Args:
        layout: The database's folders.
        offsets: The offsets; all rows are read if there are gaps.
        versions: The versions of each table by its newest name, as the schema history has them.
        storage: How to reach the tables.
    """
    recorded = open_gaps(layout, storage)
    return named(recorded, offsets, names_by_folder(offsets, versions)) if recorded else {}


def names_by_folder(offsets: Offsets, versions: Mapping[str, Sequence[TableSchema]]) -> dict[str | None, str]:
    """Return the newest name of each table by its folder.

    Args:
        offsets: The offsets.
        versions: The versions of each table by its newest name, as the schema history has them.
    """
    return {entry.folder: name for name, entry in entries_by_name(offsets, versions).items()}


def named(
    recorded: Mapping[str, Sequence[Gap]], offsets: Offsets, names: Mapping[str | None, str]
) -> dict[str, list[Gap]]:
    """Return gaps by the newest name of their tables.

    The gap of a table that no longer has a name of its own, because another one has it, stays under that name: nothing
    else of the table is shown.

    Args:
        recorded: The gaps by the names under which they were recorded.
        offsets: The offsets; all rows are read.
        names: `names_by_folder`.
    """
    found: dict[str, list[Gap]] = {}
    for gap in (gap for own in recorded.values() for gap in own):
        folders = offsets.history.folders_at(gap.table, Reached(gap.epoch, gap.from_))
        own = {names[folder] for folder in folders if folder in names}
        found.setdefault(own.pop() if len(own) == 1 else gap.table, []).append(gap)
    return found
