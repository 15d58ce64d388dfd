"""What the commit of a group says about its chunks, which is the cursor of a table's snapshot (rule A6).

The bounds are key values: they are sealed if there is a secret. `chunk_plan` decides what follows from the commits.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from mssql_cdc.capture.sealing import Seal
from mssql_cdc.capture.snapshot.chunk_plan import GroupDone
from mssql_cdc.lake.log import TableState, backwards, facts_of
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.values import Bound, Chunk


def chunk_facts(group: GroupDone, seal: Seal) -> dict[str, Any]:
    """The facts of a group of chunks.

    Args:
        group: The group.
        seal: Seals the bounds of its chunks.
    """
    bounds = _bounds().dump_json([(chunk.lower, chunk.upper) for chunk in group.bounds]).decode()
    return {
        "chunks": list(group.chunks),
        "bounds": seal.closed(bounds),
        "edition": group.edition,
        "low": group.low.text,
    }


def groups_done(state: TableState, snapshot: str, seal: Seal) -> list[GroupDone]:
    """Read a snapshot's progress from a table's commits (rule A6): the cursor is in the same commit as the rows.

    Args:
        state: The change log.
        snapshot: The id of the snapshot.
        seal: Opens the bounds of chunks.

    Raises:
        ConfigurationError: they were sealed with another secret.
    """
    found: list[GroupDone] = []
    for entry in backwards(state):
        facts = facts_of(entry)
        if facts and facts.get("snapshot") == snapshot and "chunks" in facts:
            rows = sum(facts.get("operations", {}).values())
            read_at = datetime.fromisoformat(facts["read_at"]) if "read_at" in facts else None
            numbers, edition = tuple(facts["chunks"]), facts.get("edition", 0)
            edges = _bounds().validate_json(seal.opened(facts["bounds"])) if "bounds" in facts else []
            bounds = tuple(Chunk(number, *edge) for number, edge in zip(numbers, edges, strict=False))
            found.append(GroupDone(numbers, Lsn.parse(facts["low"]), rows, read_at, bounds, edition))
    return found


@cache
def _bounds() -> TypeAdapter[list[tuple[Bound | None, Bound | None]]]:
    return TypeAdapter(list[tuple[Bound | None, Bound | None]])
