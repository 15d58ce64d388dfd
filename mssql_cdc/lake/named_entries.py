"""The entries of `_offsets` by the names in the schema history, which knows a new name before they do (B15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry
from mssql_cdc.schema import TableId, TableSchema


def entries_by_name(offsets: Offsets, versions: Mapping[str, Sequence[TableSchema]]) -> dict[str, Entry]:
    """Return the newest entry of each table, by its newest name; a table without an entry is left out.

    Between a rename at the source and the next row of `_offsets`, the entry is under a former name, and the entry under
    the new name may be another table's.

    Args:
        offsets: The offsets.
        versions: The versions of each table by its newest name (`TableId.text`), as the schema history has them.
    """
    identities = {name: own[-1].object_id for name, own in versions.items()}
    found = {name: _entry(offsets, name, identities) for name in versions}
    return {name: entry for name, entry in found.items() if entry is not None}


def _entry(offsets: Offsets, name: str, identities: Mapping[str, int | None]) -> Entry | None:
    identity, named = identities[name], offsets.entry(name)
    found = None if identity is None else offsets.entry_of(name, identity)
    if found is not None or named is None or named.object_id is None:
        return found or named
    # A re-created table continues in the place of the former one; a renamed table has left its name.
    return None if named.object_id in identities.values() and named.object_id != identity else named


def last_name(offsets: Offsets, object_id: int, versions: Sequence[TableSchema]) -> TableId | None:
    """Return the name in a table's newest entry: no structure has a regained name until the table's next change (B15).

    Args:
        offsets: The offsets.
        object_id: The identity of the table.
        versions: Its versions.

    Returns:
        The name; None if none of its structures ever had it.
    """
    last = offsets.last_name(object_id)
    return next((one.table_id for one in versions if one.table_id.text == last), None)
