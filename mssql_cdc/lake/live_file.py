"""A data file of a Delta table as its log has it: read from an `add` action, and turned back into actions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from mssql_cdc.lake.vectors import Vector

Identity = tuple[str, str]
"""Delta's identity of a file: its decoded path, and that of its deletion vector (empty: it has none)."""


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file that is part of the newest version; `action` is its `add` without path, statistics and vector."""

    path: str
    stats: str | None
    vector: Vector | None
    action: Mapping[str, Any] = field(hash=False)

    @classmethod
    def of_add(cls, add: Mapping[str, Any]) -> LiveFile:
        """The file of an `add` action."""
        apart = ("path", "stats", "deletionVector", "stats_parsed", "partitionValues_parsed", "dataChange")
        vector = add.get("deletionVector")
        return cls(
            add["path"],
            add.get("stats"),
            Vector.from_action(vector) if vector else None,
            {name: value for name, value in add.items() if name not in apart},
        )

    @property
    def identity(self) -> Identity:
        """Delta's identity of a file: its path and its deletion vector."""
        return self.name, self.vector.identity if self.vector else ""

    @property
    def name(self) -> str:
        """The path as a file system expects it: in the log, it is URI-encoded."""
        return unquote(self.path)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.action["size"]

    @property
    def facts(self) -> dict[str, Any]:
        """The parsed statistics; empty if the writer left none."""
        return json.loads(self.stats) if self.stats else {}

    @property
    def rows(self) -> int:
        """The number of all rows according to the statistics, including deleted ones."""
        return self.facts.get("numRecords", 0)

    @property
    def left(self) -> int:
        """The number of rows that are not deleted, according to the statistics."""
        return self.rows - (self.vector.cardinality if self.vector else 0)

    def add(self, *, vector: Vector | None = None, rows: int | None = None) -> dict[str, Any]:
        """The `add` action of the same file with another vector.

        Args:
            vector: the rows that are deleted now.
            rows: the number of all rows of the file, which the statistics must give if there is a vector.
        """
        # Bounds stay as they were written: Spark's bounds of decimals are exact, which a double would not be.
        stats = {**_members(self.stats or "{}"), "tightBounds": "false"}
        if rows is not None:
            stats["numRecords"] = str(rows)
        text = ", ".join(f"{json.dumps(name)}: {value}" for name, value in stats.items())
        found: dict[str, Any] = {"path": self.path, **self.action, "dataChange": True, "stats": f"{{{text}}}"}
        return {"add": {**found, "deletionVector": vector.to_action()} if vector else found}

    def remove(self, at: datetime) -> dict[str, Any]:
        """The `remove` action of the file."""
        found: dict[str, Any] = {
            "path": self.path,
            "deletionTimestamp": int(at.timestamp() * 1000),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": self.action.get("partitionValues") or {},
            "size": self.size,
        }
        return {"remove": {**found, "deletionVector": self.vector.to_action()} if self.vector else found}


def identity_of(action: Mapping[str, Any]) -> Identity:
    """The identity of the file of an `add` or `remove` action."""
    vector = action.get("deletionVector")
    return unquote(action["path"]), Vector.from_action(vector).identity if vector else ""


def _members(text: str) -> dict[str, str]:
    """The members of a JSON object; each value is its original text in the object."""
    decoder, found = json.JSONDecoder(), dict[str, str]()
    at = _skipped(text, text.index("{") + 1)
    while text[at] == '"':
        name, end = decoder.raw_decode(text, at)
        begin = _skipped(text, end)
        _, end = decoder.raw_decode(text, begin)
        found[name] = text[begin:end]
        at = _skipped(text, end)
    return found


def _skipped(text: str, at: int) -> int:
    """The index of the next name, value or end."""
    while text[at] in " \t\r\n,:":
        at += 1
    return at
